#include "server/web/page_routes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "server/web/page_assets.h"
#include "tests/web/known_farm.h"

namespace hone::server::web {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using web_test::Hostile;
using web_test::KnownFarm;

class PageRoutesTest : public ::testing::Test {
 protected:
  HttpResponse Get(const std::string& path, std::map<std::string, std::string> query = {}) {
    return routes_.Serve({.path = path, .query = std::move(query)});
  }
  json GetJson(const std::string& path, std::map<std::string, std::string> query = {}) {
    const HttpResponse answer = Get(path, std::move(query));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.content_type, "application/json; charset=utf-8");
    return json::parse(answer.body);
  }

  KnownFarm farm_;
  PageRoutes routes_{farm_};
};

TEST_F(PageRoutesTest, TheFarmIsVersionedAndWhole) {
  const json farm = GetJson("/api/v1/farm");
  EXPECT_EQ(farm["version"], 1);
  EXPECT_EQ(farm["queue"]["waiting"], 37);
  EXPECT_EQ(farm["sessions_running"], 2);
  EXPECT_EQ(farm["queue"]["oldest_s"], 0.4);
  EXPECT_EQ(farm["counters"]["leases"]["expired"], 3);
  EXPECT_EQ(farm["counters"]["outcomes"]["wrong_answer"], 5);
  ASSERT_EQ(farm["devices"].size(), 5u);
  EXPECT_EQ(farm["devices"][0]["busy"], 0.97);
  EXPECT_TRUE(farm["devices"][3]["busy"].is_null());
  EXPECT_EQ(farm["devices"][3]["state"], "quarantined");
  EXPECT_EQ(farm["devices"][2]["worker"], Hostile("worker")) << "as it is: the page escapes";
  ASSERT_EQ(farm["sessions"].size(), 5u);
  const json& known = farm["sessions"][0];
  EXPECT_EQ(known["id"], KnownFarm::KnownSession().ToHex());
  EXPECT_DOUBLE_EQ(known["default_ms"], 40);
  EXPECT_DOUBLE_EQ(known["best_ms"], 20);
  EXPECT_EQ(known["measured_tasks"], known["tasks"]);
  EXPECT_DOUBLE_EQ(known["left_s"], 180);
  EXPECT_EQ(known["failed"], 17);
  EXPECT_LE(known["curve"].size(), 62u);
  EXPECT_DOUBLE_EQ(known["curve"].front()[1], 40);
  EXPECT_DOUBLE_EQ(known["curve"].back()[1], 20);
  EXPECT_TRUE(farm["sessions"][2]["left_s"].is_null()) << "it has ended";
}

TEST_F(PageRoutesTest, ASessionHasTasksAndFailuresByCause) {
  const json session = GetJson("/api/v1/session", {{"id", KnownFarm::KnownSession().ToHex()}});
  ASSERT_EQ(session["task_list"].size(), 8u);
  EXPECT_DOUBLE_EQ(session["task_list"][0]["best_us"], 2500);
  // By the fastest probe of its class: 16 cores of 131.2 GFLOP/s.
  EXPECT_DOUBLE_EQ(session["task_list"][0]["roofline"],
                   2 * 1000 * 500 * 500 / (16 * 131.2) / 2.5e6);
  EXPECT_DOUBLE_EQ(session["task_list"][0]["share"], 0.125);
  EXPECT_EQ(session["trials"][0]["outcome"], "run_timeout");
  EXPECT_TRUE(session["trials"][0]["us"].is_null());
  EXPECT_EQ(session["trials"][0]["task"], "layer0.conv+relu");
  ASSERT_EQ(session["failures"].size(), 3u);
  EXPECT_EQ(session["failures"][0]["count"], 11);
  EXPECT_EQ(session["failures"][0]["outcome"], "run_crashed");
  EXPECT_EQ(session["failures"][0]["cause"], "signal # at address #: guard page after buffer x1");
  const json& example = session["failures"][0]["examples"][0];
  EXPECT_EQ(example["task"], "layer2.conv+relu");
  const json attempt = GetJson(
      "/api/v1/attempt", {{"session", KnownFarm::KnownSession().ToHex()}, {"id", example["id"]}});
  EXPECT_THAT(attempt["trace"].get<std::string>(), HasSubstr("split(s2.i1, [7, 4, 10])"));
  EXPECT_EQ(attempt["outcome"], "run_crashed");
}

TEST_F(PageRoutesTest, TimeGoesOnWhileNothingIsAnswered) {
  const auto known = [&] { return GetJson("/api/v1/farm")["sessions"][0]; };
  EXPECT_DOUBLE_EQ(known()["elapsed_s"], 60);
  EXPECT_EQ(known()["waits"], "");
  farm_.set_open({.left_ns = 100'000'000'000, .waits = "waiting for a device that can run it"});
  EXPECT_DOUBLE_EQ(known()["left_s"], 100);
  EXPECT_DOUBLE_EQ(known()["elapsed_s"], 140);
  EXPECT_EQ(known()["waits"], "waiting for a device that can run it");
  const json session = GetJson("/api/v1/session", {{"id", KnownFarm::KnownSession().ToHex()}});
  EXPECT_DOUBLE_EQ(session["left_s"], 100);
  // Without a deadline its pace alone tells.
  farm_.set_open({});
  EXPECT_DOUBLE_EQ(known()["left_s"], 180);
}

TEST_F(PageRoutesTest, EachTaskHasItsBestTrace) {
  const std::string id = KnownFarm::KnownSession().ToHex();
  const json session = GetJson("/api/v1/session", {{"id", id}});
  const std::string workload = session["task_list"][2]["workload"];
  const json best = GetJson("/api/v1/best", {{"session", id}, {"workload", workload}});
  EXPECT_EQ(best["workload"], workload);
  EXPECT_EQ(best["task"], session["task_list"][2]["name"]);
  EXPECT_DOUBLE_EQ(best["median_us"], 1500);
  EXPECT_EQ(best["rigor"], "verified");
  EXPECT_THAT(best["trace"].get<std::string>(), HasSubstr("split(s2.i1, [3, 16, 6])"));
  // Nothing is told about another session's task.
  EXPECT_EQ(Get("/api/v1/best", {{"session", id}, {"workload", Hash128{5, 5}.ToHex()}}).status,
            404);
  EXPECT_EQ(Get("/api/v1/best", {{"session", id}}).status, 400);
}

TEST_F(PageRoutesTest, DevicesSayWhatTheyAreAndWhyTheyAreOut) {
  const json farm = GetJson("/api/v1/farm");
  const json& quarantined = farm["devices"][3];
  EXPECT_EQ(quarantined["reason"], "failed on two candidates that are good elsewhere");
  EXPECT_EQ(farm["devices"][2]["sandboxed"], false);
  EXPECT_EQ(quarantined["probes"]["flop_per_second"], 1.312e11);
  EXPECT_EQ(quarantined["program_version"], "0.1.0");
  EXPECT_EQ(farm["counters"]["quarantined"], 1);
  EXPECT_EQ(farm["counters"]["held_back"], 12);
}

TEST_F(PageRoutesTest, WhatIsNotThereIsSaid) {
  for (const char* path : {"/x", "/../etc/passwd", "/api/v1", "/api/v2/farm", "/page.js/", ""}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
  EXPECT_EQ(Get("/api/v1/session").status, 400);
  EXPECT_EQ(Get("/api/v1/session", {{"id", "zz"}}).status, 400);
  EXPECT_EQ(Get("/api/v1/session", {{"id", Hash128{5, 5}.ToHex()}}).status, 404);
  const HttpResponse none = Get("/api/v1/attempt", {{"session", KnownFarm::KnownSession().ToHex()},
                                                    {"id", Hash128{}.ToHex()}});
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(json::parse(none.body)["error"], "no such failed attempt");
}

TEST_F(PageRoutesTest, HealthSaysWhatIsWrong) {
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  farm_.set_trouble("nothing can be written: disk full");
  EXPECT_EQ(Get("/healthz").status, 503);
  EXPECT_EQ(GetJson("/api/v1/farm")["trouble"], "nothing can be written: disk full");
}

TEST_F(PageRoutesTest, LongSessionsAreReadOverSeveralPolls) {
  farm_.AddLongSession({7, 7}, 30'000);  // 60,000 events
  int64_t before = 0;
  for (int poll = 1; poll <= 4; ++poll) {
    const json farm = GetJson("/api/v1/farm");
    EXPECT_LE(farm_.events_read() - before, 20'000);
    before = farm_.events_read();
    EXPECT_EQ(farm["sessions"].back()["complete"], poll == 4) << poll;
    EXPECT_EQ(farm["sessions"][0]["complete"], true) << "what runs comes first";
  }
  EXPECT_EQ(GetJson("/api/v1/farm")["sessions"].back()["attempts"], 30'000);
  EXPECT_EQ(farm_.events_read(), before) << "nothing is read twice";
}

TEST(PageAssets, NothingComesFromOutsideAndNothingIsInline) {
  std::set<std::string_view> paths;
  for (const PageAsset& asset : PageAssets()) {
    paths.insert(asset.path);
    const std::string text(asset.text);
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
                             "https://", "//cdn", "@import", "url(",
                             "javascript:", " style=", "onclick", "onload", "new Function"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << asset.path << " has " << word;
    }
    size_t urls = 0;
    for (size_t at = 0; (at = text.find("http:", at)) != std::string::npos; ++at) ++urls;
    size_t names = 0;
    for (size_t at = 0; (at = text.find("http://www.w3.org/2000/svg", at)) != std::string::npos;
         ++at)
      ++names;
    EXPECT_EQ(urls, names) << asset.path;
  }
  EXPECT_EQ(paths, (std::set<std::string_view>{"/", "/page.css", "/page.js", "/icon.svg"}));
}

}  // namespace
}  // namespace hone::server::web
