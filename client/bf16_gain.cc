#include "client/bf16_gain.h"

#include "fmt/format.h"

#include "client/model_options.h"
#include "ir/kind_facts.h"

namespace hone::client {

std::optional<double> Bf16Gain(const measure::DeviceProbe& probe, const ir::Target& target,
                               const MonotonicClock& clock) {
  const auto operations = probe.Operations(target, clock);
  if (!operations.ok()) return std::nullopt;
  const double wide = (*operations)[static_cast<size_t>(ir::ArithmeticUnit::kF32)];
  const double narrow = (*operations)[static_cast<size_t>(ir::ArithmeticUnit::kDotBF16)];
  if (wide <= 0 || narrow <= 0) return std::nullopt;
  return narrow / wide;
}

std::optional<double> Bf16GainHere() {
  static const std::optional<double> gain = []() -> std::optional<double> {
    ir::Target native;
    std::string why;
    if (!ir::ParseTarget(ir::ResolveNative("cpu:native", 1), &native, &why)) return std::nullopt;
    const measure::DeviceProbe* const probe = measure::ProbesOfKinds().Find(native.kind);
    if (probe == nullptr || !ir::Multiplies(native, ir::DType::kBF16)) return std::nullopt;
    return Bf16Gain(*probe, native, SystemMonotonicClock());
  }();
  return gain;
}

ir::Target WithoutSlowBf16(const ir::Target& target, std::optional<double> gain) {
  if (!gain || *gain >= kLeastBf16Gain) return target;
  return ir::Narrowed(target, [](ir::DType dtype) { return dtype != ir::DType::kBF16; });
}

std::string KeptInF32Note(const Arguments& arguments, const std::string& target) {
  const auto precision = ReadPrecision(arguments);
  ir::Target parsed;
  std::string why;
  if (!precision.ok() || *precision != ir::DType::kBF16) return "";
  if (!ir::ParseTarget(target, &parsed, &why) || ir::Multiplies(parsed, *precision)) return "";
  const bool here = IsPlainNative(arguments.Text("target"));
  return KeptInF32Text(parsed, here ? Bf16GainHere() : std::nullopt);
}

std::string KeptInF32Text(const ir::Target& target, std::optional<double> gain) {
  const std::string why =
      gain ? fmt::format("this processor multiplies bf16 at {:.2f} times the rate of f32", *gain)
           : target.family + " has no products of bf16";
  return fmt::format(
      "{}: --precision bf16 leaves products in f32, but for large weights that at most 8 rows "
      "read{}\n",
      why, gain ? "; --target cpu:native+bf16 rounds all the same" : "");
}

}  // namespace hone::client
