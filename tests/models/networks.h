#pragma once

namespace hone::testing {

/// Heavy and light ones alternate, so that two shards take about as long.
inline constexpr const char* kModels[] = {"gpt2_prefill",
                                          "bert_base",
                                          "vgg16",
                                          "unet",
                                          "densenet121",
                                          "vit_small",
                                          "convnext_tiny",
                                          "segformer_b0",
                                          "gpt2_decode",
                                          "lstm_lm",
                                          "resnet50",
                                          "efficientnet_b0",
                                          "bert_small",
                                          "resnet18",
                                          "mobilenet_v2",
                                          "squeezenet",
                                          "lenet5",
                                          "mlp",
                                          "mobilenet_v3_small"};

/// Why a test of filled models skips.
inline constexpr char kNotFilled[] =
    "no filled models; run scripts/models.sh, as scripts/test.sh does";

}  // namespace hone::testing
