#include "codegen/kind_code.h"

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_code.h"
#include "ir/launch.h"

namespace hone::codegen {
namespace {

/// ELF objects, linked into a shared one.
class CpuCode final : public KindCode {
 public:
  absl::StatusOr<std::string> Compile(const std::vector<const ir::LoopNest*>& nests,
                                      const ir::Target& target) const override {
    return CompileToObject(nests, target);
  }
  absl::StatusOr<std::string> Link(const std::vector<std::string>& pieces,
                                   const std::vector<std::string>& bases) const override {
    return LinkShared(pieces, bases);
  }
};

}  // namespace

ir::Launch KindCode::LaunchOf(const ir::LoopNest& nest, const ir::Phase& phase) const {
  return ir::LaunchOf(nest, phase);
}

ir::PerKind<KindCode>& CodeOfKinds() {
  static const CpuCode cpu;
  static ir::PerKind<KindCode> kinds = {{"cpu", &cpu}, {"cuda", &CudaCode()}};
  return kinds;
}

}  // namespace hone::codegen
