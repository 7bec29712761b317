#include "measure/seeded_package.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/core/byte_stream.h"
#include "base/core/status_macros.h"
#include "ir/artifact.h"
#include "ir/plan.h"
#include "measure/fill.h"

namespace hone::measure {
namespace {

// Larger than any machine's memory.
constexpr int64_t kMostBytes = int64_t{1} << 40;

void FillConstant(ir::DType dtype, uint64_t seed, int tensor, std::span<std::byte> bytes) {
  constexpr double kReach = 0.1;
  switch (dtype) {
    case ir::DType::kI32:
    case ir::DType::kU32:
    case ir::DType::kI64:
    case ir::DType::kU64: return FillTensor(dtype, 0, 0, seed, tensor, bytes);
    case ir::DType::kI8: return FillTensor(dtype, -128, 128, seed, tensor, bytes);
    case ir::DType::kU8: return FillTensor(dtype, 0, 256, seed, tensor, bytes);
    default: return FillTensor(dtype, -kReach, kReach, seed, tensor, bytes);
  }
}

/// The tensors of a step in the order of its buffers.
std::vector<ir::ArtifactBuffer> TensorsOf(const ir::Plan& plan, const ir::PlanStep& step) {
  std::vector<ir::ArtifactBuffer> tensors;
  const auto add = [&](const std::vector<ir::ArtifactBuffer>& list) {
    tensors.insert(tensors.end(), list.begin(), list.end());
  };
  if (step.kind == ir::PlanStepKind::kExtern) {
    add(step.extern_inputs);
    return tensors;
  }
  const ir::Artifact& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  for (const auto* list : {&kernel.inputs, &kernel.constants, &kernel.prologue}) add(*list);
  return tensors;
}

void FillConstants(const ir::Plan& plan, uint64_t seed, std::span<std::byte> constants) {
  int tensor = 0;
  for (const ir::PlanStep& step : plan.steps) {
    const std::vector<ir::ArtifactBuffer> tensors = TensorsOf(plan, step);
    for (size_t i = 0; i < tensors.size() && i < step.buffers.size(); ++i) {
      if (step.buffers[i] == ir::kNoPlanBuffer) continue;
      const ir::PlanBuffer& buffer = plan.buffers[static_cast<size_t>(step.buffers[i])];
      if (buffer.kind != ir::PlanBufferKind::kConstant) continue;
      FillConstant(
          tensors[i].dtype, seed, tensor++,
          constants.subspan(static_cast<size_t>(buffer.offset), static_cast<size_t>(buffer.bytes)));
    }
  }
}

}  // namespace

Result<std::string> CutConstants(const runtime::Package& package) {
  // Zeros have a checksum that whoever makes the constants up can have, too.
  const std::vector<std::byte> zeros(package.constants.size());
  runtime::Package without = package;
  without.constants = zeros;
  HONE_ASSIGN_OR_RETURN(std::string bytes, runtime::SerializePackage(without));
  ByteWriter writer;
  writer.Put(static_cast<int64_t>(bytes.size()));
  bytes.resize(bytes.size() - zeros.size());  // they stand last
  writer.PutText(bytes);
  return writer.Take();
}

Result<SeededPackage> SeededPackage::Make(std::string_view cut, uint64_t seed) {
  ByteReader reader(cut);
  const auto bytes = reader.Get<int64_t>();
  const std::string_view head = reader.GetText();
  if (bytes < static_cast<int64_t>(head.size()) || bytes > kMostBytes) reader.Fail("its size");
  HONE_RETURN_IF_ERROR(reader.Finish("package without constants"));
  SeededPackage package;
  HONE_ASSIGN_OR_RETURN(package.memory,
                        runtime::Region::Allocate(static_cast<size_t>(bytes), "a package"));
  std::memcpy(package.memory.data(), head.data(), head.size());
  HONE_ASSIGN_OR_RETURN(
      package.executable,
      runtime::Executable::OpenMemory(package.memory.span().first(static_cast<size_t>(bytes)),
                                      {.in_place = true}));
  const std::span<const std::byte> constants = package.executable->constants();
  if (constants.empty()) return package;
  const auto at = static_cast<size_t>(constants.data() - package.memory.data());
  FillConstants(package.executable->plan(), seed,
                package.memory.span().subspan(at, constants.size()));
  return package;
}

}  // namespace hone::measure
