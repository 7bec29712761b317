#pragma once

#include "graph/onnx_export/onnx_writer.h"

// Layers that several networks of the zoo share. Each names its output `name` and its weights below
// it.
namespace hone::graph {

struct ConvolutionSpec {
  int64_t in = 1;
  int64_t out = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t pad = 0;
  int64_t groups = 1;
  bool bias = false;
  double gain = 1.41;  ///< sqrt(2) makes up for the half that a ReLU takes
};

/// NCHW, square.
std::string Convolution(OnnxWriter& writer, const std::string& name, const std::string& x,
                        const ConvolutionSpec& spec);

/// The range of a batch norm's scale.
struct NormScale {
  double low = 0.6;
  double high = 1.4;
};
std::string BatchNorm(OnnxWriter& writer, const std::string& name, const std::string& x,
                      int64_t channels, NormScale scale = {});

std::string Relu(OnnxWriter& writer, const std::string& name, const std::string& x);

/// Gemm with bias on [1, in]: as exporters write a linear layer of rank 2.
std::string Linear(OnnxWriter& writer, const std::string& name, const std::string& x, int64_t in,
                   int64_t out, double gain = 1.0);

/// MatMul and Add on [..., in]: as exporters write one of higher rank.
std::string Projection(OnnxWriter& writer, const std::string& name, const std::string& x,
                       int64_t in, int64_t out, double gain = 1.0);

/// Over the last axis.
std::string LayerNorm(OnnxWriter& writer, const std::string& name, const std::string& x,
                      int64_t width, double epsilon);

}  // namespace hone::graph
