#include "tests/schedule/nest_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <sstream>
#include <utility>

#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/status.h"
#include "ir/kept_panels.h"
#include "ir/loop_interpreter.h"
#include "ir/tensor_buffer.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/schedule/run_code.h"

namespace hone::schedule {

namespace {

using ir::TensorBuffer;

TensorBuffer RandomTensor(const ir::Tensor& t, Random* random) {
  TensorBuffer out = TensorBuffer::Zeros(t.dtype, t.shape);
  for (int64_t i = 0; i < out.NumElements(); ++i) {
    if (ir::IsFloat(t.dtype)) {
      out.Set(i, {.f = t.range.low + (t.range.high - t.range.low) * random->Uniform()});
    } else if (ir::IsBool(t.dtype)) {
      out.Set(i, {.i = random->Chance(0.5) ? 1 : 0});
    } else if (t.kind == ir::TensorKind::kInput) {
      const auto low = static_cast<int64_t>(t.range.low), high = static_cast<int64_t>(t.range.high);
      out.Set(i, {.i = random->Between(low, std::max(low, high - 1))});
    } else {
      out.Set(i, {.i = random->Between(ir::IsUnsigned(t.dtype) ? 0 : -100, 100)});
    }
  }
  if (const ir::ZeroPattern zeros = ir::ZerosOf(t); zeros.columns > 0)
    ir::MakeZeros(zeros, random->Next(),
                  {reinterpret_cast<float*>(out.bytes.data()), out.bytes.size() / sizeof(float)});
  return out;
}

/// The memory of one kernel's buffers, in the order of its interface.
struct Memory {
  std::vector<std::vector<uint8_t>> buffers;
  size_t first_output = 0;
};

int64_t BytesOfBuffer(const ir::LoopNest& nest, size_t argument) {
  for (const auto& b : nest.buffers) {
    if (b.scope == ir::Scope::kArgument && b.argument == static_cast<int>(argument))
      return b.elements * ir::SizeOf(b.dtype);
  }
  return 0;
}

struct Layout {
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

Layout LayoutOf(const std::vector<int64_t>& shape, const Binding& binding, size_t buffer) {
  Layout l;
  if (buffer < binding.buffers.size())
    l = {binding.buffers[buffer].offset, binding.buffers[buffer].strides};
  if (l.strides.empty()) {
    l.strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) l.strides[d] = stride;
  }
  return l;
}

/// Calls visit(row-major number, element number in the layout) for every element.
template <typename F>
void ForEachElement(const std::vector<int64_t>& shape, const Layout& layout, F visit) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = layout.offset, rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      at += rest % shape[d] * layout.strides[d];
    visit(i, at);
  }
}

class Checker {
 public:
  Checker(const ir::Workload& workload, const CheckOptions& options)
      : w_(workload), options_(options) {}

  CheckResult Run(const Trace& trace) {
    CheckResult result;
    const ir::Target target = TargetOf(options_.target);
    auto lowered = LowerTrace(w_, trace, target, options_.binding, "k");
    if (!lowered.ok()) return {Agreement::kIllegal, std::string(lowered.status().message()), {}};
    result.lowered = *std::move(lowered);
    const absl::Status status = Compare(result.lowered, target);
    if (status.ok()) return result;
    result.agreement = status.code() == absl::StatusCode::kInvalidArgument ? Agreement::kRefused
                                                                           : Agreement::kDifferent;
    result.why = std::string(status.message());
    return result;
  }

 private:
  absl::Status Compare(const Lowered& lowered, const ir::Target& target) {
    Random random(options_.seed);
    for (const auto& ids : {w_.Inputs(), w_.Constants()}) {
      for (int id : ids)
        arguments_.push_back(RandomTensor(w_.tensors[static_cast<size_t>(id)], &random));
    }
    std::vector<ir::InterpretedTensor> own;
    auto& expected = options_.expected != nullptr ? *options_.expected : own;
    if (expected.empty()) {
      auto made = ir::RunWorkload(w_, arguments_);
      if (!made.ok())
        return absl::InternalError("interpreter: " + std::string(made.status().message()));
      expected = *std::move(made);
    }
    HONE_ASSIGN_OR_RETURN(Memory memory, MakeMemory(lowered));
    Memory for_code = memory;
    std::vector<std::span<uint8_t>> spans;
    for (auto& b : memory.buffers) spans.emplace_back(b);
    if (absl::Status s = ir::RunLoopNest(lowered.nest, spans); !s.ok()) {
      return absl::InternalError("loop nest: " + std::string(s.message()));
    }
    HONE_RETURN_IF_ERROR(CompareOutputs(expected, memory, "loop nest"));
    if (options_.also_run) {
      Memory memory_of_it = for_code;
      HONE_RETURN_IF_ERROR(options_.also_run(lowered.nest, &memory_of_it.buffers));
      HONE_RETURN_IF_ERROR(CompareOutputs(expected, memory_of_it, "the other way"));
    }
    std::string why;
    if (!options_.compile || !ir::HostCanRun(target, &why)) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(RunCode(lowered.nest, target, &for_code.buffers));
    return CompareOutputs(expected, for_code, "code");
  }

  absl::StatusOr<Memory> MakeMemory(const Lowered& lowered) {
    Memory memory;
    const ir::Artifact& a = lowered.artifact;
    auto add_unset = [&](size_t count) {
      for (size_t k = 0; k < count; ++k) {
        memory.buffers.emplace_back(
            static_cast<size_t>(BytesOfBuffer(lowered.nest, memory.buffers.size())), 0xFF);
      }
    };
    for (const TensorBuffer& t : arguments_) {
      const size_t k = memory.buffers.size();
      const Layout layout = LayoutOf(t.shape, options_.binding, k);
      std::vector<uint8_t> bytes(static_cast<size_t>(BytesOfBuffer(lowered.nest, k)), 0xFF);
      ForEachElement(t.shape, layout, [&](int64_t i, int64_t at) {
        ir::WriteElement(t.dtype, bytes.data(), at, t.At(i));
      });
      memory.buffers.push_back(std::move(bytes));
    }
    HONE_RETURN_IF_ERROR(AddPrologue(lowered, &memory));
    memory.first_output = memory.buffers.size();
    add_unset(a.outputs.size() + a.workspace.size());
    return memory;
  }

  /// What the prologue's Workload gives, run by the interpreter, as the compiler does it when
  /// packaging.
  absl::Status AddPrologue(const Lowered& lowered, Memory* memory) {
    const ir::Artifact& a = lowered.artifact;
    if (a.prologue.empty()) return absl::OkStatus();
    const size_t first_constant = w_.Inputs().size();
    std::vector<TensorBuffer> arguments;
    for (int32_t k : a.prologue_inputs)
      arguments.push_back(arguments_[first_constant + static_cast<size_t>(k)]);
    auto results = ir::RunWorkload(lowered.prologue, arguments);
    if (!results.ok())
      return absl::InternalError("prologue: " + std::string(results.status().message()));
    for (size_t k = 0; k < a.prologue.size(); ++k) {
      const TensorBuffer& t = (*results)[static_cast<size_t>(a.prologue_outputs[k])].tensor;
      if (a.prologue[k].bytes != static_cast<int64_t>(t.bytes.size())) {
        return absl::InternalError(fmt::format("prologue result {} has {} bytes, its buffer {}", k,
                                               t.bytes.size(), a.prologue[k].bytes));
      }
      memory->buffers.push_back(t.bytes);
    }
    return absl::OkStatus();
  }

  absl::Status CompareOutputs(const std::vector<ir::InterpretedTensor>& expected,
                              const Memory& memory, const char* what) {
    const size_t num_given = arguments_.size();
    for (size_t k = 0; k < expected.size(); ++k) {
      const TensorBuffer& t = expected[k].tensor;
      double largest = 0;
      for (double v : expected[k].values) {
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
      }
      std::string wrong;
      int64_t count = 0;
      const Layout layout = LayoutOf(t.shape, options_.binding, num_given + k);
      ForEachElement(t.shape, layout, [&](int64_t i, int64_t at) {
        const double want = expected[k].values[static_cast<size_t>(i)];
        const double got = ir::ToDouble(
            t.dtype, ir::ReadElement(t.dtype, memory.buffers[memory.first_output + k].data(), at));
        const double bound =
            2 * expected[k].bounds[static_cast<size_t>(i)] + options_.slack * largest;
        const bool same =
            want == got || (std::isnan(want) && std::isnan(got)) || std::fabs(want - got) <= bound;
        if (same) return;
        if (count++ < 4)
          wrong += fmt::format(" [{}] is {} instead of {} ± {};", i, got, want, bound);
      });
      if (count > 0)
        return absl::InternalError(
            fmt::format("{}: output {}: {} wrong:{}", what, k, count, wrong));
    }
    return absl::OkStatus();
  }

  const ir::Workload& w_;
  const CheckOptions& options_;
  std::vector<TensorBuffer> arguments_;
};

}  // namespace

CheckResult CheckTrace(const ir::Workload& workload, const Trace& trace,
                       const CheckOptions& options) {
  return Checker(workload, options).Run(trace);
}

CheckResult CheckTexts(const std::string& workload, const std::string& trace,
                       const CheckOptions& options) {
  return CheckTrace(WorkloadOf(workload), TraceOf(trace), options);
}

std::string Loops(const std::string& workload, const std::string& trace) {
  const CheckResult result = CheckTexts(workload, trace);
  if (result.agreement == Agreement::kIllegal) return "illegal: " + result.why;
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why;
  std::istringstream in(ir::ToText(result.lowered.nest));
  std::string line, out;
  while (std::getline(in, line)) {
    if (line.rfind("  ", 0) == 0) out += line.substr(2) + "\n";
  }
  return out;
}

Trace CheckedDefault(const std::string& text, const std::string& target) {
  const ir::Workload workload = WorkloadOf(text);
  const auto trace = DefaultTrace(workload, TargetOf(target));
  EXPECT_TRUE(trace.ok()) << trace.status();
  if (!trace.ok()) return {};
  const CheckResult result = CheckTrace(workload, *trace, {.target = target, .compile = true});
  EXPECT_EQ(result.agreement, Agreement::kEqual) << result.why << "\n" << ToText(*trace);
  return *trace;
}

std::string CheckedDefaultText(const std::string& text, const std::string& target) {
  return ToText(CheckedDefault(text, target));
}

ir::Workload WorkloadOf(const std::string& text) {
  auto w = ir::ParseWorkload(text);
  if (!w.ok()) {
    ADD_FAILURE() << w.status() << "\n" << text;
    return {};
  }
  const absl::Status verified = ir::Verify(*w);
  EXPECT_TRUE(verified.ok()) << verified << "\n" << text;
  return *std::move(w);
}

Trace TraceOf(const std::string& text) {
  auto t = ParseTrace(text);
  if (!t.ok()) {
    ADD_FAILURE() << t.status();
    return {};
  }
  return *std::move(t);
}

ir::Target TargetOf(const std::string& text) {
  ir::Target target;
  std::string error;
  EXPECT_TRUE(ir::ParseTarget(text, &target, &error)) << error;
  return target;
}

}  // namespace hone::schedule
