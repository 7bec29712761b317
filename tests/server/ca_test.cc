#include "server/ca.h"

#include <sys/stat.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/credentials.h"
#include "base/file.h"
#include "base/status.h"
#include "server/known_certificates.h"
#include "tests/server/temporary_folder.h"

namespace hone::server {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'900'000'000;

TEST(Ca, IssuesCredentialsWithOneNameThatOnlyTheOwnerCanRead) {
  const TemporaryFolder folder;
  const std::string ca = folder / "ca";
  ASSERT_TRUE(InitCa(ca, kNow).ok());
  EXPECT_EQ(InitCa(ca, kNow).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Issue({.ca_folder = ca,
                     .role = CallerRole::kMeasure,
                     .name = "w1",
                     .out_folder = folder / "w1",
                     .now_unix_s = kNow,
                     .seconds = 3600})
                  .ok());
  const auto credentials = ReadCredentials(folder / "w1");
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const auto identity = IdentityOf(credentials->certificate);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(*identity, (Identity{CallerRole::kMeasure, "w1", kNow + 3600}));
  EXPECT_EQ(identity->Uri(), "spiffe://hone/measure/w1");
  EXPECT_EQ(credentials->ca, ReadFile(ca + "/ca.pem").value());
  for (const std::string& key : {ca + "/ca.key", folder / "w1/key.pem"}) {
    struct stat info {};
    ASSERT_EQ(::stat(key.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << key;
  }
}

TEST(Ca, KeysThatOthersCanReadAreRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  ASSERT_TRUE(Issue({.ca_folder = folder / "ca",
                     .role = CallerRole::kSubmit,
                     .name = "alice",
                     .out_folder = folder / "alice",
                     .now_unix_s = kNow})
                  .ok());
  ASSERT_EQ(::chmod((folder / "alice/key.pem").c_str(), 0640), 0);
  const absl::Status refused = ReadCredentials(folder / "alice").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("chmod 600"));
}

TEST(Ca, AnAuthorityWhoseKeyOthersReadIssuesNothing) {
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  const IssueOptions options{
      .ca_folder = folder / "ca", .name = "a", .out_folder = folder / "a", .now_unix_s = kNow};
  ASSERT_TRUE(Issue(options).ok());
  std::filesystem::permissions(folder / "ca/ca.key", std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  const absl::Status refused = Issue(options);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("chmod 600"));
}

TEST(Ca, WhereThereIsNoAuthorityTheCommandThatMakesOneIsNamed) {
  const TemporaryFolder folder;
  const absl::Status refused = Issue({.ca_folder = folder / "ca", .name = "a"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("`honed init-ca --ca "));
}

TEST(Ca, ACertificateDoesNotOutliveItsAuthority) {
  constexpr int64_t kDay = 86400;
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  const auto issue = [&](int64_t now_s, int64_t days) {
    return Issue({.ca_folder = folder / "ca",
                  .name = "a",
                  .out_folder = folder / "a",
                  .now_unix_s = now_s,
                  .seconds = days * kDay});
  };
  for (const int64_t days : {int64_t{3651}, int64_t{1'000'000'000}}) {
    const absl::Status refused = issue(kNow, days);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusMessage(refused), HasSubstr("at most --days 3650"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_TRUE(issue(kNow, 3650).ok());
  EXPECT_EQ(IdentityOf(ReadFile(folder / "a/cert.pem").value())->expires_unix_s,
            kNow + 3650 * kDay);
  EXPECT_THAT(StatusMessage(issue(kNow + 3650 * kDay, 1)), HasSubstr("begin a new one"));
}

TEST(Ca, CredentialsOfAnotherIdentityAreNotWrittenOver) {
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  const auto issue = [&](CallerRole role, const std::string& out) {
    return Issue({.ca_folder = folder / "ca",
                  .role = role,
                  .name = "bob",
                  .out_folder = folder / out,
                  .now_unix_s = kNow});
  };
  ASSERT_TRUE(issue(CallerRole::kSubmit, "bob").ok());
  const std::string key = ReadFile(folder / "bob/key.pem").value();
  const std::string issued = ReadFile(folder / "ca/issued.log").value();
  const absl::Status refused = issue(CallerRole::kAdmin, "bob");
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("is of spiffe://hone/submit/bob"));
  EXPECT_THAT(StatusMessage(refused), HasSubstr("(--out)"));
  EXPECT_EQ(ReadFile(folder / "bob/key.pem").value(), key);
  // Nor what is no farm's, nor beside the authority's key.
  std::filesystem::create_directory(folder / "other");
  ASSERT_TRUE(WriteFileAtomically(folder / "other/cert.pem", "of a web server").ok());
  EXPECT_THAT(StatusMessage(issue(CallerRole::kAdmin, "other")),
              HasSubstr("is no certificate of a farm"));
  EXPECT_THAT(StatusMessage(issue(CallerRole::kAdmin, "ca")), HasSubstr("of an authority"));
  EXPECT_EQ(ReadFile(folder / "ca/issued.log").value(), issued) << "nothing was issued";
  // A renewal.
  EXPECT_TRUE(issue(CallerRole::kSubmit, "bob").ok());
  EXPECT_NE(ReadFile(folder / "bob/key.pem").value(), key);
}

TEST(Ca, ANameInTwoRolesIsTwoOwners) {
  const Identity submit{.role = CallerRole::kSubmit, .name = "bob"};
  const Identity publish{.role = CallerRole::kPublish, .name = "bob"};
  EXPECT_EQ(submit.Owner(), "bob");
  EXPECT_EQ(publish.Owner(), "publish/bob");
}

TEST(Ca, HonedItselfIsNotRevoked) {
  const absl::Status refused = MayRevoke({.role = CallerRole::kServer, .name = "tuner"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("issue a new one"));
  for (const CallerRole role : {CallerRole::kSubmit, CallerRole::kMeasure, CallerRole::kAdmin}) {
    EXPECT_TRUE(MayRevoke({.role = role, .name = "a"}).ok());
  }
}

TEST(Ca, OnlyNamesOfTheFarmAreIdentities) {
  for (const char* bad :
       {"spiffe://hone/measure/", "spiffe://hone/boss/x", "spiffe://hone/measure/a/b",
        "spiffe://hone/measure/a b", "spiffe://hone/measure/.", "spiffe://hone/measure/..",
        "spiffe://other/measure/a", "hone/measure/a", ""}) {
    EXPECT_FALSE(ParseIdentity(bad).ok()) << bad;
  }
  EXPECT_EQ(ParseIdentity("spiffe://hone/admin/a.b_c-9")->name, "a.b_c-9");
  EXPECT_EQ(IdentityOf("no certificate").status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(Ca, WhatTheAuthorityIssuedToClientsIsKnownAlsoWhenItIsOver) {
  const TemporaryFolder folder;
  // This one looks at the machine's clock.
  const int64_t now_s = SystemWallClock().UnixNs() / 1'000'000'000;
  ASSERT_TRUE(InitCa(folder / "ca", now_s).ok());
  ASSERT_TRUE(InitCa(folder / "other", now_s).ok());
  const std::string ca = ReadFile(folder / "ca/ca.pem").value();
  const auto issue = [&](const std::string& from, CallerRole role, int64_t seconds) {
    const std::string out = folder / std::string(RoleName(role));
    EXPECT_TRUE(Issue({.ca_folder = folder / from,
                       .role = role,
                       .name = "a",
                       .out_folder = out,
                       .now_unix_s = now_s,
                       .seconds = seconds})
                    .ok());
    return ReadFile(out + "/cert.pem").value();
  };
  for (const CallerRole role : {CallerRole::kSubmit, CallerRole::kMeasure, CallerRole::kAdmin}) {
    EXPECT_EQ(IssuedBy(ca, issue("ca", role, 3600)), absl::OkStatus());
    EXPECT_EQ(IssuedBy(ca, issue("ca", role, -60)), absl::OkStatus());
    EXPECT_EQ(IssuedBy(ca, issue("other", role, 3600)).code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(IssuedBy(ca, issue("other", role, -60)).code(), absl::StatusCode::kUnauthenticated);
  }
  EXPECT_THAT(StatusMessage(IssuedBy(ca, issue("ca", CallerRole::kServer, 3600))),
              HasSubstr("purpose"));
  EXPECT_THAT(StatusMessage(IssuedBy(ca, "")), HasSubstr("no client certificate"));
  // A signature that was tampered with: the last bytes are its own.
  std::string forged = issue("ca", CallerRole::kAdmin, 3600);
  const size_t at = forged.rfind("\n-----END") - 8;
  forged[at] = forged[at] == 'A' ? 'B' : 'A';
  EXPECT_EQ(IssuedBy(ca, forged).code(), absl::StatusCode::kUnauthenticated);
  // An authority that is over issued nothing that counts, when it still could.
  ASSERT_TRUE(InitCa(folder / "old", now_s - int64_t{20} * 365 * 86400).ok());
  EXPECT_THAT(
      StatusMessage(IssuedBy(ReadFile(folder / "old/ca.pem").value(),
                             issue("old", CallerRole::kSubmit, -int64_t{15} * 365 * 86400))),
      HasSubstr("expired"));
}

TEST(Ca, ACertificateOfTheAuthorityItselfIsNobody) {
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  const std::string pem = ReadFile(folder / "ca/ca.pem").value();
  EXPECT_EQ(IdentityOf(pem).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(KnownCertificatesTest, ReadsWhatItHasNotSeenAndKeepsNoErrors) {
  const TemporaryFolder folder;
  const std::string ca = folder / "ca";
  ASSERT_TRUE(InitCa(ca, kNow).ok());
  KnownCertificates known;
  for (const std::string name : {"w1", "w2"}) {
    ASSERT_TRUE(Issue({.ca_folder = ca,
                       .role = CallerRole::kMeasure,
                       .name = name,
                       .out_folder = folder / name,
                       .now_unix_s = kNow})
                    .ok());
    const auto credentials = ReadCredentials(folder / name);
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    for (int i = 0; i < 3; ++i) {
      const auto identity = known.IdentityOf(credentials->certificate);
      ASSERT_TRUE(identity.ok()) << identity.status();
      EXPECT_EQ(identity->name, name);
    }
    EXPECT_FALSE(known.IdentityOf(credentials->certificate.substr(1)).ok());
    EXPECT_FALSE(known.IdentityOf("").ok());
  }
  EXPECT_EQ(known.size(), 2u);
}

}  // namespace
}  // namespace hone::server
