#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "base/core/crc32c.h"
#include "base/core/random.h"
#include "runtime/context.h"
#include "runtime/executable.h"
#include "runtime/package.h"
#include "tests/runtime/test_model.h"

// Goal: no bytes make the loader crash, hang or allocate without bound; each file is either refused
// with a message or is exactly what the writer would have written. Method: mutate a good package
// and put right the checksums that a careful attacker would, so that the mutations reach the checks
// behind.
namespace hone::runtime::testing {
namespace {

constexpr size_t kTable = 40;
constexpr size_t kEntryBytes = 24;
constexpr size_t kPlaceOfCount = 20;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename T>
T Get(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <typename T>
void Put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

size_t HeaderBytes(size_t sections) { return kTable + kEntryBytes * sections; }

/// Makes all checksums right that can be.
void FixChecksums(std::string& bytes) {
  if (bytes.size() < kTable) return;
  const size_t sections = Get<uint32_t>(bytes, kPlaceOfCount);
  if (sections > 100 || bytes.size() < HeaderBytes(sections)) return;
  for (size_t section = 0; section < sections; ++section) {
    const size_t at = kTable + kEntryBytes * section;
    const auto offset = Get<uint64_t>(bytes, at + 8);
    const auto size = Get<uint64_t>(bytes, at + 16);
    if (offset > bytes.size() || size > bytes.size() - offset) continue;
    Put(bytes, at + 4, Crc32c(bytes.data() + offset, size));
  }
  Put<uint32_t>(bytes, 16, 0);
  Put(bytes, 16, Crc32c(bytes.data(), HeaderBytes(sections)));
}

uint64_t OddNumber(Random& random) {
  const uint64_t numbers[] = {0,
                              1,
                              2,
                              63,
                              64,
                              255,
                              4096,
                              0x7fff,
                              0xffff,
                              0x7fffffff,
                              0x80000000,
                              0xffffffff,
                              0x7fffffffffffffff,
                              0x8000000000000000,
                              ~uint64_t{0}};
  return numbers[random.Below(std::size(numbers))] + random.Below(3) - 1;
}

/// One change within [first, last).
void Mutate(std::string& bytes, size_t first, size_t last, Random& random) {
  const size_t at = first + random.Below(last - first);
  switch (random.Below(6)) {
    case 0: bytes[at] = static_cast<char>(random.Next()); break;
    case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8))); break;
    case 2:
      if (at + 4 <= last) Put(bytes, at, static_cast<uint32_t>(OddNumber(random)));
      break;
    case 3:
      if (at + 8 <= last) Put(bytes, at, OddNumber(random));
      break;
    case 4: {  // copy a piece over another
      const size_t from = first + random.Below(last - first);
      const size_t size = std::min({last - at, last - from, size_t{1} + random.Below(32)});
      const std::string piece = bytes.substr(from, size);
      bytes.replace(at, size, piece);
      break;
    }
    default: Put(bytes, at, static_cast<char>(bytes[at] + (random.Chance(0.5) ? 1 : -1))); break;
  }
}

/// Changes the length of the file or of a table.
void Resize(std::string& bytes, Random& random) {
  switch (random.Below(3)) {
    case 0: bytes.resize(random.Below(bytes.size())); break;
    case 1:
      bytes.insert(random.Below(bytes.size()), std::string(1 + random.Below(64), '\0'));
      break;
    default: bytes.erase(random.Below(bytes.size()), 1 + random.Below(64)); break;
  }
  if (bytes.size() >= kTable && random.Chance(0.5)) Put<uint64_t>(bytes, 32, bytes.size());
}

/// Bytes [first, last) of a section.
std::pair<size_t, size_t> SectionAt(const std::string& bytes, size_t section) {
  const size_t at = kTable + kEntryBytes * section;
  const auto offset = Get<uint64_t>(bytes, at + 8);
  return {offset, offset + Get<uint64_t>(bytes, at + 16)};
}

/// How often each thing happened to mutations of a good file.
std::map<std::string, int> Fuzz(const std::string& good, uint64_t seed, uint64_t rounds) {
  const size_t sections = Get<uint32_t>(good, kPlaceOfCount);
  const size_t variants = sections / 3;
  const Random root(seed);
  std::map<std::string, int> outcomes;
  for (uint64_t round = 0; round < rounds; ++round) {
    Random random = root.Fork(round);
    std::string bytes = good;
    const uint64_t where = random.Below(10);
    const uint64_t changes = 1 + random.Below(3);
    if (where == 0) {
      Resize(bytes, random);
    } else {
      for (uint64_t i = 0; i < changes; ++i) {
        const size_t variant = 3 * random.Below(variants);
        if (where == 1) Mutate(bytes, 0, HeaderBytes(sections), random);
        if (where == 2) {  // the ELF's frame
          const size_t code_at = SectionAt(good, variant + 2).first;
          Mutate(bytes, code_at, code_at + 1024, random);
        }
        if (where > 2) {  // info and plan
          const size_t first = SectionAt(good, variant).first;
          Mutate(bytes, first, SectionAt(good, variant + 1).second, random);
        }
      }
    }
    if (random.Chance(0.9)) FixChecksums(bytes);
    const auto package = ParsePackages(Bytes(bytes));
    if (!package.ok()) {
      EXPECT_FALSE(package.status().message().empty()) << "round " << round;
      ++outcomes[StatusCodeName(package.status().code())];
      continue;
    }
    ++outcomes["accepted"];
    EXPECT_EQ(*SerializePackages(*package), bytes) << "round " << round;
    // Changed code may do anything when it is loaded: only whole code goes on to the loader.
    if (where == 2 || random.Chance(0.5)) continue;
    const auto executable = Executable::OpenMemory(Bytes(bytes), {});
    if (!executable.ok()) {
      EXPECT_FALSE(executable.status().message().empty()) << "round " << round;
      ++outcomes["accepted, not loaded"];
      continue;
    }
    ++outcomes["loaded"];
  }
  std::string summary;
  for (const auto& [outcome, count] : outcomes) {
    summary += outcome + " " + std::to_string(count) + "  ";
  }
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), summary.c_str());
  return outcomes;
}

TEST(PackageFuzz, TwentyThousandMutationsNeverCrashTheLoader) {
  constexpr uint64_t kSeed = 20240601;
  std::map<std::string, int> outcomes = Fuzz(MakeTestPackage(), kSeed, 20000);
  // The mutations reached all depths; otherwise this test proves nothing.
  EXPECT_GT(outcomes["INVALID_ARGUMENT"], 1000);
  EXPECT_GT(outcomes["DATA_LOSS"], 500);
  EXPECT_GT(outcomes["FAILED_PRECONDITION"], 5);
  EXPECT_GT(outcomes["loaded"], 200);
}

TEST(PackageFuzz, NorWhereLaunchesHaveDescriptors) {
  TestModel model = MakeTestModel();
  for (ir::Artifact& kernel : model.package.plan.kernels) {
    for (ir::ArtifactPhase& phase : kernel.phases) {
      phase.launch = {.grid_x = 4, .grid_y = 2, .grid_z = 6, .cluster_x = 2, .cluster_z = 3};
      phase.launch.shared_bytes = 1 << 16;
      phase.launch.descriptors.assign(
          8, {.argument = 0, .shape = {2, 3, 5}, .strides = {60, 20}, .box = {1, 3, 4}});
    }
  }
  std::map<std::string, int> outcomes = Fuzz(*SerializePackage(model.package), 11, 10000);
  EXPECT_GT(outcomes["INVALID_ARGUMENT"], 1000);
  EXPECT_GT(outcomes["loaded"], 100);
}

TEST(PackageFuzz, NorWhereAFileHasSeveralTargets) {
  const TestModel model = MakeTestModel();
  Package wide = model.package;
  wide.info.target = "cpu:avx512,threads=2";
  const std::string good = *SerializePackages({wide, model.package});
  std::map<std::string, int> outcomes = Fuzz(good, 7, 5000);
  EXPECT_GT(outcomes["INVALID_ARGUMENT"], 250);
  EXPECT_GT(outcomes["DATA_LOSS"], 100);
  EXPECT_GT(outcomes["loaded"], 50);
}

}  // namespace
}  // namespace hone::runtime::testing
