"""Architectures of the package transformers with small random weights: name -> (module, inputs)."""
import torch
import transformers

WORDS = {"vocab_size": 99}
BERT = {**WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 40}
GPT = {**WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}
LLAMA = {**BERT, "num_key_value_heads": 2, "head_dim": 8}
PAIR = {**WORDS, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48, "max_position_embeddings": 40}
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
       "image_size": 32, "patch_size": 8}
STAGES = {"num_channels": 3, "image_size": 32}
SOUND = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
         "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 3),
         "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 2}

# Class of the model -> what its config says beside the defaults, and what it takes.
TABLE = {
    "BertModel": (BERT, "words"),
    "RobertaModel": (BERT, "words"),
    "XLMRobertaModel": (BERT, "words"),
    "CamembertModel": (BERT, "words"),
    "ElectraModel": ({**BERT, "embedding_size": 16}, "words"),
    "AlbertModel": ({**BERT, "embedding_size": 16}, "words"),
    "ErnieModel": (BERT, "words"),
    "MPNetModel": (BERT, "words"),
    "DistilBertModel": ({**WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
                         "max_position_embeddings": 40}, "words"),
    "MobileBertModel": ({**BERT, "embedding_size": 32, "intra_bottleneck_size": 32,
                         "true_hidden_size": 32}, "words"),
    "SqueezeBertModel": ({**BERT, "embedding_size": 32}, "words"),
    "DebertaModel": ({**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "words"),
    "DebertaV2Model": ({**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, "words"),
    "ModernBertModel": ({**BERT, "pad_token_id": 0}, "words"),
    "GPT2Model": (GPT, "words"),
    "GPTJModel": ({**GPT, "rotary_dim": 4}, "words"),
    "GPTNeoModel": ({**WORDS, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 48,
                     "attention_types": [[["global", "local"], 1]],
                     "max_position_embeddings": 40}, "words"),
    "GPTNeoXModel": (BERT, "words"),
    "OPTModel": ({**BERT, "ffn_dim": 48, "word_embed_proj_dim": 32}, "words"),
    "BloomModel": ({**WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "words"),
    "FalconModel": (BERT, "words"),
    "LlamaModel": (LLAMA, "words"),
    "MistralModel": (LLAMA, "words"),
    "Qwen2Model": (LLAMA, "words"),
    "Qwen3Model": (LLAMA, "words"),
    "GemmaModel": (LLAMA, "words"),
    "Gemma2Model": (LLAMA, "words"),
    "PhiModel": (BERT, "words"),
    "StableLmModel": (LLAMA, "words"),
    "OlmoModel": (LLAMA, "words"),
    "MambaModel": ({**WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8,
                    "use_cache": False}, "words"),
    "T5EncoderModel": ({**WORDS, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 48,
                        "d_kv": 8}, "words"),
    "BartModel": (PAIR, "pair"),
    "MarianModel": ({**PAIR, "pad_token_id": 0, "decoder_start_token_id": 0}, "pair"),
    "PegasusModel": (PAIR, "pair"),
    "ViTModel": (VIT, "image"),
    "DeiTModel": (VIT, "image"),
    "BeitModel": (VIT, "image"),
    "Dinov2Model": (VIT, "image"),
    "YolosModel": ({**VIT, "image_size": [32, 32], "num_detection_tokens": 3}, "image"),
    "CLIPVisionModel": (VIT, "image"),
    "CLIPTextModel": (BERT, "words"),
    "SiglipVisionModel": (VIT, "image"),
    "SwinModel": ({**STAGES, "patch_size": 4, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4],
                   "window_size": 4}, "image"),
    "ConvNextModel": ({**STAGES, "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "image"),
    "ConvNextV2Model": ({**STAGES, "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}, "image"),
    "ResNetModel": ({**STAGES, "embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1]}, "image"),
    "RegNetModel": ({**STAGES, "embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1],
                     "groups_width": 8}, "image"),
    "SegformerModel": ({**STAGES, "hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2,
                        "num_attention_heads": [1, 2], "sr_ratios": [4, 2], "patch_sizes": [7, 3],
                        "strides": [4, 2], "mlp_ratios": [2, 2]}, "image"),
    "MobileNetV1Model": (STAGES, "image"),
    "MobileNetV2Model": (STAGES, "image"),
    "PoolFormerModel": ({**STAGES, "hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2,
                         "patch_sizes": [7, 3], "strides": [4, 2], "padding": [2, 1],
                         "mlp_ratio": 2.0}, "image"),
    "WhisperEncoder": ({"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4,
                        "encoder_ffn_dim": 48, "num_mel_bins": 16, "max_source_positions": 20}, "mel"),
    "Wav2Vec2Model": (SOUND, "sound"),
    "HubertModel": (SOUND, "sound"),
}


def config_of(name):
    if name == "WhisperEncoder":
        return transformers.WhisperConfig
    if name == "T5EncoderModel":
        return transformers.T5Config
    return getattr(transformers, name.removesuffix("Model") + "Config")


def inputs_of(kind):
    words = torch.randint(3, 99, (2, 12))
    return {"words": lambda: {"input_ids": words},
            "pair": lambda: {"input_ids": words, "decoder_input_ids": words.flip(1)[:, :7]},
            "image": lambda: {"pixel_values": torch.randn(2, 3, 32, 32)},
            "mel": lambda: {"input_features": torch.randn(2, 16, 40)},
            "sound": lambda: {"input_values": torch.randn(2, 400)}}[kind]()


def make(name):
    """(module, its keyword arguments), with the weights of the seed that the caller set."""
    told, kind = TABLE[name]
    config = config_of(name)(**told)
    if name == "WhisperEncoder":
        from transformers.models.whisper.modeling_whisper import WhisperEncoder
        return WhisperEncoder(config).eval(), inputs_of(kind)
    return getattr(transformers, name)(config).eval(), inputs_of(kind)
