"""A graph in parts: what Hone refuses runs as PyTorch runs it, what lies before and after is compiled."""
from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.passes.split_module import split_module

from .refusal import Refusal, line_of, operator_of

_MOST_PIECES = 64  # of one graph; each costs a call
_FEWEST_OPERATORS = 4  # of a piece that is worth a package


class Parts:
    """Called as the graph, whose pieces between refused operators `compiled` makes callable."""

    def __init__(self, module: torch.fx.GraphModule, refused: set[torch.fx.Node], why: Refusal,
                 compiled: Callable[[torch.fx.GraphModule], Any]):
        self.why = why
        pieces = _pieces(module, refused)
        # Pieces keep the order of the graph: one may write into what a later one reads.
        self._module = split_module(module, None, pieces.__getitem__, keep_original_order=True)
        worth = _worth(pieces, refused)
        self.graphs = []
        for name, piece in list(self._module.named_children()):
            if name.startswith("submod_") and int(name.removeprefix("submod_")) in worth:
                self.graphs.append(compiled(piece))
                setattr(self._module, name, _Called(self.graphs[-1]))
            elif isinstance(piece, torch.fx.GraphModule):
                # Called as a module it would print its code where an operator raises an error.
                _LazyGraphModule.force_recompile(piece)
                setattr(self._module, name, _Called(piece.forward))
        _LazyGraphModule.force_recompile(self._module)

    def fits(self, _: Sequence[Any]) -> bool:
        return True

    def __call__(self, arguments: Sequence[Any]) -> Any:
        return self._module.forward(*arguments)


class _Called(torch.nn.Module):
    """A piece as a module, as the split graph calls it."""

    def __init__(self, graph: Any):
        super().__init__()
        self.__dict__["_graph"] = graph  # holds modules, which are none of this one's

    def forward(self, *arguments: Any) -> Any:
        return self._graph(*arguments)


def refused_nodes(module: torch.fx.GraphModule, why: Refusal) -> set[torch.fx.Node]:
    """The operators that a refusal is about: those of its line, and of them those of its name where
    some have it (the exporter calls torch.cdist "aten._cdist_forward.default"). Empty: the graph cannot
    be parted by it."""
    nodes = [n for n in module.graph.nodes if n.op in ("call_function", "call_method")]
    found = [n for n in nodes if why.line is not None and line_of(n) == why.line]
    named = [n for n in found if _name(operator_of(n)) in why.operator]
    refused = set(named or found)
    # A tuple stays where it was made.
    refused |= {user for node in refused for user in node.users if user.target is operator.getitem}
    pieces = _pieces(module, refused)
    return refused if _worth(pieces, refused) and max(pieces.values()) < _MOST_PIECES else set()


def _worth(pieces: dict[torch.fx.Node, int], refused: set[torch.fx.Node]) -> set[int]:
    """The pieces to compile."""
    sizes = collections.Counter(piece for node, piece in pieces.items()
                                if node not in refused and node.op in ("call_function", "call_method"))
    return {piece for piece, size in sizes.items() if size >= _FEWEST_OPERATORS} if refused else set()


def _name(told: str) -> str:
    return told.removeprefix("aten.").removesuffix(".default").strip("._")


def _pieces(module: torch.fx.GraphModule, refused: set[torch.fx.Node]) -> dict[torch.fx.Node, int]:
    """The number of each node's piece, in the order of the graph."""
    pieces: dict[torch.fx.Node, int] = {}
    number, last = 0, None
    for node in module.graph.nodes:
        if node.op not in ("placeholder", "output", "get_attr"):
            number += last is not None and last != (node in refused)
            last = node in refused
        pieces[node] = number
    return pieces
