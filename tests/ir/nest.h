#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "ir/loop_interpreter.h"
#include "ir/tensor_buffer.h"

namespace hone::ir {

inline constexpr DType kF = DType::kF32;

inline Expr V(int id) { return Var(id); }
inline Expr F(double value) { return Const(kF, value); }
inline Expr At(int buffer, Expr index) { return Load(buffer, kF, {std::move(index)}); }

/// Collects buffers; arguments get slots in order.
class Nest {
 public:
  int Argument(const std::string& name, int64_t elements, bool read_only, DType dtype = kF) {
    return Add({.name = name,
                .scope = Scope::kArgument,
                .dtype = dtype,
                .elements = elements,
                .read_only = read_only,
                .argument = arguments_++});
  }
  int Memory(const std::string& name, Scope scope, int64_t elements, DType dtype = kF) {
    return Add({.name = name, .scope = scope, .dtype = dtype, .elements = elements});
  }
  int Add(Buffer buffer) {
    nest.buffers.push_back(std::move(buffer));
    return static_cast<int>(nest.buffers.size()) - 1;
  }
  void AddPhase(Stmt body, int64_t scratch_bytes = 0) {
    nest.phases.push_back({.body = std::move(body), .scratch_bytes = scratch_bytes});
  }

  absl::Status Run(std::vector<TensorBuffer*> arguments, LoopNestChecks checks = {}) {
    std::vector<std::span<uint8_t>> spans;
    for (TensorBuffer* argument : arguments) spans.emplace_back(argument->bytes);
    return RunLoopNest(nest, spans, checks);
  }

  LoopNest nest{.num_vars = 16};

 private:
  int arguments_ = 0;
};

}  // namespace hone::ir
