#include "runtime/info_codec.h"

#include <span>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

TEST(InfoCodec, PrecisionClassAndErrorAreKept) {
  TestModel model = MakeTestModel();
  PackageInfo& info = model.package.info;
  info.precision = "bf16";
  info.accuracy = "strict";
  info.error = {4'200'000, 13'000'000};
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->info, info);

  info.precision = "f32";
  EXPECT_THAT(SerializePackage(model.package).status().message(), HasSubstr("error against f32"));
  info.precision = "f8";
  EXPECT_THAT(SerializePackage(model.package).status().message(), HasSubstr("precision 'f8'"));
  info.precision = "bf16";
  info.error->worst_ppb = -1;
  EXPECT_THAT(SerializePackage(model.package).status().message(), HasSubstr("below zero"));
  info.error.reset();
  info.accuracy = "sloppy";
  EXPECT_THAT(SerializePackage(model.package).status().message(), HasSubstr("class 'sloppy'"));
}

}  // namespace
}  // namespace hone::runtime::testing
