#include "codegen/cuda/cuda_code.h"

#include <memory>
#include <string>

#include "codegen/codegen.h"
#include "codegen/cuda/assemble.h"
#include "ir/cuda/cuda_code.h"
#include "ir/cuda/cuda_target.h"

namespace hone::codegen {
namespace {

class Code final : public KindCode {
 public:
  absl::StatusOr<std::string> Compile(const std::vector<const ir::LoopNest*>& nests,
                                      const ir::Target& target) const override {
    HONE_ASSIGN_OR_RETURN(std::string ptx, Assembly(nests, target));
    static const std::unique_ptr<Assembler> assembler = BuiltInAssembler();
    if (assembler == nullptr) return ptx;
    HONE_ASSIGN_OR_RETURN(Assembled made,
                          assembler->Assemble(ptx, target.As<ir::CudaTarget>().chip));
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
