#include "server/certificate_ends.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/file.h"
#include "base/log.h"
#include "server/ca.h"
#include "tests/server/temporary_folder.h"

namespace hone::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'900'000'000, kDay = 86400;

TEST(CertificateEnds, OnesThatEndSoonAreToldOfOnceADay) {
  const TemporaryFolder folder;
  ASSERT_TRUE(InitCa(folder / "ca", kNow).ok());
  ASSERT_TRUE(Issue({.ca_folder = folder / "ca",
                     .role = CallerRole::kServer,
                     .name = "h",
                     .out_folder = folder / "h",
                     .now_unix_s = kNow,
                     .seconds = 20 * kDay})
                  .ok());
  std::vector<Identity> callers = {{CallerRole::kMeasure, "w1", kNow + 3 * kDay},
                                   {CallerRole::kMeasure, "w1", kNow + 300 * kDay},
                                   {CallerRole::kSubmit, "alice", kNow + 2 * kDay},
                                   {CallerRole::kSubmit, "gone", kNow - 1}};
  const std::string path = folder / "log";
  const LogSession log({.file = path, .key_value = true});
  CertificateEnds ends(ReadCredentials(folder / "h").value(), [&] { return callers; });
  EXPECT_THAT(ends.All(kNow),
              AllOf(Contains(CertificateEnd{"spiffe://hone/server/h", kNow + 20 * kDay}),
                    Contains(CertificateEnd{"spiffe://hone/measure/w1", kNow + 300 * kDay})));
  EXPECT_EQ(ends.All(kNow).size(), 4U) << "the authority's too, not that of who is gone";
  for (int i = 0; i < 3; ++i) ends.Tell(kNow);
  const std::string said = ReadFile(path).value();
  EXPECT_THAT(said, HasSubstr("event=certificate_ends_soon subject=spiffe://hone/submit/alice "
                              "end=2030-03-19T17:46:40Z days=2\n"));
  EXPECT_EQ(said.find("certificate_ends_soon"), said.rfind("certificate_ends_soon"));
  callers.clear();
  ends.Tell(kNow + 7 * kDay);
  EXPECT_THAT(ReadFile(path).value(), HasSubstr("subject=spiffe://hone/server/h"));
  EXPECT_THAT(CertificateEnds({}, [] { return std::vector<Identity>(); }).All(kNow), IsEmpty())
      << "in plaintext";
}

}  // namespace
}  // namespace hone::server
