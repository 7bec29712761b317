#include "graph/onnx_import/foreign_operators.h"

#include <algorithm>

#include "fmt/format.h"

namespace hone::graph::onnx_import {
namespace {

/// Who writes such operators, which decides how to get a model without them.
enum class Writer { kOptimiser, kQuantiser, kGenerator, kSklearn, kOther };

struct Foreign {
  std::string_view op;
  std::string_view same;  ///< ONNX's own operators that do the same; empty: none
  Writer writer = Writer::kOptimiser;
};

constexpr Foreign kMicrosoft[] = {
    {"Attention", "MatMul, Split, Attention"},
    {"BeamSearch", "", Writer::kGenerator},
    {"BiasAdd", "Add"},
    {"BiasDropout", "Add"},
    {"BiasGelu", "Add, Gelu"},
    {"BiasSoftmax", "Add, Softmax"},
    {"BiasSplitGelu", "Add, Split, Gelu, Mul"},
    {"CDist", "Sub, Mul, ReduceSum, Sqrt", Writer::kOther},
    {"ConvTransposeWithDynamicPads", "", Writer::kOther},
    {"CropAndResize", "", Writer::kOther},
    {"DecoderMaskedMultiHeadAttention", "Attention"},
    {"DequantizeLinear", "DequantizeLinear", Writer::kQuantiser},
    {"EmbedLayerNormalization", "Gather, Add, LayerNormalization"},
    {"DecoderMaskedSelfAttention", "MatMul, Split, Attention"},
    {"ExpandDims", "Unsqueeze", Writer::kOther},
    {"FastGelu", "Gelu"},
    {"FusedGemm", "Gemm, Relu"},
    {"FusedMatMulActivation", "MatMul, Relu"},
    {"GatherBlockQuantized", "Gather, DequantizeLinear", Writer::kQuantiser},
    {"GatherND", "GatherND", Writer::kOther},
    {"Gelu", "Gelu"},
    {"GemmFastGelu", "Gemm, Gelu"},
    {"GreedySearch", "", Writer::kGenerator},
    {"GridSample", "GridSample", Writer::kOther},
    {"GroupNorm", "GroupNormalization, Sigmoid, Mul"},
    {"GroupQueryAttention", "RotaryEmbedding, Concat, Attention"},
    {"Inverse", "", Writer::kOther},
    {"Irfft", "DFT", Writer::kOther},
    {"MatMulBnb4", "", Writer::kQuantiser},
    {"MatMulFpQ4", "", Writer::kQuantiser},
    {"MoE", "", Writer::kOther},
    {"MultiHeadAttention", "Attention"},
    {"NhwcConv", "Transpose, Conv"},
    {"NhwcFusedConv", "Transpose, Conv, Relu"},
    {"NhwcMaxPool", "Transpose, MaxPool"},
    {"Pad", "Pad", Writer::kOther},
    {"QEmbedLayerNormalization", "DequantizeLinear, Gather, LayerNormalization",
     Writer::kQuantiser},
    {"QLinearAveragePool", "DequantizeLinear, AveragePool, QuantizeLinear", Writer::kQuantiser},
    {"QLinearConv", "QLinearConv", Writer::kQuantiser},
    {"QLinearGlobalAveragePool", "DequantizeLinear, GlobalAveragePool, QuantizeLinear",
     Writer::kQuantiser},
    {"QLinearLeakyRelu", "DequantizeLinear, LeakyRelu, QuantizeLinear", Writer::kQuantiser},
    {"QLinearReduceMean", "DequantizeLinear, ReduceMean, QuantizeLinear", Writer::kQuantiser},
    {"QLinearSigmoid", "DequantizeLinear, Sigmoid, QuantizeLinear", Writer::kQuantiser},
    {"QLinearSoftmax", "DequantizeLinear, Softmax, QuantizeLinear", Writer::kQuantiser},
    {"QLinearWhere", "DequantizeLinear, Where, QuantizeLinear", Writer::kQuantiser},
    {"QMoE", "", Writer::kQuantiser},
    {"QuantizeLinear", "QuantizeLinear", Writer::kQuantiser},
    {"QuickGelu", "Mul, Sigmoid"},
    {"Range", "Range", Writer::kOther},
    {"RelativePositionBias", "Gather, Transpose"},
    {"Rfft", "DFT", Writer::kOther},
    {"RotaryEmbedding", "RotaryEmbedding"},
    {"Sampling", "", Writer::kGenerator},
    {"SkipGroupNorm", "Add, GroupNormalization"},
    {"SkipLayerNormalization", "Add, LayerNormalization"},
    {"SkipSimplifiedLayerNormalization", "Add, RMSNormalization"},
    {"SwiGLU", "Sigmoid, Mul"},
    {"TorchEmbedding", "Gather", Writer::kOther},
    {"TransposeMatMul", "Transpose, MatMul"},
    {"Trilu", "Trilu", Writer::kOther},
    {"WhisperBeamSearch", "", Writer::kGenerator},
};

constexpr Foreign kClassical[] = {
    {"ArrayFeatureExtractor", "Gather", Writer::kSklearn},
    {"Binarizer", "Greater, Cast", Writer::kSklearn},
    {"FeatureVectorizer", "Concat", Writer::kSklearn},
    {"Imputer", "IsNaN, Where", Writer::kSklearn},
    {"LinearClassifier", "Gemm, Softmax", Writer::kSklearn},
    {"LinearRegressor", "Gemm", Writer::kSklearn},
    {"Normalizer", "LpNormalization", Writer::kSklearn},
    {"OneHotEncoder", "OneHot", Writer::kSklearn},
    {"Scaler", "Sub, Mul", Writer::kSklearn},
};

std::string_view WayAround(Writer writer) {
  switch (writer) {
    case Writer::kOptimiser:
      return "ONNX Runtime's optimiser writes it: compile the original model, or optimise at level "
             "ORT_ENABLE_BASIC only";
    case Writer::kQuantiser:
      return "ONNX Runtime's quantiser writes it: quantise with quant_format=QuantFormat.QDQ, or "
             "compile the original model";
    case Writer::kGenerator:
      return "it is the generation loop around a decoder: export the decoder alone, and write the "
             "loop "
             "in your program";
    default: return "export the model with ONNX's own operators only";
  }
}

std::string Explain(std::string_view domain, std::string_view same, std::string_view way) {
  if (same.empty()) {
    return fmt::format(
        "no such operator in Hone, and no operator of ONNX does the same as this one of {}; {}",
        domain, way);
  }
  return fmt::format("no such operator in Hone; ONNX's own {} {} the same; {}", same,
                     same.find(',') == std::string_view::npos ? "does" : "do", way);
}

}  // namespace

std::string WhyForeign(std::string_view domain, std::string_view op) {
  const auto named = [op](const Foreign& foreign) { return foreign.op == op; };
  if (domain == "com.microsoft") {
    const auto* const found = std::find_if(std::begin(kMicrosoft), std::end(kMicrosoft), named);
    if (found != std::end(kMicrosoft))
      return Explain(domain, found->same, WayAround(found->writer));
    return "no such operator in Hone: it is ONNX Runtime's own; compile the model as it was "
           "exported";
  }
  if (domain == "ai.onnx.ml") {
    const auto* const found = std::find_if(std::begin(kClassical), std::end(kClassical), named);
    if (found != std::end(kClassical))
      return Explain(domain, found->same, WayAround(found->writer));
    if (op.starts_with("TreeEnsemble")) {
      return Explain(domain, "",
                     "hummingbird-ml converts trees to tensor operators and exports those");
    }
    if (op == "ZipMap")
      return Explain(domain, "", "convert without it (skl2onnx: options={'zipmap': False})");
    return Explain(domain, "", "Hone compiles tensor programs, not trees or strings");
  }
  return kUnknownOperator;
}

std::vector<std::string> OperatorsNamedForForeignOnes() {
  std::vector<std::string> names;
  const auto add = [&](const Foreign& foreign) {
    for (size_t at = 0; at < foreign.same.size();) {
      const size_t end = std::min(foreign.same.find(", ", at), foreign.same.size());
      names.emplace_back(foreign.same.substr(at, end - at));
      at = end + 2;
    }
  };
  for (const Foreign& foreign : kMicrosoft) add(foreign);
  for (const Foreign& foreign : kClassical) add(foreign);
  return names;
}

}  // namespace hone::graph::onnx_import
