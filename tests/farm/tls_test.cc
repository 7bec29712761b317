#include <fstream>
#include <map>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

#include "server/ca.h"
#include "tests/farm/tuned_farm.h"
#include "tests/farm/unchecked_call.h"
#include "tests/web/http_client.h"

// Who is refused, how it is said, and how it is counted; certificates that end while they are used.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kCutOffNs = 10 * kNsPerSecond;
constexpr int kExitBadInput = 3;
constexpr int kExitServer = 6;

class TlsTest : public TunedFarm {
 protected:
  TlsTest()
      : TunedFarm({"w1"}, "squeezenet"),
        metrics_port_(FreePort()),
        honed_("honed", farm_.HonedArgv(), farm_.Path("honed.log")) {
    honed_.Start({"--metrics-listen", "127.0.0.1:" + std::to_string(metrics_port_)});
    EXPECT_EQ(List("alice").code, 0) << honed_.Said();
  }

  Ran Ask(std::vector<std::string> words, const std::string& who) const {
    words.insert(words.begin(), Program("hone"));
    for (const std::string& word : farm_.ServerWords(who)) words.push_back(word);
    return RunToEnd(words);
  }
  Ran List(const std::string& who) const { return Ask({"session", "list"}, who); }

  /// What honed says to somebody who does not look at his credentials first, as our programs do.
  absl::Status AskHoned(const std::string& who, const std::string& method) const {
    return CallUnchecked(farm_.Address(), farm_.Path("alice"), who.empty() ? "" : farm_.Path(who),
                         method);
  }
  /// Credentials of another farm of somebody who believes this one too.
  void AdoptStranger(const FarmFolder& other, const std::string& name) const {
    std::filesystem::copy(other.Path(name), farm_.Path(name));
    std::ofstream(farm_.Path(name) + "/ca.pem", std::ios::app)
        << std::ifstream(farm_.Path("alice") + "/ca.pem").rdbuf();
  }

  /// Credentials that are valid for so long from now on; negative: they have expired.
  void IssueFor(server::CallerRole role, const std::string& name, int64_t seconds) const {
    const int64_t now_s = SystemWallClock().UnixNs() / kNsPerSecond;
    ASSERT_TRUE(server::Issue({.ca_folder = farm_.Path("ca"),
                               .role = role,
                               .name = name,
                               .out_folder = farm_.Path(name),
                               .now_unix_s = now_s,
                               .seconds = seconds})
                    .ok());
  }
  double Metric(const std::string& series) const {
    const std::string text = "\n" + web_test::Ask(metrics_port_, "/metrics").body;
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
  double Refused(const std::string& why) const {
    return Metric("hone_callers_refused_total{reason=\"" + why + "\"}");
  }
  double Ended(const std::string& how) const {
    return Metric("hone_leases_ended_total{reason=\"" + how + "\"}");
  }
  /// A session that does not end by itself, for as long as a test takes.
  std::unique_ptr<Daemon> LongSession(const std::string& who) const {
    std::vector<std::string> argv = {Program("hone"), "tune",      Model(), "--target",
                                     "cpu:avx2",      "--threads", "1",     "--trials",
                                     "20000",         "--seed",    "7"};
    for (const std::string& word : farm_.ServerWords(who)) argv.push_back(word);
    auto client = std::make_unique<Daemon>(who, argv, farm_.Path(who + ".log"));
    client->Start();
    return client;
  }
  /// A worker that has leases, under credentials of this name.
  void AwaitLeases(const Daemon& worker) const {
    ASSERT_TRUE(Eventually([&] { return Metric("hone_leases_started") > 0; }))
        << worker.Said() << honed_.Said();
  }
  /// The one worker's stream is closed, its leases are back, and its process has ended and said
  /// why.
  void ExpectCutOff(Daemon& worker, const std::string& why) const {
    std::optional<int> code;
    EXPECT_TRUE(Eventually([&] { return (code = worker.Ended()).has_value(); }, kCutOffNs));
    EXPECT_EQ(code, 1);
    EXPECT_THAT(worker.Said(), HasSubstr(why));
    EXPECT_TRUE(Eventually([&] { return Metric("hone_worker_streams") == 0; }, kCutOffNs));
    EXPECT_TRUE(Eventually([&] { return Metric("hone_leases_open") == 0; }, kCutOffNs));
    EXPECT_GT(Ended("revoked"), 0);
    EXPECT_EQ(Ended("lost"), 0);
  }

  const int metrics_port_;
  Daemon honed_;
};

TEST_F(TlsTest, StrangersGetNoFurtherThanTheHandshakeAndAreCounted) {
  // A certificate of another farm, none at all, and a server's, which is not for clients.
  const FarmFolder other;
  other.Issue("submit", "mallory");
  AdoptStranger(other, "mallory");
  const Ran mallory = List("mallory");
  EXPECT_EQ(mallory.code, kExitServer);
  EXPECT_THAT(mallory.err, HasSubstr("whether the certificates are of its authority"));
  EXPECT_THAT(mallory.err, HasSubstr("event=caller_refused and why"));
  for (const char* who : {"mallory", "", "honed"}) {
    EXPECT_EQ(AskHoned(who, "/hone.v1.Tuning/ListSessions").code(), absl::StatusCode::kUnavailable)
        << who;
  }
  EXPECT_GE(Refused("stranger"), 2);
  EXPECT_GE(Refused("no_certificate"), 1);
  EXPECT_THAT(honed_.Said(), HasSubstr("event=caller_refused call=handshake"));
  EXPECT_EQ(List("alice").code, 0);
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsToldFromOneThatIsAway) {
  const FarmFolder other;
  other.Issue("submit", "bob");
  const SystemMonotonicClock clock;
  const int64_t start_ns = clock.NowNs();
  const Ran asked = RunToEnd({Program("hone"), "session", "list", "--server", farm_.Address(),
                              "--tls", other.Path("bob")});
  EXPECT_EQ(asked.code, kExitServer);
  EXPECT_THAT(asked.err, HasSubstr("certificate is not of the authority in ca.pem"));
  EXPECT_EQ(asked.err.find("ssl_transport_security"), std::string::npos) << asked.err;
  EXPECT_LT(clock.NowNs() - start_ns, 5 * kNsPerSecond) << "it is not asked again";
  // The other way round it is honed that says who it was.
  AdoptStranger(other, "bob");
  std::vector<std::string> argv = {Program("hone"), "session", "list"};
  for (const std::string& word : farm_.ServerWords("bob")) argv.push_back(word);
  Daemon stranger("bob", argv, farm_.Path("bob.log"));
  stranger.Start();
  EXPECT_TRUE(Eventually([&] {
    return honed_.Said().find("; it calls itself spiffe://hone/submit/bob") != std::string::npos;
  })) << honed_.Said();
}

TEST_F(TlsTest, ACertificateServesItsRoleAlone) {
  const Ran drain = Ask({"device", "drain", "w1/cpu:0"}, "alice");
  EXPECT_EQ(drain.code, kExitServer);
  EXPECT_THAT(drain.err,
              HasSubstr("spiffe://hone/submit/alice may not do this; it takes the role"));
  EXPECT_EQ(Refused("role"), 1);
  const absl::Status posing = AskHoned("alice", "/hone.v1.Workers/Work");
  EXPECT_EQ(posing.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(posing.message()), HasSubstr("it takes the role measure"));
  EXPECT_EQ(Refused("role"), 2);
  const absl::Status worker = AskHoned("w1", "/hone.v1.Tuning/ListSessions");
  EXPECT_EQ(worker.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(worker.message()),
              HasSubstr("spiffe://hone/measure/w1 may not do this; it takes the role"));
  EXPECT_EQ(Refused("role"), 3);
}

TEST_F(TlsTest, CredentialsThatCannotServeAreToldOfBeforeAnybodyIsAsked) {
  farm_.Issue("submit", "bob");
  const auto mix = [&](const std::string& name, const std::string& file, const std::string& from) {
    std::filesystem::copy(farm_.Path("alice"), farm_.Path(name));
    std::filesystem::copy_file(farm_.Path(from) + "/" + file, farm_.Path(name) + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
  };
  mix("mixed", "key.pem", "bob");
  std::filesystem::copy(farm_.Path("alice"), farm_.Path("empty"));
  std::ofstream(farm_.Path("empty") + "/key.pem", std::ios::trunc);
  std::filesystem::copy(farm_.Path("alice"), farm_.Path("garbage"));
  std::ofstream(farm_.Path("garbage") + "/cert.pem", std::ios::trunc) << std::string(3 << 20, 'x');
  for (const auto& [who, why] : {std::pair{"mixed", "is not the key of"},
                                 {"empty", "is no private key"},
                                 {"garbage", "is no certificate"},
                                 {"w1", "it takes the role submit, publish, admin"},
                                 {"honed", "it takes the role submit, publish, admin"}}) {
    const Ran refused = List(who);
    EXPECT_EQ(refused.code, kExitBadInput) << who;
    EXPECT_THAT(refused.err, HasSubstr("no credentials for the server: '" + farm_.Path(who) + "/"));
    EXPECT_THAT(refused.err, HasSubstr(why));
  }
  for (const char* why : {"stranger", "no_certificate", "role"}) EXPECT_LE(Refused(why), 0) << why;
}

TEST_F(TlsTest, WhatHasExpiredIsToldSo) {
  IssueFor(server::CallerRole::kSubmit, "old", -60);
  const Ran client = List("old");
  EXPECT_EQ(client.code, kExitServer);
  EXPECT_THAT(client.err, HasSubstr("has expired; issue a new one (honed issue submit old)"));
  EXPECT_EQ(Refused("expired"), 1);
  IssueFor(server::CallerRole::kMeasure, "oldworker", -60);
  const Ran worker = RunToEnd(farm_.WorkerArgv("oldworker"));
  EXPECT_EQ(worker.code, 1);
  EXPECT_THAT(worker.err,
              HasSubstr("has expired; issue a new one (honed issue measure oldworker)"));
  EXPECT_EQ(Refused("expired"), 2);
}

TEST_F(TlsTest, ACertificateThatExpiresEndsWhatItOpened) {
  // Beside other tests a worker may wait for seconds before it measures.
  constexpr int64_t kLifeSeconds = 15;
  IssueFor(server::CallerRole::kSubmit, "shorty", kLifeSeconds);
  IssueFor(server::CallerRole::kMeasure, "w1", kLifeSeconds);
  Daemon worker("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  worker.Start();
  const auto client = LongSession("shorty");
  AwaitLeases(worker);
  ASSERT_TRUE(
      Eventually([&] { return Refused("expired") > 0; }, (kLifeSeconds + 30) * kNsPerSecond));
  ExpectCutOff(worker, "spiffe://hone/measure/w1 has expired");
  std::optional<int> code;
  EXPECT_TRUE(Eventually([&] { return (code = client->Ended()).has_value(); }, kCutOffNs));
  EXPECT_EQ(code, kExitServer);
  EXPECT_THAT(client->Said(), HasSubstr("has expired"));
  // With new credentials the same worker goes on, and so does the session.
  farm_.Issue("measure", "w1");
  worker.Start();
  AwaitLeases(worker);
  EXPECT_EQ(worker.Terminate(), 0) << worker.Said();
}

TEST_F(TlsTest, EveryCallTakesItsRoleAndItsOwner) {
  for (const auto& [role, name] :
       {std::pair{"publish", "carol"}, {"submit", "bob"}, {"measure", "w9"}}) {
    farm_.Issue(role, name);
  }
  const auto session = LongSession("alice");
  std::string id;
  ASSERT_TRUE(Eventually([&] {
    const Ran list = Ask({"session", "list", "--json"}, "root");
    const auto sessions = nlohmann::json::parse(list.out)["sessions"];
    if (!sessions.empty()) id = sessions[0]["session"];
    return id.size() == 32;
  }));
  constexpr int kNotFound = 2, kRefused = kExitServer;
  struct Call {
    std::vector<std::string> words;
    std::map<std::string, int> codes;  ///< by who asks
  };
  const std::string copy = farm_.Path("copy.db");
  // alice owns it; bob has the same role; carol publishes, root is an admin, w9 a worker.
  const std::vector<Call> calls = {
      {{"session", "list"}, {{"alice", 0}, {"bob", 0}, {"carol", 0}, {"root", 0}}},
      {{"session", "show", id}, {{"alice", 0}, {"bob", kNotFound}, {"carol", 0}, {"root", 0}}},
      {{"device", "list"}, {{"alice", 0}, {"bob", 0}, {"carol", 0}, {"root", 0}}},
      {{"device", "drain", "w1/cpu:0"},
       {{"alice", kRefused}, {"bob", kRefused}, {"carol", kRefused}}},
      {{"device", "probe", "w1/cpu:0"},
       {{"alice", kRefused}, {"bob", kRefused}, {"carol", kRefused}}},
      {{"db", "snapshot", "--output", copy}, {{"carol", 0}}},
      {{"session", "cancel", id}, {{"bob", kNotFound}, {"carol", kNotFound}}},
      {{"session", "cancel", id}, {{"root", 0}}},
  };
  for (const Call& call : calls) {
    for (const auto& [who, code] : call.codes) {
      const Ran ran = Ask(call.words, who);
      EXPECT_EQ(ran.code, code) << who << ": " << call.words[0] << " " << call.words[1] << "\n"
                                << ran.err;
    }
  }
  // A worker gets no answer to any of them, whatever program asks.
  for (const char* method : {"StartSession", "CancelSession", "ListSessions", "WatchSession",
                             "FindRecords", "Snapshot", "ListDevices", "SetDevice", "Revoke"}) {
    const absl::Status refused = AskHoned("w9", std::string("/hone.v1.Tuning/") + method);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied) << method << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("measure/w9 may not do this")) << method;
  }
  for (const char* who : {"alice", "carol", "w9"}) {
    const Ran ran = RunToEnd({Program("honed"), "revoke", "submit", "bob", "--server",
                              farm_.Address(), "--tls", farm_.Path(who), "--config", "/dev/null"});
    EXPECT_NE(ran.code, 0) << who;
    EXPECT_THAT(ran.err, HasSubstr("it takes the role admin"));
  }
  const Ran server =
      RunToEnd({Program("honed"), "revoke", "server", "honed", "--server", farm_.Address(), "--tls",
                farm_.Path("root"), "--config", "/dev/null"});
  EXPECT_NE(server.code, 0);
  EXPECT_THAT(server.err, HasSubstr("is honed itself"));
}

TEST_F(TlsTest, AWorkerThatDiedIsRevokedWithItsLeases) {
  Daemon worker("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  worker.Start();
  const auto client = LongSession("alice");
  AwaitLeases(worker);
  ASSERT_TRUE(Eventually([&] { return Metric("hone_leases_open") > 2; })) << "more than it runs";
  worker.Kill();
  ASSERT_TRUE(Eventually([&] { return Metric("hone_worker_streams") == 0; }, kCutOffNs));
  ASSERT_GT(Metric("hone_leases_open"), 0);
  const Ran revoked =
      RunToEnd({Program("honed"), "revoke", "measure", "w1", "--server", farm_.Address(), "--tls",
                farm_.Path("root"), "--config", "/dev/null"});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  // Long before it would be lost.
  EXPECT_TRUE(Eventually([&] { return Metric("hone_leases_open") == 0; }, kCutOffNs));
  EXPECT_EQ(Ended("lost"), 0);
}

TEST_F(TlsTest, ARevocationOfANameThatWasNeverIssuedSaysSo) {
  for (const auto& [name, says] : {std::pair("w1", ""), std::pair("wl", "is it spelled as")}) {
    const Ran revoked =
        RunToEnd({Program("honed"), "revoke", "measure", name, "--server", farm_.Address(), "--tls",
                  farm_.Path("root"), "--ca", farm_.Path("ca"), "--config", "/dev/null"});
    EXPECT_EQ(revoked.code, 0) << revoked.err;
    EXPECT_THAT(revoked.out, HasSubstr("is refused from now on"));
    EXPECT_THAT(revoked.err, HasSubstr(says));
    EXPECT_EQ(revoked.err.empty(), std::string_view(says).empty()) << revoked.err;
  }
}

TEST_F(TlsTest, ARevokedCertificateIsCutOffWithItsLeases) {
  Daemon worker("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log"));
  worker.Start();
  const auto client = LongSession("alice");
  AwaitLeases(worker);
  const auto revoke = [&](const char* role, const char* name) {
    const Ran revoked =
        RunToEnd({Program("honed"), "revoke", role, name, "--server", farm_.Address(), "--tls",
                  farm_.Path("root"), "--config", "/dev/null"});
    EXPECT_EQ(revoked.code, 0) << revoked.err;
  };
  revoke("measure", "w1");
  ExpectCutOff(worker, "spiffe://hone/measure/w1 was revoked");
  EXPECT_EQ(Refused("revoked"), 1);
  revoke("submit", "alice");
  std::optional<int> code;
  EXPECT_TRUE(Eventually([&] { return (code = client->Ended()).has_value(); }, kCutOffNs));
  EXPECT_EQ(code, kExitServer);
  EXPECT_THAT(client->Said(), HasSubstr("was revoked"));
  // Neither comes back.
  const Ran again = RunToEnd(farm_.WorkerArgv("w1"));
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("was revoked"));
  EXPECT_THAT(List("alice").err, HasSubstr("was revoked"));
  // The client may just have asked for its session's row, beside its watch.
  EXPECT_GE(Refused("revoked"), 3);
  EXPECT_LE(Refused("revoked"), 4);
}

}  // namespace
}  // namespace hone::farm
