"""The backend by which torch.compile calls Hone, and what it has seen in this process."""
from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import torch

from .. import errors
from ..table import Table
from .graph import Eager, Graph, graphs
from .options import Options
from .parts import Parts
from .variant import Variant


def backend(module: torch.fx.GraphModule, inputs: Sequence[Any], *,  # pylint: disable=unused-argument
            options: dict[str, Any] | None = None, mode: str | None = None) -> Graph:
    """torch.compile(..., backend="hone"); what the graph is compiled for is seen at its calls.

    options: threads (default torch.get_num_threads()), log, precision, accuracy, server, tls,
    insecure_loopback as of hone.compile; packages: how many a graph may have (16), for shapes and
    sets of weights; freeze=False: weights are inputs of each call and never constants.
    HONE_TUNE=SECONDS in the environment tunes each graph before its first run, HONE_TUNE=background
    behind the calls, unless log=False or a log pinned by its digest takes no records; where the log is busy
    or the server away, one warning says so, and the graph is compiled untuned. UsageError: another option
    or mode.
    """
    if mode not in (None, "default"):
        raise errors.UsageError(f"the backend hone has no mode '{mode}': HONE_TUNE=SECONDS and "
                                "hone.tune_seen() make its packages faster")
    return Graph(module, Options.of(options))


def _register() -> None:
    """Under the name "hone", where no wheel's entry point has."""
    if "hone" not in importlib.metadata.entry_points(group="torch_dynamo_backends").names:
        torch._dynamo.register_backend(backend, name="hone")


def seen() -> Table:
    """One row for each package, and each layout of arguments that runs without one: graph, name (file and
    line), state ("compiled", "eager", "in parts", which are graphs of their own), why (it is not compiled,
    or some of its calls ran as PyTorch runs them), inputs, kernels, seconds (export and compile), changes
    (of the graph's weights)."""
    return Table(_row(graph, variant) for graph in sorted(graphs, key=lambda g: g.number)
                 for variant in graph.rows())


def _row(graph: Graph, variant: Variant | Eager | Parts) -> dict[str, Any]:
    row: dict[str, Any] = {"graph": graph.number, "name": graph.name, "changes": graph.changes}
    if isinstance(variant, Eager):
        return {**row, "state": "eager", "why": str(variant.why)}
    if isinstance(variant, Parts):
        return {**row, "state": "in parts", "why": str(variant.why)}
    model = variant.package.model
    return {**row, "state": "compiled", "why": variant.why, "inputs": ", ".join(map(str, model.inputs)),
            "kernels": sum(kernel["count"] for kernel in model.kernels), "seconds": variant.seconds}


def tune_seen(seconds: float = 60, *, bar: bool | None = None) -> Table:
    """Tunes each package of this process for so many seconds, into the log, and goes on with what was
    found; the next process finds it there. Those with the option log=False, or a log pinned by its digest,
    are left. Gives seen().
    Errors as hone.tune."""
    for graph in sorted(graphs, key=lambda g: g.number):
        for variant in graph.rows():
            if isinstance(variant, Variant) and variant.can_tune:
                variant.tune(seconds, bar)
    return seen()


_register()
