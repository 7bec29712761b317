// docs/TROUBLESHOOTING.md against the program: each message is provoked and compared, with the exit
// code that the document tells. Together they meet every code that can occur without a farm.

#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/file.h"
#include "base/subprocess.h"
#include "client/exit_code.h"
#include "client/npz.h"
#include "db/log_file.h"
#include "measure/sandbox.h"
#include "tests/client/installation.h"
#include "tests/client/run_hone.h"
#include "tests/test_paths.h"

namespace hone::client {
namespace {

using testing::Installation;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

/// What the document says of one message.
struct Section {
  std::string id, message;
  int exit_code = -1;
};

std::vector<Section> ReadSections() {
  std::ifstream file(hone::testing::SourceDir() + "/docs/TROUBLESHOOTING.md");
  std::vector<Section> sections;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("### ")) sections.push_back({.id = line.substr(4)});
    if (line.starts_with("## ") || sections.empty()) continue;
    Section& section = sections.back();
    if (line.starts_with("    ") && section.message.empty()) section.message = line.substr(4);
    const size_t ends = line.find("Ends with ");
    if (ends != std::string::npos) section.exit_code = std::atoi(line.c_str() + ends + 10);
  }
  return sections;
}

/// Whether some line of `text` is `pattern`, where "…" stands for anything.
bool HasLine(const std::string& text, const std::string& pattern) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    bool fits = true, first = true;
    for (size_t at = 0; fits && at <= pattern.size();) {
      const size_t end = std::min(pattern.find("…", at), pattern.size());
      const std::string piece = pattern.substr(at, end - at);
      const bool last = end == pattern.size();
      size_t found = last ? rest.rfind(piece) : rest.find(piece);
      if (last && found != std::string::npos && found + piece.size() != rest.size()) {
        found = std::string::npos;
      }
      fits = found != std::string::npos && (!first || found == 0);
      if (fits) rest.remove_prefix(found + piece.size());
      first = false;
      if (last) break;
      at = end + std::string("…").size();
    }
    if (fits) return true;
  }
  return false;
}

// ---- the smallest ONNX files (onnx.proto: field numbers) ----

std::string Field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    out += static_cast<char>((size & 127) | (size > 127 ? 128 : 0));
    if (size <= 127) break;
  }
  return out + bytes;
}

std::string Number(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

/// A float value `name` of shape [batch, 4]; batch symbolic or 3.
std::string ValueInfo(const std::string& name, bool symbolic) {
  const std::string batch = symbolic ? Field(2, "batch") : Number(1, 3);
  const std::string shape = Field(1, batch) + Field(1, Number(1, 4));
  return Field(1, name) + Field(2, Field(1, Number(1, 1) + Field(2, shape)));
}

std::string OneNodeModel(const std::string& op, bool symbolic) {
  const std::string node = Field(1, "x") + Field(2, "y") + Field(4, op);
  const std::string graph = Field(1, node) + Field(2, "g") + Field(11, ValueInfo("x", symbolic)) +
                            Field(12, ValueInfo("y", symbolic));
  return Number(1, 8) + Field(7, graph) + Field(8, Number(2, 17));
}

class TroubleshootingTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  std::string Write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), bytes).ok());
    return Path(name);
  }
  /// mlp.onnx of the zoo.
  std::string Model() const {
    const std::string path = Path("mlp.onnx");
    if (!std::filesystem::exists(path)) {
      EXPECT_EQ(RunHone({"zoo", "mlp", "-o", path}).exit_code, 0);
    }
    return path;
  }
  std::string Package() const {
    EXPECT_EQ(RunHone({"compile", Model(), "-o", Path("mlp.hone"), "--threads", "1"}).exit_code, 0);
    return Path("mlp.hone");
  }
  /// An empty log.
  std::string Log(const std::string& name) const {
    EXPECT_TRUE(db::OpenLog(Path(name), {.mode = db::OpenMode::kWrite}).ok());
    return Path(name);
  }
  /// A file with some bytes replaced.
  static std::string Patched(const std::string& path, size_t at, const std::string& bytes) {
    std::string whole = *ReadFile(path);
    whole.replace(at, bytes.size(), bytes);
    EXPECT_TRUE(WriteFileAtomically(path, whole).ok());
    return path;
  }

  ProgramRun OutputsDiffer() const;
  ProgramRun BusyLog() const;
  ProgramRun OtherSnapshot() const;
  ProgramRun Interrupted() const;
  ProgramRun UnknownConfig() const;
  ProgramRun CrashedBuilder() const;
  ProgramRun DamagedLog() const;
  ProgramRun MovedLog() const;
  ProgramRun FolderNotWritable() const;
  ProgramRun FillingDisk() const;

  using Provoke = std::function<ProgramRun()>;
  std::map<std::string, Provoke> Provokers() const;
  /// Sections that cannot be provoked by this user or in this build.
  std::set<std::string> NotHere() const;

  const TemporaryFolder folder_;
};

ProgramRun TroubleshootingTest::OutputsDiffer() const {
  const std::string package = Package(), inputs = Path("mlp.inputs.npz");
  EXPECT_EQ(RunHone({"run", package, "--inputs", inputs, "--outputs", Path("y.npz")}).exit_code, 0);
  auto outputs = ReadNpz(Path("y.npz"));
  EXPECT_TRUE(outputs.ok());
  std::vector<double> values = (*outputs)[0].second.AsDoubles();
  for (double& value : values) value += 1;
  EXPECT_TRUE(
      WriteNpz(Path("e.npz"), {{"output", *graph::MakeConstant(ir::DType::kF32, {1, 10}, values)}})
          .ok());
  return RunHone({"run", package, "--inputs", inputs, "--expect", Path("e.npz")});
}

ProgramRun TroubleshootingTest::BusyLog() const {
  const auto writer = db::OpenLog(Path("busy.db"), {.mode = db::OpenMode::kWrite});
  EXPECT_TRUE(writer.ok());
  return RunHone({"tune", Model(), "--db", Path("busy.db"), "--trials", "1"});
}

ProgramRun TroubleshootingTest::OtherSnapshot() const {
  const std::string log = Log("live.db");
  EXPECT_EQ(RunHone({"db", "snapshot", log, "-o", Path("s.db")}).exit_code, 0);
  return RunHone(
      {"compile", Model(), "--snapshot", Path("s.db") + "@sha256:" + std::string(64, '0')});
}

ProgramRun TroubleshootingTest::Interrupted() const {
  // Large enough not to be done before.
  const std::string model = Path("squeezenet.onnx");
  EXPECT_EQ(RunHone({"zoo", "squeezenet", "-o", model}).exit_code, 0);
  return testing::RunProcess(
      {"/usr/bin/timeout", "--preserve-status", "-s", "INT", "3", testing::HoneProgram(), "tune",
       model, "--db", Path("i.db"), "--seconds", "600", "--threads", "1"},
      "/dev/null");
}

ProgramRun TroubleshootingTest::UnknownConfig() const {
  std::filesystem::create_directories(Path(".config/hone"));
  Write(".config/hone/config.toml", "thredas = 3\n");
  return RunHone({"doctor"}, folder_.path());
}

ProgramRun TroubleshootingTest::CrashedBuilder() const {
  const Installation hone;
  hone.SetBuilderScript("kill -SEGV $$");
  return hone.Run({"compile", Model()});
}

ProgramRun TroubleshootingTest::DamagedLog() const {
  const std::string log = Log("damaged.db");
  const auto size = static_cast<size_t>(std::filesystem::file_size(log));
  Patched(log, 4096, std::string(size - 4096, 'Z'));
  return RunHone({"tune", Model(), "--db", log, "--trials", "1"});
}

ProgramRun TroubleshootingTest::MovedLog() const {
  const std::string log = Path("moved.db");
  std::thread mover([&] {
    const SystemMonotonicClock clock;
    // Its WAL comes with the first that is written to it.
    for (int i = 0; i < 3000 && !std::filesystem::exists(log + "-wal"); ++i) {
      clock.SleepNs(10'000'000);
    }
    std::error_code ignored;
    std::filesystem::rename(log, Path("aside.db"), ignored);
  });
  ProgramRun run = RunHone({"tune", Model(), "--db", log, "--threads", "1", "--seconds", "20"});
  mover.join();
  return run;
}

ProgramRun TroubleshootingTest::FolderNotWritable() const {
  const Installation hone;
  std::filesystem::create_directories(Path("shared"));
  const std::string log = Log("shared/live.db");
  const auto writer = db::OpenLog(log, {.mode = db::OpenMode::kWrite});
  EXPECT_TRUE(writer.ok());
  hone.OpenToAll();
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(log, std::filesystem::perms(0644));
  std::filesystem::permissions(Path("shared"), std::filesystem::perms(0555));
  // Root may write everywhere.
  std::vector<std::string> words = {hone.Program(), "db", "stats", log};
  if (::geteuid() == 0) {
    words.insert(words.begin(),
                 {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  }
  ProgramRun run = testing::RunProcess(words, "/dev/null");
  std::filesystem::permissions(Path("shared"), std::filesystem::perms(0755));
  return run;
}

ProgramRun TroubleshootingTest::FillingDisk() const {
  const std::string disk = Path("disk"), log = disk + "/tune.db";
  std::filesystem::create_directories(disk);
  EXPECT_EQ(::mount("hone", disk.c_str(), "tmpfs", 0, "size=60m"), 0) << std::strerror(errno);
  ProgramRun run =
      RunHone({"tune", Model(), "--db", log, "--trials", "8", "--threads", "1", "--seconds", "5"});
  // The record has its end.
  const ProgramRun report = RunHone({"report", "--db", log, "-o", Path("full.html")});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(*ReadFile(Path("full.html")), ::testing::HasSubstr("disk full"));
  EXPECT_EQ(::umount(disk.c_str()), 0) << std::strerror(errno);
  return run;
}

std::set<std::string> TroubleshootingTest::NotHere() const {
  std::set<std::string> ids;
  if (!measure::SandboxHasAllowList()) ids.insert("no-sandbox");  // a sanitizer's build
  if (::geteuid() != 0) ids.insert("disk-fills");                 // only root mounts a small disk
  return ids;
}

std::map<std::string, TroubleshootingTest::Provoke> TroubleshootingTest::Provokers() const {
  return {
      {"no-such-file",
       [&] {
         return RunHone({"run", Path("none.onnx")});
       }},
      {"unbound-dimension",
       [&] {
         return RunHone({"compile", Write("d.onnx", OneNodeModel("Relu", true))});
       }},
      {"unsupported-operator",
       [&] {
         return RunHone({"compile", Write("u.onnx", OneNodeModel("Frobnicate", false))});
       }},
      {"damaged-model",
       [&] {
         return RunHone({"compile", Write("t.onnx", ReadFile(Model())->substr(0, 5000))});
       }},
      {"not-onnx",
       [&] {
         return RunHone({"compile", Write("a.pt", "PK\x03\x04 archive")});
       }},
      {"inputs-without-value",
       [&] {
         return RunHone({"run", Model()});
       }},
      {"options-of-a-package",
       [&] {
         return RunHone({"run", Package(), "--dim", "a=3"});
       }},
      {"damaged-package",
       [&] {
         return RunHone({"run", Patched(Package(), 20000, "Hone")});
       }},
      {"newer-package",
       [&] {
         return RunHone({"run", Patched(Package(), 8, "\x63")});
       }},
      {"outputs-differ", [&] { return OutputsDiffer(); }},
      {"no-log",
       [&] {
         return RunHone({"compile", Model(), "--db", Path("none.db")});
       }},
      {"own-log-unusable",
       [&] {
         return RunHone({"compile", Model()}, "/dev/null", {"HONE_DB=" + folder_.path()});
       }},
      {"not-a-log",
       [&] {
         return RunHone({"db", "stats", Write("g.db", "garbage")});
       }},
      {"busy-log", [&] { return BusyLog(); }},
      // SQLite keeps the user version at byte 60, the highest byte first.
      {"newer-log",
       [&] {
         return RunHone(
             {"db", "stats", Patched(Log("newer.db"), 60, std::string("\0\0\0\x63", 4))});
       }},
      {"no-record",
       [&] {
         return RunHone({"compile", Model(), "--db", Log("empty.db"), "--require", "exact"});
       }},
      {"other-snapshot", [&] { return OtherSnapshot(); }},
      {"interrupted", [&] { return Interrupted(); }},
      {"no-space",
       [] {
         return RunHone({"zoo", "mlp", "-o", "/dev/full"});
       }},
      {"no-folder",
       [&] {
         return RunHone({"compile", Model(), "-o", Path("none/m.hone")});
       }},
      {"cache-not-used",
       [&] {
         return RunHone({"cache", "info"}, Write("file", ""));
       }},
      {"accuracy-fast",
       [&] {
         return RunHone({"tune", Model(), "--accuracy", "fast"}, folder_.path());
       }},
      {"unknown-option",
       [] {
         return RunHone({"bench", "x.onnx", "--sekonds", "3"});
       }},
      {"config-file", [&] { return UnknownConfig(); }},
      {"unknown-target",
       [&] {
         return RunHone({"compile", Model(), "--target", "cpu:sse"});
       }},
      {"installation-not-whole",
       [&] {
         return Installation("").Run({"compile", Model()});
       }},
      {"builder-crashed", [&] { return CrashedBuilder(); }},
      {"damaged-log", [&] { return DamagedLog(); }},
      {"log-moved-away", [&] { return MovedLog(); }},
      {"log-folder-not-writable", [&] { return FolderNotWritable(); }},
      {"disk-fills", [&] { return FillingDisk(); }},
      {"no-sandbox",
       [&] {
         return Installation().Run({"compile", Model()}, Installation::WithoutSeccomp());
       }},
      {"server-unreachable",
       [&] {
         return RunHone({"tune", Model(), "--server", "127.0.0.1:1", "--insecure-loopback"});
       }},
      {"credentials-do-not-serve",
       [&] {
         for (const char* file : {"ca.pem", "cert.pem", "key.pem"}) Write(file, "?");
         std::filesystem::permissions(Path("key.pem"), std::filesystem::perms::owner_read);
         return RunHone({"session", "list", "--server", "127.0.0.1:1", "--tls", Path("")});
       }},
      {"doctor-found-a-fault", [] { return RunHone({"doctor"}, "/proc"); }},
  };
}

TEST_F(TroubleshootingTest, EveryMessageIsAsDocumentedAndEveryCodeOccurs) {
  const std::vector<Section> sections = ReadSections();
  const auto provokers = Provokers();
  EXPECT_EQ(sections.size(), provokers.size());
  std::set<int> codes = {RunHone({"--version"}).exit_code};
  for (const Section& section : sections) {
    SCOPED_TRACE(section.id);
    const auto provoke = provokers.find(section.id);
    ASSERT_NE(provoke, provokers.end()) << "no test provokes this message";
    if (NotHere().contains(section.id)) continue;
    const ProgramRun run = provoke->second();
    EXPECT_EQ(run.exit_code, section.exit_code) << run.err;
    EXPECT_TRUE(HasLine(run.err, section.message)) << section.message << "\n" << run.err;
    codes.insert(run.exit_code);
  }
  EXPECT_EQ(codes, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(TroubleshootingTable, IsThatOfTheProgram) {
  const std::string document = *ReadFile(hone::testing::SourceDir() + "/docs/TROUBLESHOOTING.md");
  for (int i = 0; i < kNumExitCodes; ++i) {
    const auto code = static_cast<ExitCode>(i);
    const std::string row = "| " + std::to_string(i) + " | " + std::string(ExitCodeName(code)) +
                            " | " + std::string(ExitCodeMeaning(code)) + " |\n";
    EXPECT_THAT(document, ::testing::HasSubstr(row));
  }
}

TEST(TroubleshootingPattern, EllipsisStandsForAnything) {
  EXPECT_TRUE(HasLine("a\nhone: x 12 y\n", "hone: x … y"));
  EXPECT_TRUE(HasLine("hone: x 12 y", "hone: …"));
  EXPECT_TRUE(HasLine("hone: x 12 y", "…12 y"));
  EXPECT_FALSE(HasLine("hone: x 12 y z", "hone: x … y"));
  EXPECT_FALSE(HasLine("so hone: x", "hone: x"));
  EXPECT_FALSE(HasLine("hone: x", "hone: x y"));
}

}  // namespace
}  // namespace hone::client
