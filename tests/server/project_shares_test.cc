#include "server/project_shares.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "db/log_file.h"
#include "tests/server/temporary_folder.h"

namespace hone::server {
namespace {

using ::testing::HasSubstr;
using Shares = std::map<std::string, int64_t>;

TEST(ParseShares, TakesNamesWithWholeShares) {
  EXPECT_EQ(ParseShares({"vision=2", "a = b=3"}).value(), (Shares{{"vision", 2}, {"a = b", 3}}));
  EXPECT_EQ(ParseShares({}).value(), Shares{});
  for (const char* wrong : {"vision", "vision=", "vision=0", "vision=-1", "vision=1.5",
                            "vision=1000001", "=2", "vision=99999999999999999999"}) {
    const auto shares = ParseShares({wrong});
    EXPECT_EQ(shares.status().code(), absl::StatusCode::kInvalidArgument) << wrong;
    EXPECT_THAT(StatusMessage(shares.status()), HasSubstr("projects:")) << wrong;
  }
  EXPECT_THAT(StatusMessage(ParseShares({"v=1", "v=2"}).status()), HasSubstr("'v' is given twice"));
}

class SetSharesTest : public ::testing::Test {
 protected:
  std::map<std::string, int64_t> Stored() {
    Shares shares;
    const db::FarmState state = store_->Load().value();
    for (const db::FarmProject& p : state.projects) shares[p.project] = p.share;
    return shares;
  }
  /// As a starting honed does.
  void Set(const Shares& shares) {
    std::vector<db::FarmProject> projects = store_->Load().value().projects;
    ASSERT_TRUE(SetShares(*store_, shares, 5, projects).ok());
    EXPECT_THAT(projects, ::testing::UnorderedElementsAreArray(store_->Load().value().projects));
  }

  TemporaryFolder folder_;
  std::unique_ptr<db::LogFile> log_ =
      db::OpenLog(folder_ / "t.db", {.mode = db::OpenMode::kWrite}).value();
  std::unique_ptr<db::FarmStore> store_ = db::FarmStore::Open(*log_).value();
};

TEST_F(SetSharesTest, WhatChangesIsDurableAndAudited) {
  Set({{"vision", 2}});
  EXPECT_EQ(Stored(), (Shares{{"vision", 2}}));
  Set({{"vision", 2}});
  Set({{"speech", 3}, {"vision", 4}});
  EXPECT_EQ(Stored(), (Shares{{"speech", 3}, {"vision", 4}}));
  Set({});
  EXPECT_EQ(Stored(), (Shares{{"speech", 1}, {"vision", 1}}));
  std::vector<std::string> audited;
  const std::vector<db::FarmAudit> entries = store_->Audit(100).value();
  for (const db::FarmAudit& entry : entries) {
    EXPECT_EQ(entry.action, "share");
    EXPECT_EQ(entry.actor, "honed");
    EXPECT_EQ(entry.at_ms, 5);
    audited.push_back(entry.subject + " " + entry.detail);
  }
  EXPECT_THAT(audited,
              ::testing::UnorderedElementsAre("vision 1 -> 2", "speech 1 -> 3", "vision 2 -> 4",
                                              "speech 3 -> 1", "vision 4 -> 1"));
}

}  // namespace
}  // namespace hone::server
