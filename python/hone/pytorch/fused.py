"""Fused functions of PyTorch that its exporter has no ONNX for, by their parts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


def _encoder_layer(source: torch.Tensor, width: int, heads: int, *weights: Any) -> torch.Tensor:
    """nn.TransformerEncoderLayer in inference: attention and a feed-forward part, with residuals and
    a norm before or after each."""
    (qkv_weight, qkv_bias, out_weight, out_bias, use_gelu, norm_first, epsilon, norm_weight, norm_bias,
     last_weight, last_bias, up_weight, up_bias, down_weight, down_bias) = weights

    def attend(x: torch.Tensor) -> torch.Tensor:
        parts = functional.linear(x, qkv_weight, qkv_bias).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (heads, width // heads)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return functional.linear(mixed.transpose(1, 2).flatten(2), out_weight, out_bias)

    def feed(x: torch.Tensor) -> torch.Tensor:
        wide = functional.linear(x, up_weight, up_bias)
        wide = functional.gelu(wide) if use_gelu else functional.relu(wide)
        return functional.linear(wide, down_weight, down_bias)

    def norm(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (width,), norm_weight, norm_bias, epsilon)

    def last_norm(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (width,), last_weight, last_bias, epsilon)

    if norm_first:
        source = source + attend(norm(source))
        return source + feed(last_norm(source))
    source = norm(source + attend(source))
    return last_norm(source + feed(source))


def by_parts(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """What computes the call of `target` by its parts; None where it is no such function, or has a mask."""
    masked = any(arg is not None for arg in args[18:]) or any(value is not None for value in kwargs.values())
    return _encoder_layer if target is torch._transformer_encoder_layer_fwd and not masked else None
