#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/file.h"
#include "tests/graph/onnx_model.h"
#include "tests/test_paths.h"

// Damaged models must end in a graph or an error, never in a crash. HONE_FUZZ_SEED repeats a run.
namespace hone::graph {
namespace {

uint64_t Seed() {
  const char* text = std::getenv("HONE_FUZZ_SEED");
  return text == nullptr ? 20240601 : std::strtoull(text, nullptr, 10);
}

/// A few random edits: flipped bits, overwritten, inserted, removed and copied bytes, a cut.
std::string Mutated(std::string bytes, Random& random) {
  const int64_t edits = random.Between(1, 6);
  for (int64_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = random.Below(bytes.size());
    const size_t length = std::min<size_t>(random.Below(16) + 1, bytes.size() - at);
    switch (random.Below(7)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8))); break;
      case 1: bytes[at] = static_cast<char>(random.Below(256)); break;
      case 2: bytes.insert(at, std::string(length, static_cast<char>(random.Below(256)))); break;
      case 3: bytes.erase(at, length); break;
      case 4: bytes.insert(random.Below(bytes.size()), bytes.substr(at, length)); break;
      case 5: bytes.replace(at, length, std::string(length, '\xff')); break;
      default:
        if (random.Chance(0.1)) bytes.resize(at);
    }
  }
  return bytes;
}

/// Moves the emptied weights into one file of zeros, so that nearly every byte of the model is
/// structure.
std::string WithExternalWeights(const std::string& bytes, const std::filesystem::path& folder) {
  onnx::ModelProto model;
  model.ParseFromString(bytes);
  uint64_t largest = 1;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.doc_string() != "emptied") continue;
    uint64_t length = sizeof(float);
    for (int64_t extent : tensor.dims()) length *= static_cast<uint64_t>(extent);
    largest = std::max(largest, length);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto& location = *tensor.add_external_data();
    location.set_key("location");
    location.set_value("zeros");
    onnx::StringStringEntryProto& size = *tensor.add_external_data();
    size.set_key("length");
    size.set_value(std::to_string(length));
  }
  std::ofstream(folder / "zeros").put('\0');
  std::filesystem::resize_file(folder / "zeros", largest);
  return model.SerializeAsString();
}

class ImportFuzzTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ImportFuzzTest, DamagedModelsNeverCrash) {
  const std::string name = GetParam();
  const auto bytes = ReadFile(testing::SourceDir() + "/tests/models/skeletons/" + name + ".onnx");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("graph_import_fuzz_" + name);
  std::filesystem::create_directories(folder);
  const std::string start = WithExternalWeights(*bytes, folder);
  const auto whole = ImportBytes(start, {.folder = folder});
  ASSERT_TRUE(whole.ok()) << whole.status();
  Random random(Seed());
  int imported = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    imported += ImportBytes(Mutated(start, random), {.folder = folder}).ok() ? 1 : 0;
  }
  std::filesystem::remove_all(folder);
  std::printf("%s: seed %llu, %d of %d damaged models were imported\n", name.c_str(),
              static_cast<unsigned long long>(Seed()), imported, kRuns);
  EXPECT_GT(imported, 0) << "the edits are too coarse to test anything behind the parser";
  EXPECT_LT(imported, kRuns);
}

INSTANTIATE_TEST_SUITE_P(Skeletons, ImportFuzzTest,
                         ::testing::Values("lenet5", "lstm_lm", "unet", "segformer_b0"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace hone::graph
