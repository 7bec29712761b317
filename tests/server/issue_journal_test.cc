#include "server/issue_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "base/status.h"
#include "server/ca.h"
#include "tests/server/temporary_folder.h"

namespace hone::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kNow = 1'900'000'000;

db::FarmAudit Entry(int number) {
  return {.at_ms = kNow * 1000 + number,
          .actor = "root",
          .action = "issue",
          .subject = "spiffe://hone/measure/w" + std::to_string(number),
          .detail = "serial 0A, until 2030-03-17T18:46:40Z"};
}

TEST(IssueJournal, WhatAnAuthorityIssuesStandsThereBeforeAnybodyHasIt) {
  const TemporaryFolder folder;
  const std::string ca = folder / "ca";
  ASSERT_TRUE(InitCa(ca, kNow, "eve").ok());
  const IssueOptions issue{.ca_folder = ca,
                           .role = CallerRole::kMeasure,
                           .name = "w1",
                           .out_folder = folder / "w1",
                           .now_unix_s = kNow,
                           .seconds = 3600,
                           .actor = "eve"};
  ASSERT_TRUE(Issue(issue).ok());
  IssueIntake intake(ca, {});
  const std::vector<db::FarmAudit> entries = intake.Take();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].action, "init-ca");
  EXPECT_EQ(entries[1].action, "issue");
  EXPECT_EQ(entries[1].subject, "spiffe://hone/measure/w1");
  EXPECT_EQ(entries[1].actor, "eve");
  EXPECT_EQ(entries[1].at_ms, kNow * 1000);
  EXPECT_THAT(entries[1].detail, HasSubstr("until 2030-03-17T18:46:40Z"));
  EXPECT_THAT(intake.Take(), IsEmpty());
  // No line, no certificate.
  ASSERT_EQ(::unlink((ca + "/issued.log").c_str()), 0);
  ASSERT_EQ(::mkdir((ca + "/issued.log").c_str(), 0700), 0);
  IssueOptions other = issue;
  other.out_folder = folder / "w2";
  EXPECT_FALSE(Issue(other).ok());
  EXPECT_FALSE(ReadFile(folder / "w2/cert.pem").ok());
}

TEST(IssueJournal, EachLineIsTakenOnceHoweverOftenHonedStarts) {
  const TemporaryFolder folder;
  ASSERT_TRUE(AppendIssue(folder / "", Entry(1)).ok());
  IssueIntake first(folder / "", {});
  const std::vector<db::FarmAudit> audit = first.Take();
  EXPECT_EQ(audit, std::vector<db::FarmAudit>{Entry(1)});
  IssueIntake second(folder / "", audit);
  EXPECT_THAT(second.Take(), IsEmpty());
  ASSERT_TRUE(AppendIssue(folder / "", Entry(2)).ok());
  EXPECT_EQ(second.Take(), std::vector<db::FarmAudit>{Entry(2)});
  EXPECT_THAT(second.Take(), IsEmpty());
  // The authority's folder was put back from an older copy, and goes on from there.
  ASSERT_EQ(::unlink((folder / "issued.log").c_str()), 0);
  ASSERT_TRUE(AppendIssue(folder / "", Entry(1)).ok());
  EXPECT_THAT(second.Take(), IsEmpty());
  ASSERT_TRUE(AppendIssue(folder / "", Entry(3)).ok());
  EXPECT_EQ(second.Take(), std::vector<db::FarmAudit>{Entry(3)});
  // Another file of the same length.
  ASSERT_EQ(::unlink((folder / "issued.log").c_str()), 0);
  ASSERT_TRUE(AppendIssue(folder / "", Entry(4)).ok());
  ASSERT_TRUE(AppendIssue(folder / "", Entry(5)).ok());
  EXPECT_EQ(second.Take(), (std::vector<db::FarmAudit>{Entry(4), Entry(5)}));
}

TEST(IssueJournal, TornAndForgedLinesCannotHide) {
  const TemporaryFolder folder;
  ASSERT_TRUE(AppendIssue(folder / "", Entry(1)).ok());
  std::ofstream(folder / "issued.log", std::ios::app) << "1900000000000 root iss";
  IssueIntake intake(folder / "", {});
  EXPECT_THAT(intake.Take(), SizeIs(1)) << "what has no end is not there yet";
  ASSERT_TRUE(AppendIssue(folder / "", Entry(2)).ok());
  const std::vector<db::FarmAudit> entries = intake.Take();
  ASSERT_THAT(entries, SizeIs(2));
  EXPECT_EQ(entries[0].action, "unreadable");
  EXPECT_EQ(entries[0].detail, "1900000000000 root iss");
  EXPECT_EQ(entries[1], Entry(2));
  // Nobody becomes somebody else by a name with a line's end in it.
  db::FarmAudit forged = Entry(3);
  forged.actor = "eve\n1 root issue spiffe://hone/admin/eve x";
  ASSERT_TRUE(AppendIssue(folder / "", forged).ok());
  const std::vector<db::FarmAudit> taken = intake.Take();
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].subject, forged.subject);
}

TEST(IssueJournal, ManyMayAppendAtOnce) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(AppendIssue(folder / "", Entry(100 * t + i)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  IssueIntake intake(folder / "", {});
  const std::vector<db::FarmAudit> entries = intake.Take();
  EXPECT_THAT(entries, SizeIs(100));
  for (const db::FarmAudit& entry : entries) EXPECT_EQ(entry.action, "issue");
}

TEST(IssueJournal, ANameAloneIsWhoeverItWasIssuedTo) {
  const TemporaryFolder folder;
  const std::string ca = folder / "ca";
  ASSERT_TRUE(InitCa(ca, kNow).ok());
  const auto issue = [&](CallerRole role, const std::string& name) {
    ASSERT_TRUE(Issue({.ca_folder = ca,
                       .role = role,
                       .name = name,
                       .out_folder = folder / (std::string(RoleName(role)) + name),
                       .now_unix_s = kNow})
                    .ok());
  };
  issue(CallerRole::kServer, "w1");
  issue(CallerRole::kMeasure, "w1");
  issue(CallerRole::kMeasure, "w1");  // renewed
  issue(CallerRole::kSubmit, "bob");
  issue(CallerRole::kAdmin, "bob");
  const auto worker = IssuedUnder(ca, "w1");
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->Uri(), "spiffe://hone/measure/w1");
  for (const auto& [where, name, why] : {std::tuple{ca, "bob", "as admin and as submit"},
                                         {ca, "w2", "has nobody of the name 'w2'"},
                                         {ca, "w", "has nobody of the name 'w'"},
                                         {folder / "none", "w1", "has nobody of the name 'w1'"}}) {
    const absl::Status refused = IssuedUnder(where, name).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusMessage(refused), HasSubstr(why));
    EXPECT_THAT(StatusMessage(refused), HasSubstr("honed revoke ROLE NAME"));
  }
}

TEST(IssueJournal, NoAuthorityIsNoTrouble) {
  const TemporaryFolder folder;
  IssueIntake intake(folder / "nothing", {});
  EXPECT_THAT(intake.Take(), IsEmpty());
  EXPECT_EQ(intake.TakeTrouble(), "");
}

}  // namespace
}  // namespace hone::server
