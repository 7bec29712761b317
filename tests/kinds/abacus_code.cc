#include <algorithm>
#include <cmath>

#include "codegen/codegen.h"
#include "codegen/kind_code.h"
#include "tests/kinds/abacus.h"
#include "tests/kinds/abacus_memory.h"

namespace hone::abacus {
namespace {

ir::Target HostOf() {
  ir::Target target;
  std::string why;
  HONE_CHECK(ir::ParseTarget("cpu:avx2,threads=1", &target, &why)) << why;
  return target;
}

/// The host's code, so written that the host's loader refuses it.
class Code final : public codegen::KindCode {
 public:
  absl::StatusOr<std::string> Compile(const std::vector<const ir::LoopNest*>& nests,
                                      const ir::Target&) const override {
    return codegen::CompileToObject(nests, HostOf());
  }
  /// As a grid of three dimensions over the parallel loop, with a descriptor of each argument.
  ir::Launch LaunchOf(const ir::LoopNest& nest, const ir::Phase& phase) const override {
    ir::Launch launch;
    const double side = std::ceil(std::cbrt(static_cast<double>(phase.parallel_extent)));
    launch.grid_x = launch.grid_y = launch.grid_z = std::max<int64_t>(1, std::llround(side));
    for (const int id : ir::BuffersOf(phase.body)) {
      const ir::Buffer& buffer = nest.buffers[static_cast<size_t>(id)];
      const int64_t bytes = buffer.elements * ir::SizeOf(buffer.dtype);
      if (buffer.scope != ir::Scope::kArgument || bytes == 0) continue;
      launch.descriptors.push_back({.argument = buffer.argument,
                                    .dtype = ir::DType::kU8,
                                    .shape = {bytes},
                                    .strides = {},
                                    .box = {1}});
    }
    return launch;
  }
  absl::StatusOr<std::string> Link(const std::vector<std::string>& pieces,
                                   const std::vector<std::string>& bases) const override {
    HONE_ASSIGN_OR_RETURN(const std::string linked, codegen::LinkShared(pieces, bases));
    return Disguised(linked);
  }
};

/// Linked into hone-builder, this makes it know the abacus.
const bool kRegistered = [] {
  static const Code code;
  Register();
  codegen::CodeOfKinds().Add("abacus", &code);
  return true;
}();

}  // namespace
}  // namespace hone::abacus
