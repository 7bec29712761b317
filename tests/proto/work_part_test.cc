#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "proto/convert.h"

namespace hone::proto {
namespace {

using ::testing::HasSubstr;

constexpr Hash128 kToken{0x0123456789abcdef, 0xfedcba9876543210};

// A part is above 0, at most all, and stands beside what it says.
TEST(Convert, PartsOfTheWorkAreBounded) {
  const WorkResult result{.token = kToken, .outcome = measure::Outcome::kOk, .samples_ns = {1}};
  for (const auto& [part_ns, part] :
       {std::pair(0, 0.5), std::pair(5, 1.5), std::pair(5, -0.5), std::pair(-1, 0.5)}) {
    v1::WorkerMessage wire;
    ToWire(WorkerMessage(result), &wire);
    wire.mutable_result()->set_part_ns(part_ns);
    wire.mutable_result()->set_part(part);
    EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr("part")) << part_ns << part;
  }
  // An older worker's.
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(result), &wire);
  EXPECT_EQ(std::get<WorkResult>(*FromWire(wire)).part, 1);
}

}  // namespace
}  // namespace hone::proto
