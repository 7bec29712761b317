#include "ir/cuda/cuda_facts.h"

namespace hone::ir {

const KindFacts& CudaFacts() {
  class Facts final : public KindFacts {
   public:
    KindVersions versions() const override { return kCudaVersions; }
    std::string_view assembly() const override { return "ptx"; }
  };
  static const Facts facts;
  return facts;
}

}  // namespace hone::ir
