#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::graph::onnx_import {

/// Why a node cannot be imported whose operator nobody knows more of.
inline constexpr char kUnknownOperator[] = "no such operator in Hone";

/// Why Hone has no operator of a domain that is not ONNX's default one, and what to do: for
/// com.microsoft and ai.onnx.ml which of ONNX's own operators do the same, or that none does.
std::string WhyForeign(std::string_view domain, std::string_view op);

/// The operators of the default domain that the above names, for tests.
std::vector<std::string> OperatorsNamedForForeignOnes();

}  // namespace hone::graph::onnx_import
