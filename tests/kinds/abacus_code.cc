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
