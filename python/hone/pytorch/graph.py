"""A graph that torch.compile found, as what it calls in its place."""
from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule

from . import background
from .frozen import may_freeze, stamp_of
from .lift import lift, lift_numbers
from .options import Options
from .package import DTYPES
from .parts import Parts, refused_nodes
from .refusal import Line, Refusal, Warner, line_of
from .variant import NothingToCompute, Variant

_MOST_CHANGES = 3  # of weights; then they are inputs of each call
_MOST_REFUSALS = 3  # of layouts; then further ones are not tried
_MOST_SPLITS = 4  # of a graph, each for another operator; then a part with one more is eager

graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
_numbers = iter(range(1 << 62))


class Eager:
    """The graph as PyTorch runs it."""

    def __init__(self, module: torch.fx.GraphModule, why: Refusal):
        self._module, self.why = module, why

    def fits(self, _: Sequence[Any]) -> bool:
        return True

    def __call__(self, arguments: Sequence[Any]) -> Any:
        return self._module.forward(*arguments)


class Graph:
    """Called with the arguments of the graph. The first call with each layout of arguments compiles;
    any number of threads may call."""

    def __init__(self, module: torch.fx.GraphModule, options: Options, splits: int = _MOST_SPLITS):
        self.module, self._own = lift(module)
        self.module, self._numbers = lift_numbers(self.module)
        # Called as a module it would print the code of the graph where an operator raises an error.
        _LazyGraphModule.force_recompile(self.module)
        self.options = options
        self.number = next(_numbers)
        self.ended_by = getattr(module, "compile_subgraph_reason", None)
        places = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        last = len(places) - len(self._numbers)
        own = range(last - len(self._own), last)
        self._weights = frozenset(i for i, node in enumerate(places) if i in own or _is_weight(node))
        self._inputs = tuple(range(len(places)))
        self._set_freeze(options.freeze)
        self._splits = splits
        self.parts: Parts | None = None  # from when an operator was refused
        self.variants: dict[Any, list[Variant | Eager | Parts]] = {}
        self.changes = 0  # of weights
        self._stamp: Any = None
        self._warner = Warner(self.name, self._line())
        self._lock = threading.Lock()
        graphs.add(self)

    def _set_freeze(self, freeze: bool) -> None:
        self._freeze = freeze
        self._free = tuple(i for i in self._inputs if not freeze or i not in self._weights)

    @property
    def name(self) -> str:
        """Where it begins: file and line."""
        line = self._line()
        if line is None:
            return f"graph-{self.number}"
        return f"{os.path.splitext(os.path.basename(line.file))[0]}-{line.number}"

    def _line(self) -> Line | None:
        lines = (line_of(node) for node in self.module.graph.nodes if node.op != "placeholder")
        return next((line for line in lines if line is not None), None)

    def __call__(self, *arguments: Any) -> Any:
        if self._own:
            arguments += self._own
        if self._numbers:
            arguments += tuple([arguments[i].item() for i in self._numbers])
        key = self._key(arguments)
        for variant in self.variants.get(key, ()):
            if variant.fits(arguments):
                return variant(arguments)
        return self._prepare(arguments)(arguments)

    def _key(self, arguments: Sequence[Any]) -> Any:
        free = [arguments[i] for i in self._free]
        key: tuple[Any, ...] = tuple([(a.shape, a.stride(), a.dtype) if isinstance(a, torch.Tensor)
                                      else a for a in free])
        if torch.is_grad_enabled():
            key += tuple([a.requires_grad for a in arguments if isinstance(a, torch.Tensor)])
        return key

    def _prepare(self, arguments: Sequence[Any]) -> Variant | Eager | Parts:
        """What these arguments are to call."""
        with self._lock:
            key = self._key(arguments)  # another thread may have changed what is free
            known = self.variants.get(key, [])
            for variant in known:
                if variant.fits(arguments):
                    return variant
            old = [v for v in known if isinstance(v, Variant) and v.frozen.known(arguments)]
            # Counted once, in however many shapes the graph is called.
            stamp = stamp_of(arguments[i] for i in self._weights if may_freeze(arguments[i]))
            self.changes += bool(old) and stamp != self._stamp
            self._stamp = stamp
            # Lists are replaced, never changed: calls read them without the lock.
            self.variants[key] = [v for v in known if v not in old and
                                  (not isinstance(v, Variant) or not v.frozen.dead)]
            if self._freeze and self.changes > _MOST_CHANGES:
                self._set_freeze(False)
                self.variants = {}
                key = self._key(arguments)
            made = self._make(arguments, bool(old))
            self.variants[key] = [*self.variants.get(key, []), made]
            return made

    def _make(self, arguments: Sequence[Any], changed: bool) -> Variant | Eager | Parts:
        if self.parts is not None:
            return self.parts
        try:
            made = list(self.rows())
            if sum(isinstance(v, Variant) for v in made) >= self.options.packages:
                raise Refusal(f"it has {self.options.packages} packages, for as many shapes or sets of "
                              "weights, and takes no more: options={'packages': N} raises the bound")
            refused = [v.why for v in made if isinstance(v, Eager)]
            if len(refused) >= _MOST_REFUSALS:
                raise refused[-1]
            if changed and torch.is_grad_enabled():
                raise Refusal("its weights are being trained")
            free = self._check(arguments)
            variant = Variant(self.module, self.name, arguments, free, self.options, self._warner)
        except Refusal as refusal:
            self.parts = self._part(refusal, arguments)
            self._warn(refusal)
            return self.parts or Eager(self.module, refusal)
        if self.options.tune_in_background and variant.can_tune:
            background.tune(variant, self.options.tune_seconds)
        return variant

    def _part(self, refusal: Refusal, arguments: Sequence[Any]) -> Parts | None:
        """The graph without the operator that was refused; None: it is eager as a whole."""
        if torch.is_grad_enabled() and any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            return None  # a training, of which parts would gain nothing
        refused = refused_nodes(self.module, refusal) if self._splits else set()
        if not refused:
            return None
        return Parts(self.module, refused, refusal,
                     lambda piece: Graph(piece, self.options, self._splits - 1))

    def rows(self) -> list[Variant | Eager | Parts]:
        return [variant for variants in list(self.variants.values()) for variant in variants]

    def _check(self, arguments: Sequence[Any]) -> list[int]:
        """The arguments that a package takes; Refusal of those that none can."""
        if any(node.op == "call_module" for node in self.module.graph.nodes):
            raise Refusal("it calls modules, whose weights Hone cannot see; pass a graph of torch.compile")
        free = []
        for i, value in enumerate(arguments):
            if not isinstance(value, torch.Tensor):
                if not isinstance(value, (int, float, bool)):
                    raise Refusal(f"argument {i} is a {type(value).__name__}")
                continue
            if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                raise Refusal(f"argument {i} is a {type(value).__name__}")
            if value.device.type != "cpu":
                raise Refusal(f"argument {i} is on the device {value.device}, and Hone reads the CPU: "
                              "give x.cpu() and module.cpu()")
            if value.layout != torch.strided or value.is_neg() or value.is_quantized:
                raise Refusal(f"argument {i} is not dense ({value.layout})")
            if value.dtype not in DTYPES.values():
                raise Refusal(f"argument {i} is of type {value.dtype}")
            if i in self._free or not may_freeze(value):
                free.append(i)
        return free

    def _warn(self, refusal: Refusal) -> None:
        if not isinstance(refusal, NothingToCompute):
            what = "This operator of the" if self.parts else "The"
            self._warner("refusal", f"{refusal}. {what} graph {self.name} runs as PyTorch runs it; "
                                    "hone.explain(fn, *args) lists all graphs.", refusal.line)


def _is_weight(node: torch.fx.Node) -> bool:
    """Parameters and buffers of modules, as dynamo marks them."""
    return "_dynamo_static_input_type" in node.meta.get("tensor_dict", {})


def _free_locks() -> None:
    """In a child after fork, where the thread that held a lock is not."""
    for graph in list(graphs):
        graph._lock = threading.Lock()


os.register_at_fork(after_in_child=_free_locks)
