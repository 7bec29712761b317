"""Why a graph is not compiled: operator, line and reason."""
from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from typing import Any

import torch


class FallbackWarning(UserWarning):
    """A graph, or a call of it, runs as PyTorch runs it, or is not tuned; the message says why. One of a
    kind for each graph."""


@dataclass(frozen=True)
class Line:
    """A place in a user's program."""

    file: str
    number: int
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" + (f" ({self.code})" if self.code else "")


class Refusal(Exception):
    """A graph, or one of its calls, that Hone leaves to PyTorch.

    `operator` and `line` are empty where no single one is to blame.
    """

    def __init__(self, reason: str, operator: str = "", line: Line | None = None):
        super().__init__(reason)
        self.reason, self.operator, self.line = reason, operator, line

    def __str__(self) -> str:
        where = f" at {self.line}" if self.line else ""
        return f"{self.operator}{where}: {self.reason}" if self.operator else self.reason + where

    @classmethod
    def of_node(cls, node: torch.fx.Node | None, reason: str) -> Refusal:
        """That of a node of an FX graph."""
        if node is None:
            return cls(reason)
        return cls(reason, operator_of(node), line_of(node))


class Warner:
    """Warns of a graph that is called `name` and begins at `line`, once of each kind."""

    def __init__(self, name: str, line: Line | None):
        self._name, self._line = name, line
        self._told: dict[str, object] = {}

    def __call__(self, kind: str, text: str, line: Line | None = None) -> None:
        mine = object()
        if self._told.setdefault(kind, mine) is not mine:  # of another call, or of another thread
            return
        line = line or self._line
        warnings.warn_explicit(f"hone: {text}", FallbackWarning,
                               line.file if line else f"<{self._name}>", line.number if line else 1)


def operator_of(node: torch.fx.Node) -> str:
    """As the user wrote it, or as PyTorch names it: "conv2d", ".view", "aten.sort.default"."""
    if node.op == "call_method":
        return f".{node.target}"
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def line_of(node: torch.fx.Node) -> Line | None:
    """The innermost line of the user that led to the node."""
    return last_line(node.meta.get("stack_trace") or "")


def last_line(trace: str) -> Line | None:
    """The innermost line of a stack trace's text."""
    found = re.findall(r'File "([^"]+)", line (\d+)[^\n]*\n *([^\n]*)', trace)
    # Where the user's lines are not known, the exporter writes down ours.
    found = [frame for frame in found if os.path.dirname(frame[0]) != os.path.dirname(__file__)]
    if not found:
        return None
    file, number, code = found[-1]
    return Line(file, int(number), code.strip())


def blamed(error: BaseException) -> torch.fx.Node | None:
    """The node that was at work when an exporter failed: the innermost one that its frames hold."""
    node = None
    seen: Any = error
    while seen is not None:
        frame = seen.__traceback__
        while frame is not None:
            held = frame.tb_frame.f_locals.get("node")
            node = held if isinstance(held, torch.fx.Node) else node
            frame = frame.tb_next
        seen = seen.__cause__
    return node
