// hone db, run as a program on logs that are filled here.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/random.h"
#include "base/file.h"
#include "base/versions.h"
#include "db/farm_store.h"
#include "db/log_file.h"
#include "tests/client/run_hone.h"

namespace hone::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::ProgramRun;
using testing::RunHone;
using testing::TemporaryFolder;

json Parse(const ProgramRun& run) {
  const json object = json::parse(run.out, nullptr, false);
  EXPECT_FALSE(object.is_discarded()) << run.out << run.err;
  return object;
}

constexpr char kWorkload[] = "workload text";

db::TuningRecord Record(int number, double median_ns, const db::Session& session,
                        const db::Device& device) {
  db::TuningRecord r;
  r.id = {1, static_cast<uint64_t>(number)};
  r.key = {HashBytes(kWorkload), "cpu:avx2,threads=1", device.device_class,
           ir::AccuracyClass::kDefault, kCpuVersions.measurement_policy};
  r.device = db::DeviceId(device);
  r.trace = "trace " + std::to_string(number);
  r.trace_version = kTraceTextVersion;
  r.builder_version = "1+22.1";
  r.median_ns = median_ns;
  r.low_ns = median_ns * 0.9;
  r.high_ns = median_ns * 1.1;
  r.session = session.id;
  r.created_ms = 1;
  for (int i = 0; i < 40; ++i) r.samples_ns.push_back(median_ns + i);
  return r;
}

class DbCommandTest : public ::testing::Test {
 protected:
  /// A log with one workload and records of these medians.
  void Write(const std::string& path, const std::vector<double>& medians_ns, int first = 1,
             db::Rigor rigor = db::Rigor::kScreened) {
    auto log = db::OpenLog(path, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    const db::Device device = {"cpu/acme/1", "fingerprint"};
    const db::Session session = {{7, 7}, "{}", 0, "{}", 1};
    db::Batch batch;
    batch.workloads.push_back({HashBytes(kWorkload), kWorkload, 10, 20});
    batch.devices.push_back(device);
    batch.sessions.push_back(session);
    for (const double median : medians_ns) {
      batch.records.push_back(Record(first, median, session, device));
      batch.records.back().rigor = rigor;
      db::Attempt a;
      a.id = {2, static_cast<uint64_t>(first)};
      a.session = session.id;
      a.key = batch.records.back().key;
      a.device = batch.records.back().device;
      a.trace = batch.records.back().trace;
      a.proposer = "random";
      a.record = batch.records.back().id;
      a.cost_ns = 5;
      a.created_ms = 1;
      batch.attempts.push_back(a);
      ++first;
    }
    const auto appended = (*log)->Append(batch);
    ASSERT_TRUE(appended.ok()) << appended.status();
  }
  const TemporaryFolder folder_;
  const std::string log_ = folder_.Path("tune.db");
};

TEST_F(DbCommandTest, StatsCount) {
  Write(log_, {3000, 2000});
  const ProgramRun run = RunHone({"db", "stats", log_, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = Parse(run);
  EXPECT_EQ(object["attempts"], 2);
  EXPECT_EQ(object["records"], 2);
  EXPECT_EQ(object["workloads"], 1);
  EXPECT_EQ(object["attempts_by_outcome"]["ok"], 2);
  EXPECT_EQ(object["records_by_rigor"]["screened"], 2);
  EXPECT_THAT(RunHone({"db", "stats", log_}).out, HasSubstr("attempts"));
}

TEST_F(DbCommandTest, WithoutALogItIsTheOneThatTuneWrites) {
  Write(folder_.Path("hone.db"), {3000});
  const testing::Variables variables = {"HONE_DB=" + folder_.Path("hone.db")};
  const ProgramRun run = RunHone({"db", "stats", "--json"}, "/dev/null", variables);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Parse(run)["log"], folder_.Path("hone.db"));
  // Which of two logs is added to the other has to be said.
  EXPECT_EQ(RunHone({"db", "merge"}, "/dev/null", variables).exit_code, 2);
  EXPECT_THAT(RunHone({"db", "stats"}, "").err, HasSubstr("name one with --db LOG"));
}

TEST_F(DbCommandTest, BestIsTheFastestOfAKey) {
  Write(log_, {3000, 2000, 2500});
  const json object = Parse(RunHone({"db", "best", log_, "--json"}));
  ASSERT_EQ(object["records"].size(), 1U);
  EXPECT_DOUBLE_EQ(object["records"][0]["median_us"], 2.0);
  EXPECT_EQ(object["records"][0]["trace"], "trace 2");
  EXPECT_EQ(object["records"][0]["workload"], HashBytes(kWorkload).ToHex());
}

TEST_F(DbCommandTest, BestIsAListWithAHeaderAndForms) {
  Write(log_, {3000, 2000});
  const std::string hash = HashBytes(kWorkload).ToHex();
  const std::string table = RunHone({"db", "best", log_}).out;
  EXPECT_THAT(table,
              MatchesRegex("WORKLOAD      BEST US  INTERVAL      RIGOR     AGE     TARGET\n" +
                           hash.substr(0, 12) +
                           "  2.00     \\[1.80, 2.20\\]  screened  [0-9]+d  cpu:avx2.*\n"));
  const std::string wide = RunHone({"db", "best", log_, "-o", "wide"}).out;
  EXPECT_THAT(wide, AllOf(HasSubstr(hash + "  "), HasSubstr("cpu/acme/1"), HasSubstr("RECORD")));
  EXPECT_EQ(Parse(RunHone({"db", "best", log_, "-o", "json"})),
            Parse(RunHone({"db", "best", log_, "--json"})));
  const ProgramRun other = RunHone({"db", "best", log_, "-o", "yaml"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("-o takes wide or json"));
}

TEST_F(DbCommandTest, TheOptionNamesTheLogAsElsewhere) {
  const std::string other = folder_.Path("other.db");
  Write(log_, {3000});
  Write(other, {1000}, 5);
  EXPECT_EQ(Parse(RunHone({"db", "stats", "--db", log_, "--json"}))["log"], log_);
  EXPECT_EQ(Parse(RunHone({"db", "merge", "--db", log_, other, "--json"}))["added"], 2);
  EXPECT_THAT(RunHone({"db", "stats", "--db", log_, other}).err, HasSubstr("are two logs"));
  EXPECT_EQ(RunHone({"db", "merge", "--db", log_}).exit_code, 2);
  EXPECT_EQ(RunHone({"db", "merge", "--db", log_, other, other}).exit_code, 2);
  EXPECT_THAT(RunHone({"doctor", "--db", log_}).out, HasSubstr(log_ + ": 2 records"));
}

// `hone db best` says what a look-up takes.
TEST_F(DbCommandTest, BestGoesByRigorAndWhatIsMergedCountsAsScreened) {
  const std::string other = folder_.Path("other.db");
  Write(other, {3000}, 2, db::Rigor::kConfirmed);
  Write(other, {2000}, 3, db::Rigor::kVerified);
  ASSERT_EQ(RunHone({"db", "merge", log_, other}).exit_code, 0);
  const auto best = [](const std::string& log) {
    const json object = Parse(RunHone({"db", "best", log, "--json"}));
    EXPECT_EQ(object["records"].size(), 1U);
    return object["records"][0]["trace"].get<std::string>();
  };
  EXPECT_EQ(best(other), "trace 2");
  EXPECT_EQ(best(log_), "trace 3");
}

TEST_F(DbCommandTest, ExportWritesOneObjectALine) {
  Write(log_, {3000});
  const std::string file = folder_.Path("facts.jsonl");
  const json object = Parse(RunHone({"db", "export", log_, "-o", file, "--json"}));
  const std::string text = *ReadFile(file);
  EXPECT_EQ(object["facts"], std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(RunHone({"db", "export", log_}).out, text);
  EXPECT_TRUE(json::parse(text.substr(0, text.find('\n'))).contains("kind"));
  EXPECT_EQ(RunHone({"db", "export", log_, "--json"}).exit_code, 2);
}

TEST_F(DbCommandTest, MergeAddsOnce) {
  const std::string other = folder_.Path("other.db");
  Write(log_, {3000});
  Write(other, {1000}, 5);
  const json first = Parse(RunHone({"db", "merge", log_, other, "--json"}));
  EXPECT_EQ(first["added"], 2);
  EXPECT_TRUE(first["conflicts"].empty());
  EXPECT_EQ(Parse(RunHone({"db", "merge", log_, other, "--json"}))["added"], 0);
  EXPECT_EQ(Parse(RunHone({"db", "stats", log_, "--json"}))["merged_records"], 1);
  EXPECT_EQ(RunHone({"db", "merge", log_}).exit_code, 2);
  EXPECT_EQ(RunHone({"db", "stats", log_, other}).exit_code, 2);
  const std::string fresh = folder_.Path("fresh.db");
  EXPECT_EQ(RunHone({"db", "merge", fresh, folder_.Path("absent.db")}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(fresh));
}

TEST_F(DbCommandTest, MergeNamesWhatConflicts) {
  const std::string other = folder_.Path("other.db");
  Write(log_, {3000});
  Write(other, {1000});
  const ProgramRun run = RunHone({"db", "merge", log_, other, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(Parse(run)["conflicts"][0]["kind"], "record");
  EXPECT_THAT(run.err, HasSubstr("has other content"));
}

TEST_F(DbCommandTest, ASnapshotIsPinnedAndReadable) {
  Write(log_, {3000});
  const std::string snapshot = folder_.Path("pinned.db");
  const json object = Parse(RunHone({"db", "snapshot", log_, "-o", snapshot, "--json"}));
  EXPECT_EQ(object["sha256"].get<std::string>().size(), 64U);
  EXPECT_EQ(object["pin"], snapshot + "@sha256:" + object["sha256"].get<std::string>());
  EXPECT_EQ(Parse(RunHone({"db", "stats", snapshot, "--json"}))["records"], 1);
  EXPECT_EQ(RunHone({"db", "compact", snapshot}).exit_code, 5);
  EXPECT_EQ(RunHone({"db", "snapshot", log_}).exit_code, 2);
  for (const char* action : {"snapshot", "export"}) {
    const ProgramRun run = RunHone({"db", action, log_, "-o", folder_.Path("none/s.db")});
    EXPECT_EQ(run.exit_code, 3) << action;
    EXPECT_THAT(run.err, HasSubstr("there is no folder")) << action;
  }
}

TEST_F(DbCommandTest, NoOutputReplacesALog) {
  const std::string other = folder_.Path("other.db"), link = folder_.Path("link.db");
  Write(log_, {3000});
  Write(other, {1000});
  const std::string bytes = *ReadFile(other), own = *ReadFile(log_);
  std::filesystem::create_hard_link(log_, link);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"db", "export", log_, "-o", log_},
        {"db", "export", log_, "-o", link},
        {"db", "export", log_, "-o", other},
        {"db", "snapshot", log_, "-o", other},
        {"report", "--db", log_, "-o", log_},
        {"report", "--db", log_, "-o", other}}) {
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 2) << words[0] << " " << words.back() << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("cannot write '" + words.back() + "'"));
  }
  EXPECT_EQ(*ReadFile(other), bytes);
  EXPECT_EQ(*ReadFile(log_), own);
  // Nor a snapshot, to which something may be pinned.
  const std::string pinned = folder_.Path("pinned.db");
  EXPECT_EQ(RunHone({"db", "snapshot", log_, "-o", pinned}).exit_code, 0);
  const std::string first = *ReadFile(pinned);
  Write(log_, {500}, 9);
  const ProgramRun again = RunHone({"db", "snapshot", log_, "-o", pinned});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("another snapshot is there, and builds may be pinned to it"));
  EXPECT_EQ(*ReadFile(pinned), first);
  EXPECT_EQ(RunHone({"db", "export", log_, "-o", pinned}).exit_code, 2);
}

TEST_F(DbCommandTest, ASnapshotReplacesNoPipeOrDevice) {
  // A pipe stands for /dev/null, which a mistake here would take from the whole machine.
  const std::string pipe = folder_.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Write(log_, {100});
  for (const std::vector<std::string>& from :
       {std::vector<std::string>{log_}, {"--server", "127.0.0.1:1", "--insecure-loopback"}}) {
    std::vector<std::string> words = {"db", "snapshot", "-o", pipe};
    words.insert(words.end(), from.begin(), from.end());
    const ProgramRun run = RunHone(words);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr("a device or a pipe"));
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  }
}

TEST_F(DbCommandTest, VerifyAndCompact) {
  Write(log_, {3000, 4000});
  const json verified = Parse(RunHone({"db", "verify", log_, "--json"}));
  EXPECT_EQ(verified["ok"], true);
  EXPECT_GT(verified["facts"], 4);
  EXPECT_EQ(Parse(RunHone({"db", "compact", log_, "--json"}))["folded_records"], 2);
  EXPECT_EQ(Parse(RunHone({"db", "verify", log_, "--json"}))["ok"], true);
}

TEST_F(DbCommandTest, ASecondWriterIsRefusedWithTheFirstsPid) {
  Write(log_, {3000});
  const auto writer = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const ProgramRun run = RunHone({"db", "compact", log_, "--json"});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_EQ(Parse(run)["error"]["name"], "log");
  EXPECT_THAT(run.err, HasSubstr(std::to_string(::getpid())));
  // Readers stand beside a writer.
  EXPECT_EQ(RunHone({"db", "stats", log_}).exit_code, 0);
}

TEST_F(DbCommandTest, AuditPrintsWhatWasDoneOldestFirst) {
  {
    const auto log = db::OpenLog(log_, {.mode = db::OpenMode::kWrite});
    ASSERT_TRUE(log.ok()) << log.status();
    db::FarmUnit unit;
    unit.changes.push_back(db::FarmAudit{1'900'000'000'000, "root", "issue", "w1", "serial 0A"});
    unit.changes.push_back(db::FarmAudit{1'900'000'001'000, "admin", "revoke", "w1", ""});
    unit.changes.push_back(
        db::FarmAudit{1'900'000'002'000, "honed", "quarantine", "w1", "\x1b]0;"});
    ASSERT_TRUE(db::FarmStore::Open(**log).value()->Commit({&unit}).ok());
  }
  EXPECT_EQ(RunHone({"db", "audit", log_}).out,
            "AGE  ACTION      SUBJECT  BY     DETAIL\n"
            "0s   issue       w1       root   serial 0A\n"
            "0s   revoke      w1       admin\n"
            "0s   quarantine  w1       honed  \\x1b]0;\n");
  EXPECT_THAT(RunHone({"db", "audit", log_, "-o", "wide"}).out, HasSubstr("2030-03-17T17:46:41Z"));
  EXPECT_EQ(Parse(RunHone({"db", "audit", log_, "-o", "json"}))["audit"].size(), 3U);
  const json object = Parse(RunHone({"db", "audit", log_, "--json"}));
  ASSERT_EQ(object["audit"].size(), 3U);
  EXPECT_EQ(object["audit"][1]["action"], "revoke");
  EXPECT_EQ(object["audit"][1]["at_ms"], 1'900'000'001'000);
  Write(folder_.Path("other.db"), {3000});
  EXPECT_THAT(RunHone({"db", "audit", folder_.Path("other.db")}).out,
              HasSubstr("the audit is empty"));
}

TEST_F(DbCommandTest, NamesThatAreNotUtf8AreTold) {
  const std::string log = folder_.Path("tune\xff.db");
  Write(log, {3000});
  const ProgramRun run = RunHone({"db", "stats", log, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Parse(run)["log"].get<std::string>(), HasSubstr("tune\xEF\xBF\xBD.db"));
}

TEST_F(DbCommandTest, DamagedForeignAndAbsentFilesAreRefusedAndLeft) {
  EXPECT_EQ(RunHone({"db", "stats", folder_.Path("absent.db")}).exit_code, 3);
  EXPECT_EQ(RunHone({"db", "compact", folder_.Path("absent.db")}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("absent.db")));
  const std::string foreign(5000, 'x');
  ASSERT_TRUE(WriteFileAtomically(folder_.Path("foreign.db"), foreign).ok());
  EXPECT_EQ(RunHone({"db", "stats", folder_.Path("foreign.db")}).exit_code, 3);
  EXPECT_EQ(*ReadFile(folder_.Path("foreign.db")), foreign);
  Write(log_, {3000, 4000});
  std::string bytes = *ReadFile(log_);
  ASSERT_GT(bytes.size(), 12288U);
  bytes.replace(4096, 8192, std::string(8192, '\x5a'));
  ASSERT_TRUE(WriteFileAtomically(log_, bytes).ok());
  EXPECT_EQ(RunHone({"db", "verify", log_}).exit_code, 5);
  EXPECT_EQ(*ReadFile(log_), bytes);
  // Cut so that it cannot be opened: verify does not send its user to verify.
  ASSERT_TRUE(WriteFileAtomically(log_, bytes.substr(0, 5000)).ok());
  EXPECT_THAT(RunHone({"db", "stats", log_}).err, HasSubstr("hone db verify"));
  const ProgramRun cut = RunHone({"db", "verify", log_});
  EXPECT_EQ(cut.exit_code, 5);
  EXPECT_THAT(cut.err, HasSubstr("restore a copy"));
  EXPECT_THAT(cut.err, Not(HasSubstr("hone db verify")));
}

}  // namespace
}  // namespace hone::client
