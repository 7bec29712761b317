#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"

#include "base/core/unique_fd.h"
#include "tests/farm/tuned_farm.h"
#include "tests/web/http_client.h"

// The log's disk is full: no work is given out, nothing that is held is lost, everything that
// watches honed is told, and work goes on when there is space.
namespace hone::farm {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int kExitServer = 6;

/// A disk of some MiB in memory.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("hone", path_.c_str(), "tmpfs", 0, "size=32m") == 0;
    if (!mounted_) why_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& why() const { return why_; }
  const std::string& path() const { return path_; }

  /// Leaves no byte free.
  void Fill() const {
    const UniqueFd fd(::open(Ballast().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd.valid()) << std::strerror(errno);
    for (size_t size : {size_t{1} << 20, size_t{1} << 12, size_t{1}}) {
      const std::string bytes(size, 'x');
      while (::write(fd.get(), bytes.data(), bytes.size()) > 0) {
      }
    }
    ASSERT_EQ(errno, ENOSPC) << std::strerror(errno);
  }
  void Free() const { std::filesystem::remove(Ballast()); }

 private:
  std::string Ballast() const { return path_ + "/ballast"; }

  const std::string path_;
  bool mounted_ = false;
  std::string why_;
};

class FullDiskTest : public TunedFarm {
 protected:
  FullDiskTest()
      : TunedFarm({"w1"}, "squeezenet"),
        disk_(farm_.Path("disk")),
        metrics_port_(FreePort()),
        w1_("w1", farm_.WorkerArgv("w1"), farm_.Path("w1.log")) {
    // Fast cores measure 30 a second, and the disk fills while some run.
    trials_ = 240;
    farm_.KeepLogIn(disk_.path());
    farm_.Issue("submit", "mallory");
  }

  std::string Metrics() const { return web_test::Ask(metrics_port_, "/metrics").body; }
  /// The value of a series, -1 where there is none.
  double Metric(const std::string& series) const {
    const std::string text = "\n" + Metrics();
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
  /// How often the worker came to honed.
  size_t Connected() const {
    constexpr std::string_view kWords = "connected to honed";
    const std::string said = w1_.Said();
    size_t count = 0;
    for (size_t at = 0; (at = said.find(kWords, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  size_t Acknowledged() const {
    size_t count = 0;
    for (const auto& words : LinesOf(farm_.Journal("w1"))) count += words[0] == "ack";
    return count;
  }

  SmallDisk disk_;
  const int metrics_port_;
  Daemon w1_;
};

TEST_F(FullDiskTest, GrantsStopAndNothingElseAndWorkGoesOnWhenThereIsSpace) {
  if (!disk_.mounted()) {
    GTEST_SKIP() << "no small disk can be mounted here (it takes root): " << disk_.why();
  }
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  const std::vector<std::string> words = {
      "--metrics-listen", "127.0.0.1:" + std::to_string(metrics_port_), "--run-by-seconds", "7"};
  honed.Start(words);
  w1_.Start();
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(Eventually([&] { return Acknowledged() > 5 && Metric("hone_leases_open") > 0; }))
      << w1_.Said() << honed.Said();

  const size_t connected = Connected();
  EXPECT_GT(connected, 0U) << w1_.Said();
  disk_.Fill();
  ASSERT_TRUE(Eventually([&] { return Metric("hone_log_writable") == 0; })) << honed.Said();
  const size_t acknowledged = Acknowledged();
  const auto health = web_test::Ask(metrics_port_, "/healthz");
  EXPECT_EQ(health.status, 503);
  EXPECT_THAT(health.body, HasSubstr("nothing can be written"));
  // Somebody who wants more is told at once.
  const Ran refused = RunToEnd(Hone({"tune", Model(), "--target", "cpu:avx2", "--threads", "1",
                                     "--trials", "5", "--seed", "99"}));
  EXPECT_EQ(refused.code, kExitServer);
  EXPECT_THAT(refused.err, HasSubstr("disk is full; free some space"));
  const Ran listed = RunToEnd(Hone({"device", "list"}));
  EXPECT_EQ(listed.code, kExitServer);
  EXPECT_THAT(listed.err, HasSubstr("disk is full; free some space"));
  // A stolen certificate is cut off all the same.
  const Ran revoked =
      RunToEnd({Program("honed"), "revoke", "submit", "mallory", "--server", farm_.Address(),
                "--tls", farm_.Path("root"), "--config", "/dev/null"});
  EXPECT_NE(revoked.code, 0);
  EXPECT_THAT(revoked.err, HasSubstr("is refused from now on, but not yet durably"));
  std::vector<std::string> stolen = {Program("hone"), "session", "list"};
  for (const std::string& word : farm_.ServerWords("mallory")) stolen.push_back(word);
  EXPECT_THAT(RunToEnd(stolen).err, HasSubstr("was revoked"));
  // What only reads is answered.
  EXPECT_FALSE(Compile(farm_.ServerWords("alice"), "meanwhile.hone").empty());
  // Longer than a candidate may run: the disk's fault is no candidate's.
  clock_.SleepNs(8 * kNsPerSecond);
  EXPECT_EQ(Acknowledged(), acknowledged) << "an acknowledgement of what is not durable";
  EXPECT_EQ(Metric("hone_worker_streams"), 1);
  EXPECT_GT(Metric("hone_leases_open"), 0);
  EXPECT_EQ(Metric("hone_log_writable"), 0);

  disk_.Free();
  ASSERT_TRUE(Eventually([&] { return Metric("hone_log_writable") == 1; })) << honed.Said();
  EXPECT_TRUE(Eventually([&] { return Acknowledged() > acknowledged + 5; })) << w1_.Said();
  EXPECT_TRUE(Eventually([&] { return web_test::Ask(metrics_port_, "/healthz").status == 200; }));
  AwaitSession();
  for (const char* how : {"lost", "expired", "returned"}) {
    EXPECT_EQ(Metric(std::string("hone_leases_ended_total{reason=\"") + how + "\"}"), 0) << how;
  }
  EXPECT_EQ(Metric("hone_condemned_total"), 0);
  EXPECT_EQ(Metric("hone_worker_streams_replaced_total"), 0);
  EXPECT_EQ(Connected(), connected) << "its stream stayed: " << w1_.Said();
  CheckPackages(honed, {&w1_});
  CheckLog(0);
}

// A service manager that restarts honed does not wait for whoever frees the disk.
TEST_F(FullDiskTest, AnEndDoesNotWaitForSpaceAndTheSessionGoesOnAfterwards) {
  if (!disk_.mounted()) {
    GTEST_SKIP() << "no small disk can be mounted here (it takes root): " << disk_.why();
  }
  Daemon honed("honed", farm_.HonedArgv(), farm_.Path("honed.log"));
  const std::vector<std::string> words = {"--metrics-listen",
                                          "127.0.0.1:" + std::to_string(metrics_port_)};
  honed.Start(words);
  w1_.Start();
  ASSERT_TRUE(KeepTuning());
  ASSERT_TRUE(Eventually([&] { return Acknowledged() > 5 && Metric("hone_leases_open") > 0; }))
      << w1_.Said() << honed.Said();
  disk_.Fill();
  ASSERT_TRUE(Eventually([&] { return Metric("hone_log_writable") == 0; })) << honed.Said();
  EXPECT_EQ(honed.Terminate(15 * kNsPerSecond), 0) << honed.Said();
  disk_.Free();
  honed.Start(words);
  AwaitSession();
  CheckPackages(honed, {&w1_});
  CheckLog(0);
}

}  // namespace
}  // namespace hone::farm
