"""Gradients of a graph whose results came from a package."""
from __future__ import annotations

from typing import Any

import torch

from .observe import Observation
from .package import Package


class Differentiable(torch.autograd.Function):
    """Forward runs the package; backward runs the graph once more, as PyTorch runs it, and asks it.

    So a forward pass whose gradients nobody asks for costs what it costs without them.
    """

    @staticmethod
    def forward(ctx: Any, module: torch.fx.GraphModule, seen: Observation, package: Package,
                *arguments: Any) -> tuple[torch.Tensor, ...]:
        ctx.module, ctx.seen = module, seen
        ctx.others = [None if isinstance(a, torch.Tensor) else a for a in arguments]
        ctx.tensors = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
        ctx.save_for_backward(*(arguments[i] for i in ctx.tensors))
        computed = package(arguments)
        ctx.mark_non_differentiable(*(value for value, position in zip(computed, seen.computed)
                                      if not seen.requires_grad[position]))
        return tuple(computed)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[Any, ...]:
        again = torch.is_grad_enabled()  # gradients of these gradients are wanted
        arguments = list(ctx.others)
        for i, tensor in zip(ctx.tensors, ctx.saved_tensors):
            arguments[i] = tensor if again else tensor.detach().requires_grad_(tensor.requires_grad)
        with torch.enable_grad():
            results = ctx.module.forward(*arguments)
        results = [results] if ctx.seen.single else results
        asked = [(results[position], gradient)
                 for position, gradient in zip(ctx.seen.computed, gradients)
                 if gradient is not None and results[position].requires_grad]
        wanted = [i for i in ctx.tensors if arguments[i].requires_grad]
        found = torch.autograd.grad([result for result, _ in asked], [arguments[i] for i in wanted],
                                    [gradient for _, gradient in asked], create_graph=again,
                                    allow_unused=True)
        given: list[Any] = [None] * len(arguments)
        for i, gradient in zip(wanted, found):
            given[i] = gradient
        return (None, None, None, *given)
