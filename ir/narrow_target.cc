#include "ir/narrow_target.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/core/check.h"

namespace hone::ir {
namespace {

bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }
bool IsBf16(DType dtype) { return dtype == DType::kBF16; }

/// An extension and the dtypes that it is for.
struct Extension {
  std::string_view text;
  bool (*serves)(DType);
};
constexpr Extension kExtensions[] = {{"+vnni", IsByte}, {"+bf16", IsBf16}};

}  // namespace

Target NarrowedTo(const Target& target, const Workload& workload) {
  return NarrowedTo(target, std::vector<const Workload*>{&workload});
}

Target NarrowedTo(const Target& target, const std::vector<const Workload*>& workloads) {
  std::string text = target.text;
  for (const Extension& extension : kExtensions) {
    const size_t at = text.find(extension.text);
    const bool used = std::ranges::any_of(workloads, [&](const Workload* workload) {
      return std::ranges::any_of(
          workload->tensors, [&](const Tensor& tensor) { return extension.serves(tensor.dtype); });
    });
    if (at != std::string::npos && !used) text.erase(at, extension.text.size());
  }
  Target narrowed;
  std::string error;
  HONE_CHECK(ParseTarget(text, &narrowed, &error)) << error;
  return narrowed;
}

}  // namespace hone::ir
