#include "codegen/cuda/cuda_code.h"

#include <algorithm>
#include <memory>
#include <string>

#include "codegen/codegen.h"
#include "codegen/cuda/assemble.h"
#include "ir/cuda/cuda_code.h"
#include "ir/cuda/cuda_target.h"

namespace hone::codegen {
namespace {

/// What needs no shared memory may be the schedule that every Workload has (schedule/cuda/grid.h):
/// it is made whatever the assembler thinks of it.
bool UseShared(const std::vector<const ir::LoopNest*>& nests) {
  return std::ranges::any_of(nests, [](const ir::LoopNest* nest) {
    return std::ranges::any_of(
        nest->buffers, [](const ir::Buffer& buffer) { return buffer.scope == ir::Scope::kShared; });
  });
}

/// Null: what is emitted stays PTX, and the driver assembles it.
std::unique_ptr<Assembler> UsedAssembler() {
#if HONE_ASSEMBLE
  return BuiltInAssembler();
#else
  return nullptr;
#endif
}

class Code final : public KindCode {
 public:
  absl::StatusOr<std::string> Compile(const std::vector<const ir::LoopNest*>& nests,
                                      const ir::Target& target) const override {
    HONE_ASSIGN_OR_RETURN(std::string ptx, Assembly(nests, target));
    static const std::unique_ptr<Assembler> assembler = UsedAssembler();
    if (assembler == nullptr) return ptx;
    HONE_ASSIGN_OR_RETURN(Assembled made,
                          assembler->Assemble(ptx, target.As<ir::CudaTarget>().chip));
    const std::string refusal = AssemblerRefusal(made.log);
    if (!refusal.empty() && UseShared(nests)) return absl::InvalidArgumentError(refusal);
    return std::move(made.cubin);
  }

  absl::StatusOr<std::string> Link(const std::vector<std::string>& pieces,
                                   const std::vector<std::string>&) const override {
    return ir::PackCudaModules(pieces);
  }
};

}  // namespace

const KindCode& CudaCode() {
  static const Code code;
  return code;
}

}  // namespace hone::codegen
