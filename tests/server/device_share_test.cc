#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// Shares where devices differ in class: what a project had of one class is no debt in another, and
// what it waits for in one is no claim in another.
namespace hone::server {
namespace {

constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kRunLimit = 10 * kSecond;
constexpr double kOff = 0.1;

double Ratio(int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

TEST(DeviceShareTest, WhoComesToASmallClassDoesNotWaitForWhatALargeOneGave) {
  FarmHarness farm;
  for (const char* name : {"a1", "a2", "a3", "a4", "a5", "a6"}) farm.AddDevice(name);
  farm.AddDevice("b", "other");
  farm.AddSession("x", "many devices", 60);
  auto& y = farm.AddSession("y", "one device", 20, "other");
  farm.RunFor(10 * kMinute);
  const int64_t came_ns = farm.now_ns, before_ns = farm.BusyNs(y);
  auto& z = farm.AddSession("z", "new", 20, "other");
  farm.RunFor(10 * kMinute);
  ASSERT_GE(z.first_grant_ns, 0) << "it starved";
  EXPECT_LE(z.first_grant_ns - came_ns, kRunLimit);
  EXPECT_NEAR(Ratio(farm.BusyNs(z), farm.BusyNs(y) - before_ns), 1.0, kOff);
}

TEST(DeviceShareTest, WaitingForADeviceThatIsAwaySavesNoShareUp) {
  FarmHarness farm({{"py", 2, 0}});
  farm.AddDevice("a");
  farm.AddDevice("b");
  auto& y = farm.AddSession("y", "py", 20);
  farm.AddSession("waits", "pp", 20, "laptop");
  farm.RunFor(10 * kMinute);
  const int64_t before_ns = farm.BusyNs(y);
  auto& p = farm.AddSession("p", "pp", 20);
  farm.RunFor(10 * kMinute);
  EXPECT_NEAR(Ratio(farm.BusyNs(y) - before_ns, farm.BusyNs(p)), 2.0, 2 * kOff);
}

TEST(DeviceShareTest, ADeviceThatDriftsIsSharedByThoseOfItsOwnClass) {
  FarmHarness farm;
  auto& a = farm.AddDevice("a");
  auto& b = farm.AddDevice("b");
  auto& c = farm.AddDevice("c");
  farm.Heartbeat(a, 1000);
  farm.Heartbeat(b, 1010);
  farm.Heartbeat(c, 1050);
  auto& x = farm.AddSession("x", "both others", 30);
  auto& y = farm.AddSession("y", "its own", 10, "class as c/cpu:0");
  farm.RunFor(10 * kMinute);
  int64_t before_ns = farm.BusyNs(y);
  auto& z = farm.AddSession("z", "new", 10, "class as c/cpu:0");
  farm.RunFor(10 * kMinute);
  EXPECT_NEAR(Ratio(farm.BusyNs(z), farm.BusyNs(y) - before_ns), 1.0, kOff);
  // It agrees again and serves both classes; nobody is kept from it for what was before.
  farm.Heartbeat(c, 1010);
  for (auto* device : {&a, &b}) farm.farm.OnGone(device->stream, farm.now_ns);
  const int64_t x_ns = farm.BusyNs(x), z_ns = farm.BusyNs(z);
  before_ns = farm.BusyNs(y);
  farm.RunFor(10 * kMinute);
  EXPECT_GT(farm.BusyNs(x) - x_ns, 2 * kMinute);
  EXPECT_GT(farm.BusyNs(y) - before_ns, kMinute);
  EXPECT_GT(farm.BusyNs(z) - z_ns, kMinute);
}

/// After a restart a lease counts for the class that its session's row says, and once.
TEST(DeviceShareTest, LeasesOfAnEarlierStartAreCountedOnce) {
  FarmHarness farm;
  const Hash128 session{4, 4}, token{6, 1};
  db::FarmState stored;
  stored.sessions.push_back({.id = session, .project = "p"});
  stored.leases.push_back({.token = token,
                           .session = session,
                           .attempt = 3,
                           .worker = "w1",
                           .device = "cpu:0",
                           .instance = {9, 9},
                           .state = LeaseState::kGranted});
  farm.farm.Restore(stored, 0);
  farm.farm.BeginSession(
      {.id = session, .project = "p", .target = FarmHarness::kTarget, .device_class = "class"});
  ASSERT_EQ(farm.farm.View(0).projects.size(), 1u);
  EXPECT_EQ(farm.farm.View(0).projects[0].leased, 1);
  farm.farm.EndSession(session, "cancelled", 0);
  EXPECT_EQ(farm.farm.View(0).projects[0].leased, 0);
}

}  // namespace
}  // namespace hone::server
