#pragma once

#include <optional>
#include <string>

#include "base/core/clock.h"
#include "client/arguments.h"
#include "ir/target.h"
#include "measure/device_probe.h"

// Whether `--precision bf16` makes products faster here: some processors have vdpbf16ps and do it
// at half the rate of FMA, or less.
namespace hone::client {

/// Products of bf16 that are not so many times as fast as those of f32 are not worth the rounding:
/// what rounds and packs operands takes its share too. Processors have 2, or at most 1.
inline constexpr double kLeastBf16Gain = 1.25;

/// How many times as fast as products of f32 those of bf16 are, as `probe` measures it. Nothing
/// where the target has none, or nothing could be measured.
std::optional<double> Bf16Gain(const measure::DeviceProbe& probe, const ir::Target& target,
                               const MonotonicClock& clock);
/// The same of `native` on this machine, measured once by a program: all that it does rests on one
/// answer.
std::optional<double> Bf16GainHere();

/// The target without its products of bf16 where their gain is too small. An unknown gain is
/// enough.
ir::Target WithoutSlowBf16(const ir::Target& target, std::optional<double> gain);

/// With --precision bf16, a line that says which products stay in f32 for `target` (resolved) and
/// why; empty where none does for want of speed.
std::string KeptInF32Note(const Arguments& arguments, const std::string& target);
/// The same with the gain of this machine's products of bf16.
std::string KeptInF32Text(const ir::Target& target, std::optional<double> gain);

}  // namespace hone::client
