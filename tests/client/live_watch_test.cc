#include "client/live_watch.h"

#include <atomic>
#include <optional>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/arguments.h"

namespace hone::client {
namespace {

using proto::SessionEvent;
using ::testing::HasSubstr;

constexpr int64_t kNsPerMs = 1'000'000;

/// A server on which nothing happens: after its first word a watch is silent.
class QuietServer final : public ServerConnection {
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
  absl::StatusOr<Started> StartSession(const proto::SessionSpec&) override { return No(); }
  absl::Status CancelSession(const Hash128&) override { return No(); }
  absl::StatusOr<std::vector<proto::SessionInfo>> ListSessions(int) override { return No(); }
  absl::StatusOr<Found> FindRecords(const proto::FindRecords&) override { return No(); }
  absl::StatusOr<std::string> Snapshot(const std::string&, Use) override { return No(); }
  absl::StatusOr<std::string> PutPackage(const std::string&) override { return No(); }
  absl::StatusOr<ModelAnswer> JudgeModel(const ModelQuestion&) override { return No(); }
  absl::StatusOr<std::vector<proto::DeviceInfo>> ListDevices() override { return No(); }
  absl::Status SetDevice(const std::string&, const std::string&, proto::DeviceAction) override {
    return No();
  }
  const std::string& address() const override { return address_; }

  std::atomic<int> asked{0};

 private:
  static absl::Status No() { return absl::UnimplementedError("no part of this test"); }
  const std::string address_ = "quiet";
};

/// A second passes with each look at it, so that each is a frame.
class RunningClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override { return 1'000 * kNsPerMs * ++looks; }
  void SleepNs(int64_t) const override {}

  mutable std::atomic<int> looks{0};
};

TEST(LiveWatch, ItsTableIsRedrawnAndSaysWhyItWaitsAlsoWhenNothingHappens) {
  const RunningClock clock;
  const Environment environment{.clock = &clock, .error_is_terminal = true};
  const Arguments arguments;
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
  EXPECT_THAT(err.str(), HasSubstr("waiting for a device that can run it"));
}

}  // namespace
}  // namespace hone::client
