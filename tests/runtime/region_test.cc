#include "runtime/region.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <string>

#include "runtime/executable.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// How many bytes of this process lie in such.
size_t AnonymousHugePages() {
  std::ifstream smaps("/proc/self/smaps");
  size_t sum = 0, kib = 0;
  for (std::string word; smaps >> word;) {
    if (word == "AnonHugePages:" && smaps >> kib) sum += kib << 10;
  }
  return sum;
}

class LargePackage : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "hone_region_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    model_ = testing::MakeTestModel();
    model_.constants.resize(8 * kMiB / sizeof(float), 0.5F);
    model_.package.constants = std::as_bytes(std::span(model_.constants));
    ASSERT_TRUE(WritePackage(model_.package, folder_ + "/m.hone").ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<const Executable> Open(bool copy) {
    auto executable = Executable::Open(folder_ + "/m.hone", {.copy_constants = copy});
    EXPECT_TRUE(executable.ok()) << executable.status().ToString();
    EXPECT_EQ((*executable)->constants().size(), 8 * kMiB);
    EXPECT_EQ(std::memcmp((*executable)->constants().data(), model_.constants.data(), 8 * kMiB), 0);
    return *std::move(executable);
  }

  std::string folder_;
  testing::TestModel model_;
};

TEST_F(LargePackage, CopiedConstantsLieInHugePagesWhereTheSystemGivesThem) {
  std::ifstream modes("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string text(std::istreambuf_iterator<char>(modes), {});
  if (text.empty() || text.find("[never]") != std::string::npos)
    GTEST_SKIP() << "the system gives no huge pages";
  const size_t before = AnonymousHugePages();
  const auto executable = Open(/*copy=*/true);
  EXPECT_GE(AnonymousHugePages(), before + 4 * kMiB);
}

// Whether the kernel takes the offer depends on the file system; the bytes are the file's.
TEST_F(LargePackage, AMappedFileIsOfferedForHugePages) {
  const auto executable = Open(/*copy=*/false);
  const auto address = reinterpret_cast<uintptr_t>(executable->constants().data());
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false, offered = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(line); range >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= address && address < end;
    if (inside && line.starts_with("VmFlags:")) offered = line.find(" hg") != std::string::npos;
  }
  std::ifstream modes("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!modes) GTEST_SKIP() << "a system without huge pages";
  EXPECT_TRUE(offered);
}

}  // namespace
}  // namespace hone::runtime
