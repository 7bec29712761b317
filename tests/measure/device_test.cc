#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

#include "base/core/cpu.h"
#include "measure/cpu/cpu_device.h"

// The device class is stored in every log: what one machine is called today it is called for ever,
// or its version goes up. The expected texts are those of docs/formats/log.md.
namespace hone::measure {
namespace {

constexpr char kCpuinfo[] =
    "processor\t: 0\n"
    "vendor_id\t: AuthenticAMD\n"
    "cpu family\t: 25\n"
    "model\t\t: 17\n"
    "model name\t: AMD EPYC 9R14\n"
    "stepping\t: 1\n"
    "microcode\t: 0xa101148\n"
    "cache size\t: 1024 KB\n"
    "\n"
    "processor\t: 1\n"
    "vendor_id\t: SomebodyElse\n"
    "model\t\t: 99\n";

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() {
    std::string path = (std::filesystem::temp_directory_path() / "hone-device-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
    Write("cpuinfo", kCpuinfo);
    AddCache(0, "1", "Data", "32K");
    AddCache(1, "1", "Instruction", "64K");
    AddCache(2, "2", "Unified", "1024K");
    AddCache(3, "3", "Unified", "32768K");
  }
  ~DeviceTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void AddCache(int index, const char* level, const char* type, const char* size) const {
    const std::string at = "cpu/cpu0/cache/index" + std::to_string(index) + "/";
    Write(at + "level", level);
    Write(at + "type", type);
    Write(at + "size", size);
  }
  HostDevice Describe() const {
    return DescribeHost((folder_ / "cpuinfo").string(), (folder_ / "cpu").string());
  }
  static std::string Cores() { return std::to_string(OnePerCore(AllowedCpus()).size()); }

  std::filesystem::path folder_;
};

TEST_F(DeviceTest, TheClassOfAKnownMachineStays) {
  const HostDevice device = Describe();
  EXPECT_EQ(device.device_class, "cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c" + Cores());
  EXPECT_EQ(device.fingerprint,
            "model name: AMD EPYC 9R14\nvendor: AuthenticAMD\nfamily: 25\nmodel: 17\nstepping: 1\n"
            "l1: 32K\nl2: 1024K\nl3: 32768K\ncores: " +
                Cores() + "\n");
  EXPECT_NE(device.driver.find("microcode 0xa101148"), std::string::npos) << device.driver;
}

TEST(DescribeDeviceTest, ANumberIsWrittenInOneWay) {
  const auto second = DescribeDevice("cpu:1");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->device_class, DescribeHost().device_class);
  EXPECT_EQ(second->lock, "cpu:1");
  for (const char* name : {"cpu", "cpu:", "cpu:01", "cpu:-1", "cpu:1x", "cpu:12345", "quipu:0"}) {
    EXPECT_EQ(DescribeDevice(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(DeviceTest, SteppingAndMicrocodeMakeNoOtherClass) {
  const std::string before = Describe().device_class;
  std::string text = kCpuinfo;
  text.replace(text.find("stepping\t: 1"), 12, "stepping\t: 2");
  text.replace(text.find("0xa101148"), 9, "0xa101199");
  Write("cpuinfo", text);
  EXPECT_EQ(Describe().device_class, before);
  EXPECT_NE(Describe().fingerprint.find("stepping: 2"), std::string::npos);
}

TEST_F(DeviceTest, WhatCannotBeReadIsUnknown) {
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(Describe().device_class, "cpu-1:unknown-unknown-unknown-l2.0K-l3.0K-c" + Cores());
}

}  // namespace
}  // namespace hone::measure
