#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/onnx_import/node_import.h"

// The table of ONNX operators: one file per family, one line per operator and range of opsets.
namespace hone::graph::onnx_import {

inline constexpr size_t kAnyNumber = 1 << 20;

/// How one operator of the default domain is imported, from opset `since` until the next entry of
/// its name.
struct Handler {
  std::string_view op;
  int64_t since = 1;
  size_t min_inputs = 0;
  size_t max_inputs = 0;
  size_t max_outputs = 1;
  void (*import)(NodeImport& node) = nullptr;  ///< null where `unsupported` says why
  std::string_view unsupported = {};           ///< holds for every node of the operator
};

std::span<const Handler> ActivationHandlers();
std::span<const Handler> ElementwiseHandlers();
std::span<const Handler> ShapeHandlers();
std::span<const Handler> SliceHandlers();
std::span<const Handler> GatherHandlers();
std::span<const Handler> AttentionHandlers();
std::span<const Handler> ConstantHandlers();
std::span<const Handler> ConvHandlers();
std::span<const Handler> PoolHandlers();
std::span<const Handler> MatMulHandlers();
std::span<const Handler> NormaliseHandlers();
std::span<const Handler> ReduceHandlers();
std::span<const Handler> ResizeHandlers();
std::span<const Handler> RecurrentHandlers();
std::span<const Handler> QuantiseHandlers();
std::span<const Handler> SelectionHandlers();
std::span<const Handler> LossHandlers();
std::span<const Handler> SamplingHandlers();
std::span<const Handler> SignalHandlers();
std::span<const Handler> LegacyHandlers();

/// The handler of an operator at an opset, or null. Thread-safe.
const Handler* FindHandler(std::string_view op, int64_t opset);
/// The handler of an operator of com.microsoft, or null. Thread-safe.
const Handler* FindMicrosoftHandler(std::string_view op);
/// The first opset that has it here, 0 for none. Thread-safe.
int64_t FirstOpset(std::string_view op);

}  // namespace hone::graph::onnx_import
