#include "ir/kind_facts.h"

#include "base/core/check.h"
#include "ir/cpu/cpu_facts.h"
#include "ir/cuda/cuda_facts.h"

namespace hone::ir {

PerKind<KindFacts>& FactsOfKinds() {
  static PerKind<KindFacts> kinds = {{"cpu", &CpuFacts()}, {"cuda", &CudaFacts()}};
  return kinds;
}

KindVersions VersionsOf(std::string_view text) {
  const KindFacts* const facts = FactsOfKinds().Find(KindNameOf(text));
  return (facts != nullptr ? *facts : CpuFacts()).versions();
}

std::string_view AssemblyOf(const Target& target) { return FactsOfKinds().Of(target).assembly(); }

bool Multiplies(const Target& target, DType dtype) {
  const KindFacts* const facts = FactsOfKinds().Find(target.kind);
  return facts == nullptr || facts->Multiplies(target, dtype);
}

Target Narrowed(const Target& target, const std::function<bool(DType)>& has) {
  Target narrowed;
  std::string error;
  const std::string text = FactsOfKinds().Of(target).NarrowedText(target, has);
  HONE_CHECK(ParseTarget(text, &narrowed, &error)) << error;
  return narrowed;
}

bool SameButExtensions(std::string_view target, std::string_view other) {
  if (target == other) return true;
  Target one, two;
  std::string error;
  if (!ParseTarget(target, &one, &error) || !ParseTarget(other, &two, &error)) return false;
  const auto none = [](DType) { return false; };
  return Narrowed(one, none).text == Narrowed(two, none).text;
}

}  // namespace hone::ir
