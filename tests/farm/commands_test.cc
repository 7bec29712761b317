#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "db/farm_store.h"
#include "tests/farm/expired_credentials.h"
#include "tests/farm/tuned_farm.h"
#include "tests/web/http_client.h"

// What people do with a farm, by its commands and signals.
namespace hone::farm {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kExitUsage = 2;
constexpr int kExitServer = 6;
constexpr int kExitInterrupted = 7;

class CommandsTest : public TunedFarm {
 protected:
  explicit CommandsTest(const std::string& model = "squeezenet")
      : TunedFarm({"w1"}, model),
        honed_("honed", farm_.HonedArgv(), farm_.Path("honed.log")),
        w1_("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log")),
        metrics_port_(FreePort()) {
    honed_.Start({"--metrics-listen", "127.0.0.1:" + std::to_string(metrics_port_)});
    w1_.Start({"--labels", "rack=7"});
  }

  std::string Session() const {
    for (const auto& words : LinesOf(farm_.Journal("client"))) {
      if (words.size() == 2 && words[0] == "session") return words[1];
    }
    return "";
  }
  size_t Lines(const std::string& journal, const std::string& word) const {
    const auto lines = LinesOf(farm_.Journal(journal));
    return static_cast<size_t>(
        std::ranges::count_if(lines, [&](const auto& words) { return words[0] == word; }));
  }
  json Json(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Ran ran = RunToEnd(Hone(words));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return json::parse(ran.out, nullptr, false);
  }
  double Metric(const std::string& series) const {
    const std::string text = "\n" + web_test::Ask(metrics_port_, "/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
  double Ended(const std::string& how) const {
    return Metric("hone_leases_ended_total{reason=\"" + how + "\"}");
  }

  Daemon honed_, w1_;
  const int metrics_port_;
};

TEST_F(CommandsTest, CtrlCDetachesAndTheSessionIsShownWatchedAndCancelled) {
  trials_ = 100'000;
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(Eventually([&] { return Lines("client", "measured") > 5; })) << client_->Said();
  const std::string id = Session();
  ASSERT_EQ(id.size(), 32u);
  EXPECT_EQ(client_->Interrupt(), kExitInterrupted) << client_->Said();
  const std::string said = client_->Said();
  // Before it starts: what, for how long, and until when.
  EXPECT_THAT(said, HasSubstr("budget 100000 trials, ends "));
  EXPECT_THAT(said, HasSubstr(" MFLOP\n"));
  EXPECT_THAT(said, HasSubstr("detached; session " + id + " goes on"));
  for (const char* command : {"watch", "cancel"}) {
    EXPECT_THAT(said, HasSubstr(std::string("hone session ") + command + " " + id + " --server " +
                                farm_.Address()));
  }
  const json running = Json({"session", "show", id});
  EXPECT_EQ(running["state"], "running");
  EXPECT_GT(running["attempts"], 5);
  EXPECT_EQ(running["owner"], "alice");
  // The same command comes back to it.
  const auto again = Client(0);
  again->Start();
  EXPECT_TRUE(Eventually([&] {
    return again->Said().find("joined session " + id) != std::string::npos;
  })) << again->Said();
  EXPECT_EQ(again->Interrupt(), kExitInterrupted);

  // So does who only watches; the words are for a shell.
  const std::string credentials = farm_.Path("my creds");
  std::filesystem::copy(farm_.Path("alice"), credentials);
  Daemon looker(
      "looker",
      {Program("hone"), "session", "watch", id, "--server", farm_.Address(), "--tls", credentials},
      farm_.Path("looker.log"));
  looker.Start();
  EXPECT_TRUE(Eventually([&] { return looker.Said().find(" candidates") != std::string::npos; }))
      << looker.Said();
  EXPECT_EQ(looker.Interrupt(), kExitInterrupted);
  const std::string server = " --server " + farm_.Address() + " --tls '" + credentials + "'";
  for (const char* command : {"watch", "cancel"}) {
    EXPECT_THAT(looker.Said(),
                HasSubstr(std::string("hone session ") + command + " " + id + server));
  }

  Daemon watch("watch", Hone({"session", "watch", id}), farm_.Path("watch.log"));
  watch.Start();
  clock_.SleepNs(300'000'000);
  const Ran cancelled = RunToEnd(Hone({"session", "cancel", id}));
  EXPECT_EQ(cancelled.code, 0) << cancelled.err;
  EXPECT_THAT(cancelled.out, HasSubstr("cancel"));
  // Its end is an event: nobody has to ask again.
  std::optional<int> code;
  ASSERT_TRUE(Eventually([&] { return (code = watch.Ended()).has_value(); })) << watch.Said();
  EXPECT_EQ(code, 0) << watch.Said();
  EXPECT_THAT(watch.Said(), HasSubstr("cancelled"));

  const json shown = Json({"session", "show", id});
  EXPECT_EQ(shown["state"], "cancelled");
  EXPECT_GT(shown["attempts"], 5);
  // What was measured is counted in the list too, also after a restart.
  for (const bool restarted : {false, true}) {
    if (restarted) {
      honed_.Kill();
      honed_.Start();
    }
    const json list = Json({"session", "list"});
    ASSERT_EQ(list["sessions"].size(), 1u);
    EXPECT_EQ(list["sessions"][0]["attempts"], shown["attempts"]) << restarted;
    EXPECT_EQ(list["sessions"][0]["state"], "cancelled");
  }
  // What is shown is enough to name it.
  const Ran table = RunToEnd(Hone({"session", "ls"}));
  EXPECT_THAT(table.out, HasSubstr("\n" + id.substr(0, 8) + "  cancelled  "));
  EXPECT_EQ(Json({"session", "show", id.substr(0, 6)})["session"], id);
  EXPECT_THAT(RunToEnd(Hone({"session", "list", "-o", "wide"})).out, HasSubstr("\n" + id + "  "));
  EXPECT_EQ(json::parse(RunToEnd(Hone({"session", "list", "-o", "json"})).out),
            Json({"session", "list"}));
  const Ran nameless = RunToEnd(Hone({"session", "show", "nonsense"}));
  EXPECT_EQ(nameless.code, kExitUsage);
  EXPECT_THAT(nameless.err, HasSubstr("32 hexadecimal digits"));
}

TEST_F(CommandsTest, AWorkerThatIsAskedToEndAnswersWhatRunsAndGivesTheRestBack) {
  trials_ = 100'000;
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(Eventually([&] { return Lines("w1", "ack") > 5; })) << w1_.Said();
  const json devices = Json({"device", "list"});
  ASSERT_EQ(devices["devices"].size(), 1u);
  EXPECT_EQ(devices["devices"][0]["labels"], (json{{"rack", "7"}}));
  EXPECT_THAT(RunToEnd(Hone({"device", "list"})).out, HasSubstr("rack=7"));
  const std::string wide = RunToEnd(Hone({"device", "list", "-o", "wide"})).out;
  EXPECT_THAT(wide, ::testing::ContainsRegex("CLASS +VERSION +CORES +GFLOP/S A CORE +GB/S +NOISE"));
  EXPECT_THAT(wide, HasSubstr("cpu:avx"));
  const std::string form = RunToEnd(Hone({"device", "list", "-o", "json"})).out;
  EXPECT_EQ(json::parse(form)["devices"][0]["device"], devices["devices"][0]["device"]);

  ASSERT_TRUE(Eventually([&] { return Metric("hone_leases_open") > 2; })) << "more than it runs";
  EXPECT_EQ(w1_.Terminate(), 0) << w1_.Said();
  std::set<std::string> sent, acknowledged;
  for (const auto& words : LinesOf(farm_.Journal("w1"))) {
    (words[0] == "result" ? sent : acknowledged).insert(words[1]);
  }
  EXPECT_EQ(sent, acknowledged) << "it ended with results that honed may not have";
  EXPECT_TRUE(Eventually([&] { return Ended("returned") > 0; })) << "it held more than it ran";
  EXPECT_EQ(Ended("lost"), 0);
  EXPECT_EQ(Ended("expired"), 0);
  const Ran list = RunToEnd(Hone({"device", "list"}));
  EXPECT_THAT(list.out, ::testing::ContainsRegex("DEVICE +STATE +LINK +AGE +ROLE +LEASES"));
  EXPECT_THAT(list.out, ::testing::ContainsRegex("w1/cpu:0 +[a-z]+ +away +[0-9]+s +both +0 "));
  EXPECT_THAT(list.out, HasSubstr("away"));
}

class QueryTest : public CommandsTest {
 protected:
  QueryTest() : CommandsTest("mlp") {}
};

TEST_F(QueryTest, TheServersRecordsAreAskedForByHand) {
  ASSERT_TRUE(KeepTuning());
  AwaitSession();
  std::vector<std::string> words = {"query", Model(), "--target", "cpu:avx2", "--threads", "1"};
  const json answer = Json(words);
  ASSERT_FALSE(answer["kernels"].empty()) << answer.dump();
  for (const json& kernel : answer["kernels"]) {
    EXPECT_EQ(kernel["rung"], "exact") << kernel.dump();
    EXPECT_TRUE(kernel["record"].is_string()) << kernel.dump();
  }
  const Ran text = RunToEnd(Hone(words));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("exact"));
}

TEST_F(QueryTest, ItsLogIsReadThroughTheServer) {
  ASSERT_TRUE(KeepTuning());
  AwaitSession();
  const json stats = Json({"db", "stats"}), best = Json({"db", "best"});
  EXPECT_EQ(stats["log"], farm_.Address());
  EXPECT_GT(stats["records"], 0);
  EXPECT_EQ(Json({"db", "verify"})["ok"], true);
  const Ran exported = RunToEnd(Hone({"db", "export"}));
  EXPECT_EQ(exported.code, 0) << exported.err;
  for (const char* action : {"merge", "compact", "audit"}) {
    const Ran refused = RunToEnd(Hone({"db", action}));
    EXPECT_EQ(refused.code, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr(std::string("hone db ") + action + " takes a log file"));
  }
  EXPECT_EQ(honed_.Terminate(), 0) << honed_.Said();
  const auto of_file = [&](const char* action) {
    return RunToEnd({Program("hone"), "db", action, farm_.LogPath(), "--json"}).out;
  };
  EXPECT_EQ(json::parse(of_file("best"))["records"], best["records"]);
  EXPECT_EQ(RunToEnd({Program("hone"), "db", "export", farm_.LogPath()}).out, exported.out);
  const std::string audit = RunToEnd({Program("hone"), "db", "audit", farm_.LogPath()}).out;
  EXPECT_THAT(audit, HasSubstr("read"));
  EXPECT_THAT(audit, Not(HasSubstr("publish"))) << "nobody kept a copy";
}

/// honed alone, with a configuration of its own.
class ConfigurationTest : public ::testing::Test {
 protected:
  ConfigurationTest() {
    farm_.Issue("submit", "alice");
    argv_ = farm_.HonedArgv();
    *std::ranges::find(argv_, "/dev/null") = farm_.Path("honed.toml");
  }
  void Configure(const std::string& text) const { std::ofstream(farm_.Path("honed.toml")) << text; }
  Ran Check(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = argv_;
    words.emplace_back("--check-config");
    words.insert(words.end(), more.begin(), more.end());
    return RunToEnd(words);
  }
  /// Starts honed, waits until it answers, and ends it.
  void RunHoned() const {
    Daemon honed("honed", argv_, farm_.Path("honed.log"));
    honed.Start();
    std::vector<std::string> list = {Program("hone"), "session", "list"};
    for (const std::string& word : farm_.ServerWords("alice")) list.push_back(word);
    const Ran answered = RunToEnd(list);
    EXPECT_EQ(answered.code, 0) << answered.err << honed.Said();
    EXPECT_EQ(honed.Terminate(), 0) << honed.Said();
  }
  std::map<std::string, int64_t> Shares() const {
    const auto log = db::OpenLog(farm_.LogPath(), {.mode = db::OpenMode::kWrite});
    EXPECT_TRUE(log.ok()) << log.status();
    std::map<std::string, int64_t> shares;
    const db::FarmState state = db::FarmStore::Open(**log).value()->Load().value();
    for (const db::FarmProject& p : state.projects) shares[p.project] = p.share;
    return shares;
  }

  FarmFolder farm_;
  std::vector<std::string> argv_;
};

TEST_F(ConfigurationTest, SharesOfProjectsAreTakenAndAudited) {
  for (const char* share : {"2", "2", "3"}) {
    Configure(std::string("log-level = \"info\"\n[projects]\nvision = ") + share + "\n");
    EXPECT_EQ(Check().code, 0);
    RunHoned();
  }
  EXPECT_EQ(Shares(), (std::map<std::string, int64_t>{{"vision", 3}}));
  const Ran audit = RunToEnd({Program("hone"), "db", "audit", farm_.LogPath()});
  EXPECT_EQ(audit.code, 0) << audit.err;
  EXPECT_THAT(audit.out, HasSubstr("vision"));
  EXPECT_THAT(audit.out, HasSubstr("1 -> 2"));
  EXPECT_THAT(audit.out, HasSubstr("2 -> 3"));
  EXPECT_THAT(audit.out, Not(HasSubstr("2 -> 2")));
}

TEST_F(ConfigurationTest, AShareThatIsNoneIsRefusedBeforeAnythingRuns) {
  Configure("[projects]\nvision = \"none\"\n");
  const Ran checked = Check();
  EXPECT_EQ(checked.code, kExitUsage);
  EXPECT_THAT(checked.err, HasSubstr("the share of 'vision' is a whole number"));
}

/// `--name VALUE` in place of what a command line had of it.
std::vector<std::string> With(std::vector<std::string> argv, const std::string& name,
                              const std::string& value) {
  const auto at = std::ranges::find(argv, name);
  if (at == argv.end()) {
    argv.insert(argv.end(), {name, value});
  } else {
    *std::next(at) = value;
  }
  return argv;
}

/// What a start refuses as configuration, --check-config refuses, and both end with the exit code
/// after which a unit is not started again.
void ExpectRefused(std::vector<std::string> argv, const std::string& why) {
  const Ran started = RunToEnd(argv);
  EXPECT_EQ(started.code, kExitUsage) << started.err;
  EXPECT_THAT(started.err, HasSubstr(why));
  argv.emplace_back("--check-config");
  const Ran checked = RunToEnd(argv);
  EXPECT_EQ(checked.code, kExitUsage) << why;
  EXPECT_EQ(checked.err, started.err);
}

TEST_F(ConfigurationTest, WhatHonedWouldNotStartWithIsFoundByTheCheck) {
  Configure("");
  EXPECT_EQ(Check().code, 0);
  EXPECT_FALSE(std::filesystem::exists(farm_.LogPath())) << "it only looks";
  ExpectRefused(With(argv_, "--listen", "nonsense"), "is no address to listen on");
  ExpectRefused(With(argv_, "--listen", "127.0.0.1:99999"), "a port is a number from 0 to 65535");
  ExpectRefused(With(argv_, "--tls", farm_.Path("none")), "--tls");
  ExpectRefused(With(argv_, "--db", farm_.Path("none/tune.db")), "there is no folder");
  ExpectRefused(With(argv_, "--db", farm_.Path("ca")), "that is a folder");
  ExpectRefused(With(argv_, "--db", ""), "--db '': name the log");
  ExpectRefused(With(argv_, "--page-listen", "0.0.0.0:7422"), "the page is served on loopback");
  ExpectRefused(With(argv_, "--metrics-listen", "127.0.0.1"), "is no address to listen on");
  std::vector<std::string> plain = With(argv_, "--listen", "0.0.0.0:0");
  plain.emplace_back("--insecure-loopback");
  ExpectRefused(plain, "plaintext is for loopback alone");
  plain = argv_;
  plain.insert(plain.end(), {"--insecure-loopback", "false"});
  ExpectRefused(plain, "unknown command 'false'");
  ExpectRefused({Program("honed"), "revoke", "measure", "w1", "--server", "127.0.0.1:0", "--config",
                 "/dev/null"},
                "a port is a number from 1 to 65535");
}

TEST_F(ConfigurationTest, WhatAWorkerWouldNotStartWithIsFoundByTheCheck) {
  farm_.Issue("measure", "w1");
  const std::vector<std::string> argv = farm_.WorkerArgv("w1");
  std::vector<std::string> check = argv;
  check.emplace_back("--check-config");
  EXPECT_EQ(RunToEnd(check).code, 0);
  ExpectRefused(With(argv, "--connect", "non sense"), "is no address");
  ExpectRefused(With(argv, "--connect", "127.0.0.1:0"), "a port is a number from 1 to 65535");
  ExpectRefused(With(argv, "--tls", farm_.Path("none")), "--tls");
  const auto refused = [&](std::vector<std::string> more, const std::string& why) {
    more.insert(more.begin(), argv.begin(), argv.end());
    ExpectRefused(more, why);
  };
  // Not a worker without sandbox.
  refused({"--unsafe-no-sandbox", "false"}, "'false' is no option");
  for (const char* device : {"cpu", "cpu:", "cpu:abc", "cpu:01", "cpu:-1", "cpu:99999", "tpu:0"}) {
    refused({"--device", device}, std::string("--device ") + device +
                                      ": there is no such device; devices are called cpu:N");
  }
  refused({"--labels", "rack"}, "--labels rack: expected K=V");
  refused({"--labels", "rack=7", "--labels", "rack=8"}, "--labels rack=8: this label is given");
  refused({"--labels", "rack=" + std::string(257, '7')}, "257 bytes are not within 0 and 256");
  refused({"--labels", std::string(257, 'r') + "=7"}, "257 bytes are not within 1 and 256");
  refused({"--labels", "rack=a\nb"}, "has characters that do not print");
  std::vector<std::string> labels;
  for (int i = 0; i < 33; ++i) {
    labels.insert(labels.end(), {"--labels", "l" + std::to_string(i) + "="});
  }
  refused(labels, "--labels: 33 are over the limit 32");
  check.insert(check.end(), labels.begin() + 2, labels.end());
  check.insert(check.end(), {"--device", "cpu:7"});
  EXPECT_EQ(RunToEnd(check).code, 0);
  std::filesystem::permissions(farm_.Path("w1") + "/key.pem", std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  ExpectRefused(argv, "chmod 600");
}

TEST_F(ConfigurationTest, CredentialsThatDoNotBelongTogetherOrHereAreFoundByTheCheck) {
  Configure("");
  farm_.Issue("server", "other");
  farm_.Issue("measure", "w1");
  farm_.Issue("measure", "w2");
  const FarmFolder elsewhere;
  const auto mixed = [&](const std::string& whole, const std::string& file,
                         const std::string& from) {
    const std::string folder = farm_.Path(whole + "-" + file);
    std::filesystem::copy(farm_.Path(whole), folder);
    std::filesystem::copy_file(from + "/" + file, folder + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
    return folder;
  };
  const std::string key = mixed("honed", "key.pem", farm_.Path("other"));
  ExpectRefused(With(argv_, "--tls", key),
                "'" + key + "/key.pem' is not the key of '" + key + "/cert.pem'");
  const std::string ca = mixed("honed", "ca.pem", elsewhere.Path("honed"));
  ExpectRefused(With(argv_, "--tls", ca), "/cert.pem' is not of the authority in '" + ca);
  ExpectRefused(With(argv_, "--tls", farm_.Path("alice")), "it takes the role server");
  EXPECT_FALSE(std::filesystem::exists(farm_.LogPath()));

  const std::vector<std::string> worker = farm_.WorkerArgv("w1");
  ExpectRefused(With(worker, "--tls", mixed("w1", "key.pem", farm_.Path("w2"))),
                "is not the key of");
  ExpectRefused(With(worker, "--tls", farm_.Path("alice")), "it takes the role measure");
  const Ran revoked = RunToEnd({Program("honed"), "revoke", "measure", "w1", "--server",
                                farm_.Address(), "--tls", key, "--config", "/dev/null"});
  EXPECT_EQ(revoked.code, kExitUsage);
  EXPECT_THAT(revoked.err, HasSubstr("is not the key of"));
}

TEST_F(ConfigurationTest, ACertificateThatIsOverIsFoundByTheCheck) {
  Configure("");
  IssueExpired(farm_, CallerRole::kServer, "oldhoned");
  IssueExpired(farm_, CallerRole::kMeasure, "oldworker");
  ExpectRefused(With(argv_, "--tls", farm_.Path("oldhoned")), "(honed issue server oldhoned)");
  // A worker that starts asks honed, whose clock counts.
  std::vector<std::string> worker = farm_.WorkerArgv("oldworker");
  worker.emplace_back("--check-config");
  const Ran checked = RunToEnd(worker);
  EXPECT_EQ(checked.code, kExitUsage);
  EXPECT_THAT(checked.err, HasSubstr("has expired at 20"));
  EXPECT_THAT(checked.err, HasSubstr("(honed issue measure oldworker)"));
}

TEST_F(ConfigurationTest, ARevocationThatNoServerTakesEndsAsHoneDoes) {
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  const Ran revoked = RunToEnd({Program("honed"), "revoke", "measure", "w1", "--server", nobody,
                                "--tls", farm_.Path("alice"), "--config", "/dev/null"});
  EXPECT_EQ(revoked.code, kExitServer) << revoked.err;
  const Ran bad = RunToEnd({Program("hone"), "session", "list", "--server", "127.0.0.1:99999",
                            "--tls", farm_.Path("alice")});
  EXPECT_EQ(bad.code, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("a port is a number from 1 to 65535"));
}

TEST_F(ConfigurationTest, WhatNoWorkerWouldTakeIsRefused) {
  Configure("");
  for (const char* limit : {"--start-by-seconds", "--run-by-seconds"}) {
    EXPECT_EQ(Check({limit, "31536000"}).code, 0);
    const Ran refused = Check({limit, "31536001"});
    EXPECT_EQ(refused.code, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr("a whole number from 1 to 31536000, not '31536001'"));
  }
  std::string& heartbeat_ms = *(std::ranges::find(argv_, "--heartbeat-ms") + 1);
  heartbeat_ms = "100";
  EXPECT_EQ(Check({}).code, 0);
  heartbeat_ms = "30";
  const Ran refused = Check({});
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.err, HasSubstr("--heartbeat-ms takes a whole number from 100"));
}

TEST_F(ConfigurationTest, LimitsOfLeasesExceedTheWorkersGrace) {
  Configure("");
  for (const char* limit : {"--start-by-seconds", "--run-by-seconds"}) {
    EXPECT_EQ(Check({limit, "6"}).code, 0);
    const Ran refused = Check({limit, "5"});
    EXPECT_EQ(refused.code, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr(std::string(limit) + " must exceed 5"));
  }
}

}  // namespace
}  // namespace hone::farm
