#include "graph/onnx_import/import.h"

#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/onnx_import/importer.h"
#include "graph/onnx_import/mapped_file.h"
#include "graph/onnx_import/onnx.pb.h"
#include "graph/onnx_import/size_conflict.h"

namespace hone::graph {
namespace {

using onnx_import::Importer;
using onnx_import::MappedFile;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

constexpr std::string_view kTorchWay =
    "a PyTorch file, which holds weights and code, no graph; export it where it was made: "
    "torch.onnx.export(model, inputs, "
    "\"model.onnx\", dynamo=True)";
constexpr std::string_view kNumpyWay =
    "a NumPy archive of tensors, no model; name the model, and this file with --inputs or --expect";
constexpr std::string_view kTensorFlowWay =
    "a TensorFlow graph; convert it: python -m tf2onnx.convert --graphdef model.pb --inputs … "
    "--outputs … --output "
    "model.onnx (a SavedModel folder: --saved-model)";
constexpr std::string_view kLiteWay =
    "a TensorFlow Lite model; convert it: python -m tf2onnx.convert --tflite model.tflite --output "
    "model.onnx";
constexpr std::string_view kSafetensorsWay =
    "a safetensors file, which holds weights only, no graph; export the model that loads it: "
    "torch.onnx.export, or optimum-cli "
    "export onnx --model FOLDER OUT";
constexpr std::string_view kDatabaseWay =
    "a database of SQLite, as Hone's tuning logs are, no model; name the model, and a log with "
    "--db "
    "(`hone db stats LOG` tells what it holds)";
constexpr std::string_view kPackageWay =
    "a package of Hone, compiled already; name the model that it was made of (an .onnx file)";
constexpr std::string_view kPointerWay =
    "a pointer of Git LFS, which stands for a file that was not fetched; run `git lfs pull`";
constexpr std::string_view kKerasWay =
    "a Keras model; convert it: python -m tf2onnx.convert --keras model.h5 --output model.onnx";

bool StartsWith(std::string_view bytes, std::string_view prefix) {
  return bytes.substr(0, prefix.size()) == prefix;
}

bool LooksLikeSafetensors(std::string_view bytes) {
  if (bytes.size() < 9 || bytes[8] != '{') return false;
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header <= bytes.size() - 8;
}

// A zip archive whose first file is NAME.npy.
bool IsNumpyArchive(std::string_view bytes) {
  constexpr size_t kHeaderBytes = 30, kNameLengthAt = 26;
  if (!StartsWith(bytes, "PK\x03\x04") || bytes.size() < kHeaderBytes) return false;
  const auto low = static_cast<unsigned char>(bytes[kNameLengthAt]);
  const auto high = static_cast<unsigned char>(bytes[kNameLengthAt + 1]);
  return bytes.substr(kHeaderBytes, low + 256U * high).ends_with(".npy");
}

/// Whether the file begins with printable ASCII alone, as no message of ONNX does.
bool IsText(std::string_view bytes) {
  constexpr size_t kLooked = 256;
  return std::ranges::all_of(bytes.substr(0, kLooked), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
}

/// What a file is that is certainly no ONNX model, by its first bytes; empty otherwise.
std::string_view ForeignByContent(std::string_view bytes) {
  constexpr std::string_view kPickle = "\x80\x02";
  if (IsNumpyArchive(bytes)) return kNumpyWay;
  if (StartsWith(bytes, "PK\x03\x04") || StartsWith(bytes, kPickle)) return kTorchWay;
  if (bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3") return kLiteWay;
  if (StartsWith(bytes, "\x89HDF")) return kKerasWay;
  if (StartsWith(bytes, "SQLite format 3")) return kDatabaseWay;
  if (StartsWith(bytes, "\x89HONE\r\n")) return kPackageWay;
  if (StartsWith(bytes, "version https://git-lfs.")) return kPointerWay;
  if (LooksLikeSafetensors(bytes)) return kSafetensorsWay;
  return {};
}

/// The same by the file's name, for files that could not be read as ONNX (models were called .pb
/// once).
std::string_view ForeignByName(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".pt" || extension == ".pth" || extension == ".bin" || extension == ".ckpt")
    return kTorchWay;
  if (extension == ".pb") return kTensorFlowWay;
  if (extension == ".tflite") return kLiteWay;
  if (extension == ".safetensors") return kSafetensorsWay;
  if (extension == ".h5" || extension == ".keras") return kKerasWay;
  return {};
}

absl::StatusOr<std::shared_ptr<const onnx::ModelProto>> Parse(std::span<const std::byte> bytes,
                                                              const std::filesystem::path& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const std::string_view foreign = ForeignByContent(text); !foreign.empty()) {
    return Invalid(fmt::format("this is {}", foreign));
  }
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Invalid(
        fmt::format("{} bytes in one message; save the model with external data (onnx.save with "
                    "save_as_external_data=True)",
                    bytes.size()));
  }
  const google::protobuf::LogSilencer silencer;
  auto model = std::make_shared<onnx::ModelProto>();
  const bool parsed = model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (parsed && model->has_graph()) return model;
  const std::string_view foreign = ForeignByName(path);
  if (!foreign.empty())
    return Invalid(fmt::format("this is no ONNX model; by its name it is {}", foreign));
  if (bytes.empty()) return Invalid("the file is empty");
  if (IsText(text)) return Invalid("this is a text file; name an ONNX model");
  if (parsed) return Invalid("the file holds no graph: is it an ONNX model?");
  return Invalid(fmt::format(
      "no ONNX model can be read from these {} bytes: the file is damaged or was cut off",
      bytes.size()));
}

absl::StatusOr<Graph> Import(std::span<const std::byte> bytes, const std::filesystem::path& path,
                             const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(auto model, Parse(bytes, path));
  Importer importer(model, options);
  auto graph = importer.Run();
  if (!absl::IsInvalidArgument(graph.status()) || !importer.FailedAtNodes()) return graph;
  const std::string fitting = onnx_import::SizesThatFit(model, options, importer.input_shapes());
  if (fitting.empty()) return graph;
  return Invalid(fmt::format("{}\n{}", StatusMessage(graph.status()), fitting));
}

}  // namespace

absl::StatusOr<Graph> ImportOnnx(std::span<const std::byte> bytes, const ImportOptions& options) {
  return Import(bytes, {}, options);
}

absl::StatusOr<Graph> ImportOnnxFile(const std::filesystem::path& path,
                                     const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  ImportOptions beside = options;
  if (beside.folder.empty()) {
    beside.folder = path.parent_path();
    std::error_code error;
    beside.linked_folder = std::filesystem::canonical(path, error).parent_path();
  }
  auto graph = Import(file->bytes(), path, beside);
  if (!graph.ok()) return Annotate(graph.status(), path.string());
  return graph;
}

}  // namespace hone::graph
