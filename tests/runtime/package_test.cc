#include "runtime/package.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/core/crc32c.h"
#include "base/core/unique_fd.h"
#include "base/versions.h"
#include "ir/cpu/cpu_target.h"
#include "runtime/executable.h"
#include "tests/runtime/test_model.h"

namespace hone::runtime::testing {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A folder of this test's own, removed at the end.
class PackageFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "hone_package_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST(Package, WhatIsWrittenIsRead) {
  const TestModel model = MakeTestModel();
  const auto bytes = SerializePackage(model.package);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const auto read = ParsePackage(Bytes(*bytes));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->info, model.package.info);
  EXPECT_EQ(read->plan.arena_bytes, model.package.plan.arena_bytes);
  EXPECT_EQ(read->plan.kernels.size(), 3U);
  EXPECT_EQ(read->plan.kernels[2].steps[1].repeats, 5);
  EXPECT_EQ(read->plan.steps[3].extern_attributes, (std::vector<int64_t>{1, 1, 1}));
  ASSERT_EQ(read->constants.size(), model.package.constants.size());
  EXPECT_EQ(std::memcmp(read->constants.data(), model.constants.data(), read->constants.size()), 0);
  // Page-aligned in the file, so a mapped file has aligned constants.
  EXPECT_EQ((read->constants.data() - Bytes(*bytes).data()) % 4096, 0);
  EXPECT_EQ((read->code.data() - Bytes(*bytes).data()) % 4096, 0);
  // Every field came back: writing what was read gives the same bytes.
  EXPECT_EQ(*SerializePackage(*read), *bytes);
}

TEST(Package, SameContentSameBytes) {
  EXPECT_EQ(*SerializePackage(MakeTestModel().package), *SerializePackage(MakeTestModel().package));
}

TEST(Package, PrologueTextIsLeftOut) {
  TestModel model = MakeTestModel();
  const std::string without = *SerializePackage(model.package);
  model.package.plan.kernels[0].prologue_workload = "workload text";
  EXPECT_EQ(*SerializePackage(model.package), without);
}

// The layout of docs/formats/package.md, byte by byte: a change here is a new format version.
TEST(Package, HeaderIsAsDocumented) {
  const std::string bytes = MakeTestPackage("cpu:avx2+vnni,threads=2");
  EXPECT_EQ(bytes.substr(0, 8), "\x89HONE\r\n\x1a");
  const auto u32 = [&](size_t at) {
    uint32_t value;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  const auto u64 = [&](size_t at) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + at, 8);
    return value;
  };
  EXPECT_EQ(u32(8), 7U);
  EXPECT_EQ(u32(12), 1U);
  EXPECT_EQ(u32(20), 4U);
  EXPECT_EQ(u64(24), ir::kIsaAvx2 | ir::kIsaVnni);
  EXPECT_EQ(u64(32), bytes.size());
  for (uint32_t section = 0; section < 4; ++section) {
    const size_t at = 40 + 24 * section;
    EXPECT_EQ(u32(at), section + 1);
    EXPECT_EQ(u32(at + 4), Crc32cPortable(bytes.data() + u64(at + 8), u64(at + 16)));
    EXPECT_EQ(u64(at + 8) % (section < 2 ? 8 : 4096), 0U);
  }
  std::string header = bytes.substr(0, 136);
  header.replace(16, 4, 4, '\0');
  EXPECT_EQ(u32(16), Crc32cPortable(header.data(), header.size()));
}

TEST(Package, EachFlippedByteIsNoticed) {
  const std::string good = MakeTestPackage();
  // All of the tables, and samples of the large sections and their padding.
  for (size_t at = 0; at < good.size(); at += at < 3000 ? 1 : 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    const auto read = ParsePackage(Bytes(bad));
    ASSERT_FALSE(read.ok()) << "byte " << at;
    EXPECT_FALSE(read.status().message().empty());
  }
}

TEST(Package, EachCutIsNoticed) {
  const std::string good = MakeTestPackage();
  for (size_t size = 0; size < good.size(); size += size < 300 ? 1 : 501) {
    EXPECT_FALSE(ParsePackage(Bytes(good.substr(0, size))).ok()) << size;
  }
  EXPECT_FALSE(ParsePackage(Bytes(good + "x")).ok());
}

TEST(Package, OtherFilesAreNotPackages) {
  const auto read = ParsePackage(Bytes(std::string(5000, 'x')));
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(read.status().message(), HasSubstr("not a Hone package"));
}

TEST(Package, NewerFormatOrRuntimeIsNamed) {
  for (const size_t at : {size_t{8}, size_t{12}}) {
    std::string bytes = MakeTestPackage();
    bytes[at] = 9;
    const Status status = ParsePackage(Bytes(bytes)).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr(at == 8 ? "format 9" : "runtime 9"));
    EXPECT_THAT(status.message(), HasSubstr(kProgramVersion));
  }
}

/// A package as an older Hone wrote it, whose info and plan did not have their last bytes. They
/// hold nothing but defaults, and launches, which a CPU does not read.
std::string AsFormat(int format, const std::string& now, size_t newer_info, size_t newer_plan) {
  constexpr size_t kChecksumAt = 16, kFileBytesAt = 32, kEntries = 40, kEntry = 24, kSections = 4;
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, now.data() + at, 8);
    return value;
  };
  std::string bytes = now.substr(0, kEntries + kSections * kEntry);
  const auto put = [&](size_t at, size_t size, uint64_t value) {
    std::memcpy(bytes.data() + at, &value, size);
  };
  for (size_t i = 0; i < kSections; ++i) {
    const size_t entry = kEntries + i * kEntry;
    const size_t newer = i == 0 ? newer_info : i == 1 ? newer_plan : 0;
    const std::string content = now.substr(number(entry + 8), number(entry + 16) - newer);
    const size_t unit = i < 2 ? 8 : 4096;
    bytes.resize((bytes.size() + unit - 1) / unit * unit);
    put(entry + 4, 4, Crc32cPortable(content.data(), content.size()));
    put(entry + 8, 8, bytes.size());
    put(entry + 16, 8, content.size());
    bytes += content;
  }
  put(8, 4, static_cast<uint64_t>(format));
  put(kFileBytesAt, 8, bytes.size());
  put(kChecksumAt, 4, 0);
  put(kChecksumAt, 4, Crc32cPortable(bytes.data(), kEntries + kSections * kEntry));
  return bytes;
}

TEST(Package, OlderFormatsAreRead) {
  const TestModel model = MakeTestModel();
  ASSERT_TRUE(model.package.plan.names.empty());
  const std::string now = *SerializePackage(model.package);
  uint64_t phases = 0;
  for (const ir::Artifact& kernel : model.package.plan.kernels) phases += kernel.phases.size();
  const uint64_t loops = 8 * model.package.plan.buffers.size() + 4, joins = 4;
  const uint64_t depth = 52 * phases, forks = 4 + depth;
  const uint64_t names = 4 + 32 * phases;
  const uint64_t numbers = 16 * model.package.info.kernels.size() + (4 + sizeof("f32") - 1) +
                           (4 + sizeof("default") - 1) + 4;
  for (const std::string& old :
       {AsFormat(6, now, 0, depth), AsFormat(5, now, 0, forks), AsFormat(4, now, numbers, forks),
        AsFormat(3, now, numbers, loops + joins + forks),
        AsFormat(2, now, numbers, names + loops + joins + forks)}) {
    const auto read = ParsePackage(Bytes(old));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*SerializePackage(*read), now);
  }
}

TEST(Package, OperationsAreKeptByUnit) {
  TestModel model = MakeTestModel();
  const ir::ByUnit<int64_t> operations = {12, 3400, 56};
  model.package.info.kernels[1].operations = operations;
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(Bytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->info.kernels[1].operations, operations);
  EXPECT_EQ(read->info.kernels[1].flop(), 12 + 3400 + 56);
}

TEST(Package, JoinsAreKept) {
  TestModel model = MakeTestModel();
  model.package.plan.joins = {{1, 0}};
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(Bytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->plan.joins, model.package.plan.joins);
}

TEST(Package, NamesOfNodesAreKept) {
  TestModel model = MakeTestModel();
  model.package.plan.names = {{1, 1, "/embeddings/Gather", "ids"}, {3, -1, "/TopK", ""}};
  const std::string bytes = *SerializePackage(model.package);
  const auto read = ParsePackage(Bytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->plan.names.size(), 2U);
  EXPECT_EQ(read->plan.names[0].node, "/embeddings/Gather");
  EXPECT_EQ(read->plan.names[0].value, "ids");
  EXPECT_EQ(read->plan.names[1].input, -1);
}

TEST(Package, LoopsAreWrittenAndRead) {
  const TestModel model = MakeLoopedTestModel(3);
  const auto bytes = SerializePackage(model.package);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  const auto read = ParsePackage(Bytes(*bytes));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->plan.loops.size(), 1U);
  EXPECT_EQ(read->plan.loops[0].count, 4);
  EXPECT_EQ(read->plan.loops[0].repeats, 3);
  EXPECT_EQ(read->plan.buffers[kX].advance_bytes, 140);
  EXPECT_EQ(read->plan.buffers[kY].advance_bytes, 384);
  EXPECT_EQ(read->plan.buffers[kCarried].advance_bytes, 0);
  EXPECT_EQ(*SerializePackage(*read), *bytes);
}

TEST(Package, AnOlderFormatIsNamedToo) {
  std::string bytes = MakeTestPackage();
  bytes[8] = 1;
  const Status status = ParsePackage(Bytes(bytes)).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("format 1, this runtime"));
  EXPECT_THAT(status.message(), HasSubstr("compile the model again"));
}

TEST(Package, RulesAreCheckedBeforeWriting) {
  struct Case {
    const char* message;
    std::function<void(Package&)> breakage;
  };
  const Case cases[] = {
      {"kernel 0: phase 0: symbol", [](Package& p) { p.plan.kernels[0].phases[0].symbol = "a b"; }},
      {"phase 0: 0 threads", [](Package& p) { p.plan.kernels[0].phases[0].threads = 0; }},
      {"scratch of -1", [](Package& p) { p.plan.kernels[0].phases[0].scratch_bytes = -1; }},
      {"parallel extent", [](Package& p) { p.plan.kernels[1].phases[0].parallel_extent = -2; }},
      {"step 1: phases [1, +3)", [](Package& p) { p.plan.kernels[2].steps[1].count = 3; }},
      {"step 0: phases [2147483647, +2147483647)",
       [](Package& p) {
         p.plan.kernels[2].steps[0] = {2147483647, 2147483647, 1};
       }},
      {"input 0: 60 bytes for a tensor of 120",
       [](Package& p) { p.plan.kernels[1].inputs[0].bytes = 60; }},
      {"a dimension of -5", [](Package& p) { p.plan.kernels[1].inputs[0].shape[0] = -5; }},
      {"beyond",
       [](Package& p) {
         p.plan.inputs[0].shape = {1 << 30, 1 << 30};
       }},
      {"rank 17", [](Package& p) { p.plan.inputs[0].shape.assign(17, 1); }},
      {"buffer 4: [256, +120) lies outside the arena",
       [](Package& p) { p.plan.buffers[kY].offset = 256; }},
      {"buffer 4: offset 4 is no multiple of 64",
       [](Package& p) { p.plan.buffers[kY].offset = 4; }},
      {"buffer 3: [9223372036854775744, +216) lies outside the constants",
       [](Package& p) { p.plan.buffers[kTableBuffer].offset = INT64_MAX / 64 * 64; }},
      {"buffer 0: 139 bytes, but input 'x' has 140",
       [](Package& p) { p.plan.buffers[kX].bytes = 139; }},
      {"buffer 1: input 7 of 2", [](Package& p) { p.plan.buffers[kIds].offset = 7; }},
      {"step 0: kernel 3 of 3", [](Package& p) { p.plan.steps[0].kernel = 3; }},
      {"step 0: 3 buffers, 4 are needed", [](Package& p) { p.plan.steps[0].buffers.pop_back(); }},
      {"step 1: argument 0: buffer 10 of 10", [](Package& p) { p.plan.steps[1].buffers[0] = 10; }},
      {"step 1: argument 0: buffer -1 of 10", [](Package& p) { p.plan.steps[1].buffers[0] = -1; }},
      {"buffer 7 has 24 bytes, 120 are needed",
       [](Package& p) { p.plan.steps[1].buffers[3] = kLast; }},
      {"buffer 4 is no constant", [](Package& p) { p.plan.steps[0].buffers[2] = kY; }},
      {"would write buffer 0, an input", [](Package& p) { p.plan.steps[0].buffers[3] = kX; }},
      {"would write buffer 3, a constant",
       [](Package& p) { p.plan.steps[0].buffers[3] = kTableBuffer; }},
      {"output 1 'last': no step writes it",
       [](Package& p) { p.plan.steps.erase(p.plan.steps.begin() + 2); }},
      {"unknown extern routine 'NonZero'; this runtime has TopK",
       [](Package& p) { p.plan.steps[3].extern_name = "NonZero"; }},
      {"name of step 4, input -1: no such step",
       [](Package& p) {
         p.plan.names = {{4, -1, "n", ""}};
       }},
      {"input 9: no such input",
       [](Package& p) {
         p.plan.names = {{0, 9, "n", ""}};
       }},
      {"texts of 0 and 0 bytes",
       [](Package& p) {
         p.plan.names = {{0, 0, "", ""}};
       }},
      {"names are not in order",
       [](Package& p) {
         p.plan.names = {{1, 0, "n", ""}, {0, 0, "n", ""}};
       }},
      {"loop 0: steps [3, +2) repeated 2 times, of 4 steps",
       [](Package& p) {
         p.plan.loops = {{3, 2, 2}};
       }},
      {"loop 1: steps [1, +1) repeated 2 times",
       [](Package& p) {
         p.plan.loops = {{0, 2, 2}, {1, 1, 2}};
       }},
      {"loop 0: steps [0, +1) repeated 0 times",
       [](Package& p) {
         p.plan.loops = {{0, 1, 0}};
       }},
      {"buffer 4: advances by 120 bytes",
       [](Package& p) { p.plan.buffers[kY].advance_bytes = 120; }},
      {"buffer 2: advances by 64 bytes", [](Package& p) { p.plan.buffers[kW].advance_bytes = 64; }},
      {"buffer 4: advances in 3 repeats, its memory has room for 2",
       [](Package& p) {
         p.plan.buffers[kY].advance_bytes = 128;
         p.plan.loops = {{0, 1, 3}};
       }},
      {"buffer 0: advances in 1 repeats, its memory has room for 3",
       [](Package& p) {
         p.plan.inputs[0].shape[0] *= 3;
         p.plan.buffers[kX].advance_bytes = 140;
       }},
      {"buffer 0: 140 bytes, but input 'x' has 420",
       [](Package& p) { p.plan.inputs[0].shape[0] *= 3; }},
      {"buffer 10: advances by 140 bytes, another of the same memory by 0",
       [](Package& p) {
         p.plan.buffers.push_back(p.plan.buffers[kX]);
         p.plan.buffers.back().advance_bytes = 140;
       }},
      {"phases without a barrier before them are not in order",
       [](Package& p) {
         p.plan.joins = {{1, 0}, {1, 0}};
       }},
      {"phase 0 of step 0 does not follow a parallel one of as many iterations",
       [](Package& p) {
         p.plan.joins = {{0, 0}, {1, 0}};
       }},
      {"phase 1 of step 2 does not follow",  // it is repeated
       [](Package& p) {
         p.plan.joins = {{2, 1}};
       }},
      {"phase 0 of step 1 does not follow",
       [](Package& p) {
         p.plan.joins = {{1, 0}};
         p.plan.steps[1].threads = 1;
       }},
      {"phase 0 of step 1 does not follow",  // a loop begins there
       [](Package& p) {
         p.plan.joins = {{1, 0}};
         p.plan.loops = {{1, 1, 1}};
       }},
      {"phase -7 of step 9 does not follow",
       [](Package& p) {
         p.plan.joins = {{9, -7}};
       }},
      {"step 3: TopK: axis 9", [](Package& p) { p.plan.steps[3].extern_attributes[0] = 9; }},
      {"input 1 'x': a second one", [](Package& p) { p.plan.inputs[1].name = "x"; }},
      {"describes 2 kernels, the plan has 3", [](Package& p) { p.info.kernels.pop_back(); }},
      {"kernel 2 is made for cpu:avx512,threads=1, the package for cpu:avx2",
       [](Package& p) { p.plan.kernels[2].target = "cpu:avx512,threads=1"; }},
      {"target 'gpu'", [](Package& p) { p.info.target = "gpu"; }},
      {"not an ELF file", [](Package& p) { p.code = p.constants; }},
      {"arena of -1 bytes", [](Package& p) { p.plan.arena_bytes = -1; }},
      {"rung", [](Package& p) { p.info.kernels[0].rung.clear(); }},
      {"a name of 0 bytes", [](Package& p) { p.info.kernels[0].name.clear(); }},
      {"a name of 4097 bytes", [](Package& p) { p.info.kernels[2].name.assign(4097, 'n'); }},
      {"kernel 'matmul 5x6': -1 to 0 FLOP of a unit, 428 bytes",
       [](Package& p) { p.info.kernels[0].operations = {-1}; }},
      {"kernel 'scan 6': 0 to 60 FLOP of a unit, -1 bytes",
       [](Package& p) { p.info.kernels[2].bytes = -1; }},
  };
  for (const Case& broken : cases) {
    TestModel model = MakeTestModel();
    broken.breakage(model.package);
    const auto bytes = SerializePackage(model.package);
    EXPECT_EQ(bytes.status().code(), StatusCode::kInvalidArgument) << broken.message;
    EXPECT_THAT(bytes.status().message(), HasSubstr(broken.message));
  }
}

TEST_F(PackageFile, IsWrittenAtomicallyAndLoads) {
  const std::string path = folder_ + "/m.hone";
  const TestModel model = MakeTestModel();
  ASSERT_TRUE(WritePackage(model.package, path).ok());
  ASSERT_TRUE(WritePackage(model.package, path).ok()) << "over an old one";
  EXPECT_EQ(ReadFile(path), *SerializePackage(model.package));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "nothing else is left";
  for (const bool copy : {false, true}) {
    const auto executable = Executable::Open(path, {.copy_constants = copy});
    ASSERT_TRUE(executable.ok()) << executable.status().ToString();
    EXPECT_EQ((*executable)->threads(), 2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*executable)->constants().data()) % 64, 0U);
    EXPECT_EQ(std::memcmp((*executable)->constants().data(), model.constants.data(),
                          model.constants.size() * 4),
              0);
  }
}

TEST_F(PackageFile, FailedWriteLeavesTheOldFile) {
  const std::string path = folder_ + "/m.hone";
  TestModel model = MakeTestModel();
  ASSERT_TRUE(WritePackage(model.package, path).ok());
  const std::string before = ReadFile(path);
  model.package.plan.arena_bytes = -1;
  EXPECT_FALSE(WritePackage(model.package, path).ok());
  EXPECT_EQ(ReadFile(path), before);
  model.package.plan.arena_bytes = 320;
  const Status status = WritePackage(model.package, folder_ + "/none/m.hone");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/none/m.hone"));
  // A path that cannot be renamed onto: a folder.
  std::filesystem::create_directory(folder_ + "/d.hone");
  const Status onto_folder = WritePackage(model.package, folder_ + "/d.hone");
  EXPECT_EQ(onto_folder.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(onto_folder.message(), HasSubstr("d.hone': it is a folder"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2)
      << "no temporary file is left";
}

TEST_F(PackageFile, APipeOrDeviceGetsTheBytesAndStays) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  ASSERT_GT(::fcntl(reader.get(), F_SETPIPE_SZ, 1 << 20), 0);
  const TestModel model = MakeTestModel();
  const auto bytes = SerializePackage(model.package);
  ASSERT_TRUE(bytes.ok());
  const Status written = WritePackage(model.package, path);
  EXPECT_TRUE(written.ok()) << written.message();
  EXPECT_TRUE(std::filesystem::is_fifo(path)) << "replaced by a file";
  std::string got(bytes->size() + 1, '\0');
  EXPECT_EQ(::read(reader.get(), got.data(), got.size()), static_cast<ssize_t>(bytes->size()));
  got.pop_back();
  EXPECT_TRUE(got == *bytes);
}

TEST_F(PackageFile, OpenErrorsNameThePath) {
  const std::string missing = folder_ + "/missing.hone";
  const Status status = Executable::Open(missing, {}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(missing));
  EXPECT_EQ(Executable::Open(folder_, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Executable::Open("/dev/null", {}).status().code(), StatusCode::kInvalidArgument);
  std::filesystem::path empty = folder_ + "/empty.hone";
  std::ofstream(empty).close();
  EXPECT_THAT(Executable::Open(empty, {}).status().message(), HasSubstr("not a Hone package"));
}

TEST(Executable, MissingSymbolIsNamed) {
  TestModel model = MakeTestModel();
  model.package.plan.kernels[2].phases[1].symbol = "test_absent";
  const std::string bytes = *SerializePackage(model.package);
  const Status status = Executable::OpenMemory(Bytes(bytes), {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("kernel 2: the code has no symbol 'test_absent'"));
}

TEST(Executable, TwoPackagesInOneProcessKeepTheirOwnCode) {
  // Equal symbols, equal paths: the second must not be answered with the first's code.
  const std::string first = MakeTestPackage();
  TestModel other = MakeTestModel();
  other.package.plan.kernels[0].phases[0].symbol = "test_broken";
  const std::string second = *SerializePackage(other.package);
  const auto one = Executable::OpenMemory(Bytes(first), {});
  const auto two = Executable::OpenMemory(Bytes(second), {});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ((*one)->plan().kernels.size(), 3U);
  EXPECT_EQ((*two)->plan().kernels.size(), 3U);
}

TEST(Executable, HostWithoutTheInstructionsIsTold) {
  const std::string bytes = MakeTestPackage("cpu:avx512,threads=1");
  Executable::Options options;
  options.host_can_run = [](const ir::Target& target, std::string* why) {
    *why = target.text + " on a host of avx2";
    return false;
  };
  const Status status = Executable::OpenMemory(Bytes(bytes), options).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("cpu:avx512,threads=1 on a host of avx2"));
}

}  // namespace
}  // namespace hone::runtime::testing
