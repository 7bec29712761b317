"""One package of a graph: for arguments of one layout and, if it holds weights, for these weights."""
from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import torch

from .. import errors, session
from ..model import compile as compile_model
from .differentiable import Differentiable
from .export import export
from .frozen import Frozen
from .observe import observe
from .options import Options
from .package import Package
from .refusal import Refusal, Warner
from .results import assemble


class Variant:
    """Exported and compiled when it is made, and then called. Refusal: Hone leaves it to PyTorch."""

    def __init__(self, module: torch.fx.GraphModule, name: str, arguments: Sequence[Any],
                 free: Sequence[int], options: Options, warn: Warner):
        began = time.monotonic()
        self._module, self._options, self._warn = module, options, warn
        self.why = ""  # calls of it run as PyTorch runs them
        self.name = name
        tensors = {i: a for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)}
        self.seen = seen = observe(module, arguments)
        self.free = tuple(sorted({*free, *seen.mutated}))
        # Before the export: a weight that changes meanwhile makes this variant old.
        self.frozen = Frozen({i: a for i, a in tensors.items() if i not in self.free})
        self._examples = [torch.empty(a.shape, dtype=a.dtype, device="meta") if i in tensors else a
                          for i, a in enumerate(arguments)]
        self._dense = all(tensors[i].is_contiguous() for i in self.free)
        self._differentiable = torch.is_grad_enabled() and any(seen.requires_grad)
        if seen.mutated and torch.is_grad_enabled() and any(a.requires_grad for a in tensors.values()):
            raise Refusal("it writes into arguments where gradients are recorded")
        if not seen.computed and not seen.mutated:
            raise NothingToCompute()
        tunes = options.can_tune and not options.tune_in_background
        self.package = self._compile(options.tune_seconds if tunes else 0, False, first=True)
        self.seconds = time.monotonic() - began  # until it could be called

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether the weights of this call are those that it holds."""
        return self.frozen.same(arguments)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        seen = self.seen
        if seen.mutated and _share_memory(arguments, seen.mutated):
            return self._eager(arguments, "memory", "an argument that it writes shares memory with another")
        try:
            if self._differentiable:
                computed = Differentiable.apply(self._module, seen, self.package, *arguments)
            else:
                computed = self.package(arguments)
        except errors.HoneError as error:  # an index out of range, no memory, ...
            computed, failure = None, f"{type(error).__name__}: {error}"
        if computed is None:
            return self._eager(arguments, "failure", failure)
        return assemble(seen, computed, arguments)

    def _eager(self, arguments: Sequence[Any], kind: str, why: str) -> Any:
        """Raises what users of PyTorch know, and our error is no part of it; where PyTorch has a result, one
        warning says why."""
        results = self._module.forward(*arguments)
        self.why = f"some calls run as PyTorch runs them: {why}"
        self._warn(kind, f"a call of the graph {self.name} runs as PyTorch runs it: {why}")
        return results

    @property
    def can_tune(self) -> bool:
        """Whether its module is there and a log takes what is found."""
        return not self.frozen.dead and self._options.can_tune

    def tune(self, seconds: float, bar: bool | None = None) -> None:
        """Searches, into the log, and goes on with what was found. Errors as hone.tune."""
        self.package = self._compile(seconds, bar)

    def _compile(self, seconds: float, bar: bool | None, *, first: bool = False) -> Package:
        """first: in a call of the user, which does without what cannot be tuned now."""
        weights = self.frozen.memory
        arguments = [weights.get(i, a) for i, a in enumerate(self._examples)]
        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            path = os.path.join(folder, f"{self.name}.onnx")
            exported = export(self._module, arguments, self.free, self.seen, path, dense=self._dense)
            try:
                if seconds:
                    self._search(path, seconds, bar, first)
                model = compile_model(path, **self._options.compile())
            except (errors.BadInput, errors.Fault) as error:
                raise exported.refusal(str(error), path) from error
        return Package(model, exported.inputs, self.free, arguments, self.seen.values)

    def _search(self, path: str, seconds: float, bar: bool | None, first: bool) -> None:
        try:
            session.tune(path, seconds=seconds, bar=bar, **self._options.tune())
        except (errors.LogError, errors.ServerError) as error:  # another process writes the log, ...
            if not first:
                raise
            self._warn("tuning", f"the graph {self.name} is compiled untuned: {error}")


class NothingToCompute(Refusal):
    """Its results are arguments, views of them and constants: nobody need hear of it."""

    def __init__(self) -> None:
        super().__init__("its results are arguments, views of them, and constants")


def _share_memory(arguments: Sequence[Any], mutated: Sequence[int]) -> bool:
    """Whether an argument that is written lies in the memory of another."""
    places = [(a.untyped_storage().data_ptr(), i) for i, a in enumerate(arguments)
              if isinstance(a, torch.Tensor)]
    written = {place for place, i in places if i in mutated}
    return sum(place in written for place, _ in places) > len(mutated)
