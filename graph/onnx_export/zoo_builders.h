#pragma once

#include "graph/onnx_export/onnx_writer.h"

// One function a network of the zoo; each appends inputs, nodes and outputs to an empty writer.
namespace hone::graph {

/// He, Zhang, Ren, Sun, "Deep residual learning", CVPR 2016, with the stride in the 3x3 convolution
/// as torchvision has it. Input [1, 3, 224, 224], output [1, 1000].
void BuildResnet18(OnnxWriter& writer);
void BuildResnet50(OnnxWriter& writer);

/// Sandler et al., "MobileNetV2", CVPR 2018, width 1. Input [1, 3, 224, 224], output [1, 1000].
void BuildMobilenetV2(OnnxWriter& writer);

/// Iandola et al., "SqueezeNet", 2016, version 1.1. Input [1, 3, 224, 224], output [1, 1000].
void BuildSqueezenet(OnnxWriter& writer);

/// Devlin et al., "BERT", NAACL 2019: 12 layers of 768, and 4 layers of 256 as small. Inputs
/// [1, 128] ids and mask (0, 1); outputs hidden states and pooled.
void BuildBertBase(OnnxWriter& writer);
void BuildBertSmall(OnnxWriter& writer);

/// Radford et al., "Language models are unsupervised multitask learners", 2019: 12 layers of 768,
/// the output projection shared with the embedding. Input [1, 128] ids, output logits [1, 128,
/// 50257].
void BuildGpt2Small(OnnxWriter& writer);

/// Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021; small: 12 layers of 384. Input
/// [1, 3, 224, 224], output [1, 1000].
void BuildVitSmall(OnnxWriter& writer);

/// A language model: embedding, two LSTM layers of 512, projection to 5000 words. Input ids [64, 1]
/// (time first), output [64, 1, 5000].
void BuildLstm(OnnxWriter& writer);

/// 784 - 256 - 128 - 10 with ReLU. Input [1, 784].
void BuildMlp(OnnxWriter& writer);

/// Ronneberger et al., "U-Net", MICCAI 2015, 32 channels at the top, batch norm, padded
/// convolutions. Input [1, 3, 256, 256], output [1, 1, 256, 256].
void BuildUnet(OnnxWriter& writer);

}  // namespace hone::graph
