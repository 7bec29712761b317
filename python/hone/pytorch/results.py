"""The results of a graph, made of what its package computed, as eager PyTorch would give them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .observe import Observation, Result


def assemble(seen: Observation, computed: Sequence[torch.Tensor], arguments: Sequence[Any]) -> Any:
    """First writes into the arguments that the graph changes, then gives its results; `computed` is
    what Observation says of a package."""
    for argument, value in zip(seen.mutated, computed[len(seen.computed):]):
        arguments[argument].copy_(value)
    blocks: dict[int, torch.Tensor] = {}
    results = [_one(seen, result, requires_grad, computed, arguments, blocks)
               for result, requires_grad in zip(seen.results, seen.requires_grad)]
    return results[0] if seen.single else tuple(results)


def _one(seen: Observation, result: Result, requires_grad: bool, computed: Sequence[torch.Tensor],
         arguments: Sequence[Any], blocks: dict[int, torch.Tensor]) -> Any:
    layout = result.layout
    if result.computed is not None:
        value = computed[result.computed]
        if layout is None:
            return value
        if result.memory is None:
            return _fill(torch.empty_strided(layout.size, layout.stride, dtype=value.dtype), value)
        if result.memory not in blocks:
            elements, dtype = seen.memories[result.memory]
            blocks[result.memory] = torch.empty(elements, dtype=dtype)
        return _fill(blocks[result.memory].as_strided(layout.size, layout.stride, layout.offset), value)
    if result.argument is None:
        return result.constant
    argument = arguments[result.argument]
    if layout is None:
        return argument
    if argument.requires_grad and torch.is_grad_enabled() and not requires_grad:
        argument = argument.detach()
    return argument.as_strided(layout.size, layout.stride,
                               argument.storage_offset() + layout.offset)


def _fill(place: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Expanded dimensions are written once."""
    target = place
    for axis, stride in enumerate(place.stride()):
        if stride == 0 and place.shape[axis] > 1:
            target, value = target.narrow(axis, 0, 1), value.narrow(axis, 0, 1)
    target.copy_(value)
    return place
