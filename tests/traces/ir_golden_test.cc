// The code that fixed Traces give, so that nobody changes it without raising the builder version:
// the log tells results of another builder apart by that number alone.
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

#include "base/core/hash128.h"
#include "base/status.h"
#include "base/versions.h"
#include "codegen/codegen.h"
#include "ir/target.h"
#include "ir/text.h"
#include "schedule/lower.h"
#include "schedule/trace.h"
#include "tests/test_paths.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The digest of the LLVM IR of a file "WORKLOAD---\nTRACE", before any pass of LLVM's own.
absl::StatusOr<std::string> DigestOf(const std::string& text, const std::string& isa) {
  const size_t cut = text.find("\n---\n");
  if (cut == std::string::npos) return absl::InvalidArgumentError("no line --- after the workload");
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(text.substr(0, cut + 1)));
  HONE_ASSIGN_OR_RETURN(const schedule::Trace trace, schedule::ParseTrace(text.substr(cut + 5)));
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget("cpu:" + isa + ",threads=1", &target, &error))
    return absl::InvalidArgumentError(error);
  HONE_ASSIGN_OR_RETURN(const schedule::Lowered lowered,
                        schedule::LowerTrace(workload, trace, target, {}, "kernel"));
  HONE_ASSIGN_OR_RETURN(const std::string code, codegen::LlvmIr({&lowered.nest}, target));
  return HashBytes(code).ToHex();
}

/// The ISAs a file NAME[.ISA].trace is for.
std::vector<std::string> IsasOf(const std::string& stem) {
  const size_t dot = stem.rfind('.');
  if (dot != std::string::npos) return {stem.substr(dot + 1)};
  return {"avx2", "avx512"};
}

/// NAME ISA → digest, of every Trace that is kept in tests/traces, its folder golden, and bench.
std::map<std::string, std::string> Digests() {
  std::map<std::string, std::string> digests;
  for (const char* folder : {"tests/traces", "tests/traces/golden", "bench/traces"}) {
    for (const auto& file : fs::directory_iterator(fs::path(testing::SourceDir()) / folder)) {
      if (file.path().extension() != ".trace") continue;
      const std::string stem = file.path().stem().string();
      for (const std::string& isa : IsasOf(stem)) {
        const auto digest = DigestOf(ReadFile(file.path()), isa);
        digests[std::string(folder) + "/" + stem + " " + isa] =
            digest.ok() ? *digest : "none: " + std::string(digest.status().message());
      }
    }
  }
  return digests;
}

TEST(IrGolden, CodeChangesOnlyWithTheBuilderVersion) {
  std::string now = "builder " + std::to_string(kBuilderVersion) + "\n";
  for (const auto& [name, digest] : Digests()) now += name + " " + digest + "\n";
  const fs::path kept = fs::path(testing::SourceDir()) / "tests/traces/golden/digests.txt";
  const std::string before = ReadFile(kept);
  if (now == before) return;

  const fs::path fresh = fs::path(::testing::TempDir()) / "hone-ir-digests.txt";
  std::ofstream(fresh) << now;
  const bool raised = before.substr(0, before.find('\n')) != now.substr(0, now.find('\n'));
  ADD_FAILURE() << (raised ? "the builder version was raised"
                           : "the code of kept Traces changed: raise kBuilderVersion in "
                             "base/versions.h if it is meant")
                << "; then copy " << fresh << " over " << kept << "\n"
                << now;
}

}  // namespace
}  // namespace hone
