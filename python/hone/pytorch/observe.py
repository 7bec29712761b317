"""What a graph does to its arguments and how its results lie in memory, seen on tensors without data.

A package gives dense new arrays. Eager PyTorch gives arguments back, views of them, results that
share memory, results with strides of their own, and writes into arguments; all of that is seen here
and done again after each run of a package (results.py).
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .fused import by_parts
from .refusal import Refusal


@dataclass(frozen=True)
class Layout:
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        return cls(tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride())),
                   int(tensor.storage_offset()))


@dataclass(frozen=True)
class Result:
    """One result of a graph: exactly one of the fields but `layout` is set, or none: a constant."""

    constant: Any = None
    argument: int | None = None  # the argument itself, or with `layout` a view of its memory
    computed: int | None = None  # that value of the package
    memory: int | None = None  # with `layout`: in that block of memory, shared with other results
    layout: Layout | None = None  # None: dense, row-major


@dataclass
class Observation:
    """`computed` are the positions of the results that a package must compute, in its order; after
    them it computes the new contents of the arguments `mutated`. `values` are shapes and types of both."""

    results: list[Result] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)
    values: list[tuple[tuple[int, ...], torch.dtype]] = field(default_factory=list)
    mutated: list[int] = field(default_factory=list)
    memories: list[tuple[int, torch.dtype]] = field(default_factory=list)  # elements of each block
    single: bool = False  # the graph gives no tuple
    requires_grad: list[bool] = field(default_factory=list)


class Interpreter(torch.fx.Interpreter):
    """Knows the node that is at work, and takes fused functions apart."""

    at: torch.fx.Node | None = None

    def run_node(self, n: torch.fx.Node) -> Any:
        self.at = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        parts = by_parts(target, args, kwargs)
        return parts(*args[:18]) if parts else super().call_function(target, args, kwargs)


def observe(module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Observation:
    """Runs the graph on arguments without data. Whether results require gradients is seen where
    the caller's grad mode is on. Refusal: an operator depends on data, or changes what cannot be
    changed again."""
    run = Interpreter(module)
    gradients = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(gradients), \
            FakeTensorMode(allow_non_fake_inputs=True):
        fakes = [_shadow(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        before = [(a._version, Layout.of(a)) if isinstance(a, torch.Tensor) else None for a in fakes]
        try:
            results = run.run(*fakes)
        except Exception as error:
            raise Refusal.of_node(run.at, f"it depends on data, or fails: {first_line(error)}") from error
    seen = Observation(single=not isinstance(results, (tuple, list)))
    for i, (fake, old) in enumerate(zip(fakes, before)):
        if old is None:
            continue
        if Layout.of(fake) != old[1]:
            raise Refusal(f"it changes the shape of argument {i} in place")
        if fake._version != old[0]:
            seen.mutated.append(i)
    _trace_results(seen, [results] if seen.single else list(results), fakes)
    seen.values += [(tuple(fakes[i].shape), fakes[i].dtype) for i in seen.mutated]
    return seen


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _shadow(tensor: torch.Tensor) -> torch.Tensor:
    shadow = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return shadow.requires_grad_(tensor.requires_grad)


def _trace_results(seen: Observation, results: list[Any], fakes: list[Any]) -> None:
    owners = {}  # memory -> argument
    for i, fake in enumerate(fakes):
        if isinstance(fake, torch.Tensor):
            owners.setdefault(fake.untyped_storage()._cdata, i)
    itself = {id(fake): i for i, fake in enumerate(fakes)}
    counts: dict[int, int] = {}
    for value in results:
        if isinstance(value, torch.Tensor):
            memory = value.untyped_storage()._cdata
            counts[memory] = counts.get(memory, 0) + 1
    memories: dict[int, int] = {}
    for position, value in enumerate(results):
        if not isinstance(value, torch.Tensor):
            if not isinstance(value, (int, float, bool, str, type(None))):
                raise Refusal(f"it gives a {type(value).__name__}")
            seen.results.append(Result(constant=value))
            seen.requires_grad.append(False)
            continue
        seen.requires_grad.append(value.requires_grad)
        memory = value.untyped_storage()._cdata
        if value.device.type != "cpu":
            raise Refusal(f"a result is on the device {value.device}")
        if id(value) in itself:
            seen.results.append(Result(argument=itself[id(value)]))
        elif memory in owners:
            owner = owners[memory]
            if value.dtype != fakes[owner].dtype:
                raise Refusal("it gives a view of an argument as another type")
            seen.results.append(Result(argument=owner, layout=Layout.of(value)))
        else:
            seen.results.append(_fresh(seen, value, counts[memory] > 1, memories))
            seen.computed.append(position)
            seen.values.append((tuple(value.shape), value.dtype))


def _fresh(seen: Observation, value: torch.Tensor, shared: bool, memories: dict[int, int]) -> Result:
    number, layout = len(seen.computed), Layout.of(value)
    if not shared and value.stride() == torch.empty(value.shape, device="meta").stride():
        return Result(computed=number)
    if _overlaps(layout):
        raise Refusal("elements of a result share memory")
    if not shared:
        return Result(computed=number, layout=layout)
    storage = value.untyped_storage()
    elements = int(storage.nbytes()) // value.element_size()
    if storage._cdata not in memories:
        memories[storage._cdata] = len(seen.memories)
        seen.memories.append((elements, value.dtype))
    if seen.memories[memories[storage._cdata]][1] != value.dtype:
        raise Refusal("results of several types share memory")
    return Result(computed=number, memory=memories[storage._cdata], layout=layout)


def _overlaps(layout: Layout) -> bool:
    """Whether elements share memory, but for those of expanded dimensions (stride 0)."""
    reach = 0
    for stride, size in sorted(zip(layout.stride, layout.size)):
        if size > 1 and stride > 0:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False
