"""A package called with tensors, without copies of dense ones."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..model import Model, Tensor
from .refusal import Refusal

DTYPES = {"bool": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16,
          "i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
          "f32": torch.float32, "f64": torch.float64}


class Package:
    """`free` are the positions of its inputs among a graph's arguments, `names` those inputs' names
    in the ONNX model, `values` shapes and types of what it is to give. Refusal: they are others."""

    def __init__(self, model: Model, names: Sequence[str], free: Sequence[int],
                 arguments: Sequence[Any], values: Sequence[Any]):
        self.model = model
        places = dict(zip(names, free))
        self._takes = [places[tensor.name] for tensor in model.inputs]
        self._gives = [(tensor.shape, _dtype(tensor)) for tensor in model.outputs]
        for tensor, place in zip(model.inputs, self._takes):
            argument = arguments[place]
            if (tensor.shape, _dtype(tensor)) != (tuple(argument.shape), argument.dtype):
                raise Refusal(f"PyTorch's exporter made {tensor} of argument {place}")
        for tensor, given, (shape, dtype) in zip(model.outputs, self._gives, values):
            if given != (shape, dtype):
                raise Refusal(f"PyTorch's exporter made {tensor} of a result {dtype}{list(shape)}")

    def __call__(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Tensors of its outputs, new and dense. Errors as Model.__call__."""
        inputs = [arguments[i] for i in self._takes]
        inputs = [x if x.is_contiguous() else x.contiguous() for x in inputs]
        outputs = [torch.empty(shape, dtype=dtype, device="cpu") for shape, dtype in self._gives]
        self.model.run_at([x.data_ptr() for x in inputs] + [y.data_ptr() for y in outputs])
        return outputs


def _dtype(tensor: Tensor) -> torch.dtype:
    return DTYPES[tensor.type]
