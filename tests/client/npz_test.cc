#include "client/npz.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/file.h"
#include "tests/client/python.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// A version 1.0 file as numpy 2.4 writes it: the dictionary padded to 118 bytes.
std::string NumpyFile(std::string dictionary, const std::string& data) {
  dictionary.resize(117, ' ');
  std::string file("\x93NUMPY\x01\x00v\x00", 10);
  return file + dictionary + '\n' + data;
}

std::string Raw(std::initializer_list<int> bytes) {
  std::string raw;
  for (const int b : bytes) raw += static_cast<char>(b);
  return raw;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

graph::TensorData Floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return *graph::MakeConstant(ir::DType::kF32, std::move(shape), values);
}

TEST(NpyTest, ReadsBigEndianFortranOrder) {
  const auto tensor =
      ParseNpy(NumpyFile("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
                         Raw({0, 0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5})));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->type.dtype, ir::DType::kI16);
  EXPECT_THAT(tensor->type.shape, ElementsAre(2, 3));
  EXPECT_THAT(tensor->AsInt64s(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(NpyTest, ReadsScalarHalf) {
  const auto tensor =
      ParseNpy(NumpyFile("{'descr': '<f2', 'fortran_order': False, 'shape': (), }", Raw({0, 'A'})));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_TRUE(tensor->type.shape.empty());
  EXPECT_EQ(tensor->DoubleAt(0), 2.5);
}

TEST(NpyTest, ReadsTwoByteVoidAsBfloat16) {
  const auto tensor = ParseNpy(
      NumpyFile("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", Raw({0x80, 0x3F})));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->type.dtype, ir::DType::kBF16);
  EXPECT_EQ(tensor->DoubleAt(0), 1.0);
}

TEST(NpyTest, MakesBoolBytesZeroOrOne) {
  const auto tensor = ParseNpy(
      NumpyFile("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", Raw({1, 0, 7})));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->bytes, ElementsAre(std::byte{1}, std::byte{0}, std::byte{1}));
}

TEST(NpyTest, ReadsVersions2And3) {
  std::string two("\x93NUMPY\x02\x00t\x00\x00\x00", 12);
  std::string dictionary = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }";
  dictionary.resize(115, ' ');
  two += dictionary + '\n' + Raw({1, 0, 0, 0, 2, 0, 0, 0});
  for (const char version : {'\x02', '\x03'}) {
    two[6] = version;
    const auto tensor = ParseNpy(two);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_THAT(tensor->AsInt64s(), ElementsAre(1, 2));
  }
}

TEST(NpyTest, RoundTripsEveryDtypeAndRank) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  for (int code = 0; code < ir::kNumDTypes; ++code) {
    for (size_t rank = 0; rank <= 6; ++rank) {
      graph::TensorType type = {static_cast<ir::DType>(code), {}};
      for (size_t d = 0; d < rank; ++d) type.shape.push_back(random.Between(d == 5 ? 0 : 1, 3));
      std::vector<std::byte> bytes(static_cast<size_t>(type.Bytes()));
      for (std::byte& b : bytes) {
        b = static_cast<std::byte>(random.Below(type.dtype == ir::DType::kBool ? 2 : 256));
      }
      const auto tensor = graph::MakeConstant(type, bytes);
      const std::string file = FormatNpy(*tensor);
      EXPECT_EQ((file.size() - bytes.size()) % 64, 0U);
      const auto again = ParseNpy(file);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->type, type);
      EXPECT_THAT(again->bytes, ::testing::ElementsAreArray(bytes));
    }
  }
}

TEST(NpyTest, RefusesWhatIsNoTensor) {
  const std::string four(4, '\0');
  const auto message = [&](const std::string& dictionary) {
    return std::string(ParseNpy(NumpyFile(dictionary, four)).status().message());
  };
  EXPECT_THAT(message("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("Python objects"));
  EXPECT_THAT(message("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("records"));
  EXPECT_THAT(message("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("'<c8'"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"),
              HasSubstr("promises 8 bytes of data, the file has 4"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1), }"),
              HasSubstr("rank 7"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
              HasSubstr("not a dictionary"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, }"), HasSubstr("not a dictionary"));
}

TEST(NpyTest, RefusesShapesThatOverflow) {
  // 2^32 * 2^32 wraps to 0 in 64 bits; a zero beside it must not hide it.
  for (const char* shape : {"(4294967296, 4294967296)", "(0, 9223372036854775807, 8)",
                            "(9223372036854775807, 0)", "(99999999999999999999,)"}) {
    const auto tensor = ParseNpy(NumpyFile(
        std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") + shape + ", }", ""));
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument) << shape;
  }
}

TEST(NpyTest, AnyDamagedByteIsAnErrorOrATensorNeverACrash) {
  const std::string good =
      NumpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", Raw({0, 0, 0, 0}));
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (uint64_t n = random.Below(4) + 1; n > 0; --n) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    }
    if (random.Chance(0.3)) bad.resize(random.Below(bad.size()));
    const auto tensor = ParseNpy(bad);
    if (!tensor.ok()) {
      ++refused;
      EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
    } else {
      EXPECT_EQ(tensor->type.Bytes(), static_cast<int64_t>(tensor->bytes.size()));
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(NpzTest, ReadsWhatNumpyCompressed) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("x.npz");
  // np.savez_compressed(x=np.arange(3, dtype=np.int64)), numpy 2.4.
  ASSERT_TRUE(
      WriteFileAtomically(path, FromHex("504b03042d000000080000002100f74012eaffffffffffffffff050014"
                                        "00782e6e7079010010009800000000"
                                        "0000004c000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca4"
                                        "6ea5a06e9369a1aea3a09e965f54529"
                                        "498179f5f94920a12774bcc294e058a17672416a402f91ac63a9a3a0ab"
                                        "50a14002e06286084d24c501a00504b"
                                        "01022d032d000000080000002100f74012ea4c00000098000000050000"
                                        "00000000000000000080010000000078"
                                        "2e6e7079504b0506000000000100010033000000830000000000"))
          .ok());
  const auto tensors = ReadNpz(path);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->size(), 1U);
  ASSERT_NE(FindTensor(*tensors, "x"), nullptr);
  EXPECT_THAT(FindTensor(*tensors, "x")->AsInt64s(), ElementsAre(0, 1, 2));
  EXPECT_EQ(FindTensor(*tensors, "y"), nullptr);
}

TEST(NpzTest, RoundTripsAndRepeatsItsBytes) {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"b/with.dots", Floats({2, 2}, {1, 2, 3, 4})},
                                {"a", Floats({}, {-0.5})},
                                {"empty", Floats({0, 3}, {})}};
  ASSERT_TRUE(WriteNpz(folder.Path("1.npz"), tensors).ok());
  ASSERT_TRUE(WriteNpz(folder.Path("2.npz"), tensors).ok());
  EXPECT_EQ(*ReadFile(folder.Path("1.npz")), *ReadFile(folder.Path("2.npz")));
  const auto again = ReadNpz(folder.Path("1.npz"));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), 3U);
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ((*again)[i].first, tensors[i].first);
    EXPECT_EQ((*again)[i].second.type, tensors[i].second.type);
    EXPECT_EQ((*again)[i].second.AsDoubles(), tensors[i].second.AsDoubles());
  }
}

TEST(NpzTest, RoundTripsNoTensors) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpz(folder.Path("none.npz"), {}).ok());
  const auto tensors = ReadNpz(folder.Path("none.npz"));
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_TRUE(tensors->empty());
}

TEST(NpzTest, NumpyReadsOursAndWeReadNumpys) {
  HONE_SKIP_WITHOUT_PYTHON();
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteNpz(folder.Path("ours.npz"), {{"x", Floats({2, 3}, {0, 1, 2, 3, 4, 5})},
                                                 {"s", *graph::MakeInt64s({}, {-7})}})
                  .ok());
  const auto run = testing::RunPython(
      R"(
import sys, numpy as np
z = np.load(sys.argv[1])
assert sorted(z.files) == ["s", "x"], z.files
assert z["x"].dtype == np.float32 and (z["x"] == np.arange(6).reshape(2, 3)).all()
assert z["s"].dtype == np.int64 and z["s"].shape == () and z["s"] == -7
rng = np.random.default_rng(0)
np.savez(sys.argv[2], **{d: (rng.random((3, 4)) * 200).astype(d).T for d in
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()})
with open(sys.argv[3], "w") as f:
    for d, v in np.load(sys.argv[2]).items():
        print(d, *[float(x) for x in v.ravel()], file=f)
)",
      {folder.Path("ours.npz"), folder.Path("theirs.npz"), folder.Path("values.txt")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto theirs = ReadNpz(folder.Path("theirs.npz"));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  ASSERT_EQ(theirs->size(), 12U);
  std::istringstream values(*ReadFile(folder.Path("values.txt")));
  std::string name;
  for (const auto& [ours, tensor] : *theirs) {
    ASSERT_TRUE(values >> name);
    EXPECT_EQ(name, ours);
    EXPECT_THAT(tensor.type.shape, ElementsAre(4, 3));
    for (const double value : tensor.AsDoubles()) {
      double expected = -1;
      ASSERT_TRUE(values >> expected);
      EXPECT_EQ(value, expected) << name;
    }
  }
}

TEST(NpzTest, NamesTheFileThatIsWrong) {
  const TemporaryFolder folder;
  const auto absent = ReadNpz(folder.Path("absent.npz"));
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr("absent.npz"));
  ASSERT_TRUE(WriteFileAtomically(folder.Path("text.npz"), "not a zip").ok());
  const auto text = ReadNpz(folder.Path("text.npz"));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("numpy.savez"));
  EXPECT_EQ(WriteNpz(folder.Path("no/such/folder.npz"), {{"x", Floats({}, {1})}}).code(),
            absl::StatusCode::kNotFound);
}

TEST(NpzTest, WhatIsNoRegularFileIsNotReplaced) {
  const TemporaryFolder folder;
  const std::string pipe = folder.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder.path()}) {
    const absl::Status status = WriteNpz(path, {{"x", Floats({}, {1})}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("it is no regular file"));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(NpzTest, DamagedArchivesAreErrorsNeverCrashes) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("bad.npz");
  ASSERT_TRUE(WriteNpz(path, {{"x", Floats({3}, {1, 2, 3})}, {"y", Floats({1}, {4})}}).ok());
  const std::string good = *ReadFile(path);
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    for (uint64_t n = random.Below(3) + 1; n > 0; --n) {
      bad[random.Below(bad.size())] ^= static_cast<char>(1 + random.Below(255));
    }
    if (random.Chance(0.3)) bad.resize(random.Below(bad.size()));
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(bad.data(), 1, bad.size(), file), bad.size());
    std::fclose(file);
    if (!ReadNpz(path).ok()) ++refused;
  }
  EXPECT_GT(refused, 200);
}

TEST(NpzTest, ANameThatNoEntryCanHaveIsRefusedWithWhatToDo) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("x.npz");
  for (const std::string& name : {std::string("y\xff\xfe"), std::string("y\0z", 3)}) {
    const absl::Status refused =
        WriteNpz(path, {{"ü", Floats({1}, {1})}, {name, Floats({1}, {2})}});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusMessage(refused), HasSubstr("give it another name in the model"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(WriteNpz(path, {{"ü", Floats({1}, {1})}}).ok());
}

TEST(NpzTest, ChecksumsAreChecked) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("x.npz");
  ASSERT_TRUE(WriteNpz(path, {{"x", Floats({3}, {1, 2, 3})}}).ok());
  std::string bytes = *ReadFile(path);
  const size_t data = bytes.find("\n", bytes.find("NUMPY")) + 1;
  bytes[data + 1] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const auto tensors = ReadNpz(path);
  EXPECT_EQ(tensors.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensors.status().message()), HasSubstr("x.npy"));
}

}  // namespace
}  // namespace hone::client
