#include "ir/cpu/cpu_facts.h"

#include "ir/cpu/cpu_target.h"

namespace hone::ir {
namespace {

class Facts final : public KindFacts {
 public:
  KindVersions versions() const override { return kCpuVersions; }

  std::string NarrowedText(const Target& target,
                           const std::function<bool(DType)>& has) const override {
    std::string text = target.text;
    const auto drop = [&](std::string_view extension) {
      const size_t at = text.find(extension);
      if (at != std::string::npos) text.erase(at, extension.size());
    };
    const bool bytes = has(DType::kI8) || has(DType::kU8);
    if (!bytes) drop("+vnni");
    if (!has(DType::kBF16)) drop("+bf16");
    if (!bytes && !has(DType::kBF16)) drop("+amx");
    return text;
  }

  bool Multiplies(const Target& target, DType dtype) const override {
    return dtype != DType::kBF16 || target.As<CpuTarget>().bf16 || target.As<CpuTarget>().amx;
  }
};

}  // namespace

const KindFacts& CpuFacts() {
  static const Facts facts;
  return facts;
}

}  // namespace hone::ir
