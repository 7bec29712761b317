#include "client/live_watch.h"

#include <atomic>
#include <optional>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/fake_clock.h"
#include "client/arguments.h"
#include "client/option_table.h"
#include "tests/client/server_stub.h"

namespace hone::client {
namespace {

using proto::SessionEvent;
using ::testing::HasSubstr;

constexpr int64_t kNsPerMs = 1'000'000;

/// A server on which nothing happens: after its first word a watch is silent.
class QuietServer final : public testing::ServerStub {
 public:
  absl::Status Watch(const Hash128&, int64_t*, const OnEvent& on_event,
                     const std::function<bool()>& stop, int64_t) override {
    on_event({.kind = SessionEvent::Kind::kState});
    const SystemMonotonicClock clock;
    while (!stop()) clock.SleepNs(kNsPerMs);
    return absl::CancelledError("detached");
  }
  absl::StatusOr<proto::SessionInfo> FindSession(const Hash128&) override {
    ++asked;
    return proto::SessionInfo{.reason = "waiting for a device that can run it"};
  }

  std::atomic<int> asked{0};
};

/// A second passes with each look at it, so that each is a frame.
class RunningClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override { return 1'000 * kNsPerMs * ++looks; }
  void SleepNs(int64_t) const override {}

  mutable std::atomic<int> looks{0};
};

/// What standard error gets until it has been told the session's row, and three looks more.
std::string Watched(const Arguments& arguments, bool terminal) {
  const RunningClock clock;
  const Environment environment{.clock = &clock, .error_is_terminal = terminal};
  std::ostringstream out, err;
  CommandContext context{arguments, environment, out, err};
  QuietServer server;
  ServerProgress progress({{.row = {.name = "conv"}, .workload = ""}});
  LiveWatch watch(context, server, server, {.redraw_ns = kNsPerMs, .ask_ns = kNsPerMs});
  std::optional<int> looks;  // when the row had been told
  const absl::Status watched = watch.Run(
      {}, progress, [](const SessionEvent&) {},
      [&] {
        if (server.asked < 2) return false;
        if (!looks) looks = clock.looks;
        return clock.looks > *looks + 2;
      },
      kNsPerMs);
  EXPECT_EQ(watched.code(), absl::StatusCode::kCancelled);
  return err.str();
}

TEST(LiveWatch, ItsTableIsRedrawnAndSaysWhyItWaitsAlsoWhenNothingHappens) {
  EXPECT_THAT(Watched({}, true), HasSubstr("waiting for a device that can run it"));
}

TEST(LiveWatch, AProgramThatReadsJsonGetsALineEverySecond) {
  Arguments arguments(*FindCommand("tune"));
  arguments.Set("json", {"true"});
  std::istringstream lines(Watched(arguments, false));
  int told = 0;
  for (std::string line; std::getline(lines, line); ++told) {
    EXPECT_EQ(line.find(R"({"progress":{"text":)"), 0U) << line;
    EXPECT_THAT(line, HasSubstr(R"("candidates":0)"));
  }
  EXPECT_GE(told, 3);  // looks, each a second after the one before
}

/// Measures a candidate at once after its first word, and ends.
class SwiftServer final : public testing::ServerStub {
 public:
  absl::Status Watch(const Hash128&, int64_t*, const OnEvent& on_event,
                     const std::function<bool()>&, int64_t) override {
    on_event({.kind = SessionEvent::Kind::kState});
    on_event({.kind = SessionEvent::Kind::kProposed, .attempt = 1, .proposer = "default"});
    on_event({.kind = SessionEvent::Kind::kMeasured, .attempt = 1, .median_ns = 1000});
    return absl::OkStatus();
  }
};

TEST(LiveWatch, TheLastLineForAProgramTellsAllThatWasMeasured) {
  Arguments arguments(*FindCommand("tune"));
  arguments.Set("json", {"true"});
  const FakeClock clock(0, 0);  // stands, so that no pause between two lines ends
  const Environment environment{.clock = &clock};
  std::ostringstream out, err;
  CommandContext context{arguments, environment, out, err};
  SwiftServer server;
  ServerProgress progress({{.row = {.name = "conv"}, .workload = ""}});
  LiveWatch watch(context, server, server, {});
  ASSERT_TRUE(watch
                  .Run({}, progress, [](const SessionEvent&) {}, [] { return false; }, kNsPerMs)
                  .ok());
  std::istringstream lines(err.str());
  std::string first, last, more;
  std::getline(lines, first);
  std::getline(lines, last);
  EXPECT_FALSE(std::getline(lines, more)) << more;
  EXPECT_THAT(first, HasSubstr(R"("candidates":0)"));
  EXPECT_THAT(last, HasSubstr(R"("candidates":1)"));
}

}  // namespace
}  // namespace hone::client
