"""What of a function is compiled, and what is not, and why."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..table import Table
from .backend import backend
from .graph import Graph
from .variant import Variant


@dataclass(frozen=True)
class Explanation:
    """`graphs`: a row for each: name, operators, state ("compiled", "eager", "in parts", "not called"),
    kernels, operator, line and why of what is not compiled. `breaks`: a row for each place where torch.compile
    ends a graph before its function ends: line, why."""

    graphs: Table
    breaks: Table

    def __str__(self) -> str:
        compiled = sum(row["state"] == "compiled" for row in self.graphs)
        said = [f"{compiled} of {len(self.graphs)} graphs compiled"]
        said += [f"  {row['state']}: {row['name']}: {row['why']}" for row in self.graphs if row["why"]]
        said += [f"  break: {row['line']}: {row['why']}" for row in self.breaks]
        return "\n".join(said)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.graphs._repr_html_() + (self.breaks._repr_html_() if self.breaks else "")


def explain(fn: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Compiles and calls fn(*args, **kwargs) once, a function or a module, and tells of its graphs.

    What it raises passes through. Call it under torch.no_grad() where you call fn so.
    """
    fn = getattr(fn, "_orig_mod", fn)
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)
    graphs: list[Graph] = []

    def recorder(module: torch.fx.GraphModule, inputs: Any, **given: Any) -> Graph:
        graphs.append(backend(module, inputs, **given))
        return graphs[-1]

    with torch._dynamo.config.patch(recompile_limit=64):
        torch.compile(fn, backend=recorder)(*args, **kwargs)
    breaks = Table()
    for graph in graphs:
        reason = graph.ended_by
        if reason is not None and reason.graph_break:
            where = reason.user_stack[-1] if reason.user_stack else None
            breaks.append({"line": f"{where.filename}:{where.lineno}" if where else "",
                           "why": reason.reason.strip().splitlines()[0]})
    return Explanation(Table(_row(graph) for graph in _with_parts(graphs)), breaks)


def _with_parts(graphs: list[Graph]) -> list[Graph]:
    """Each graph, and behind it those that it was parted into."""
    return [each for graph in graphs
            for each in (graph, *_with_parts(graph.parts.graphs if graph.parts else []))]


def _row(graph: Graph) -> dict[str, Any]:
    nodes = [n for n in graph.module.graph.nodes if n.op in ("call_function", "call_method")]
    row = {"graph": graph.number, "name": graph.name, "operators": len(nodes), "state": "not called",
           "kernels": 0, "operator": "", "line": "", "why": ""}
    for variant in graph.rows():
        if not isinstance(variant, Variant):
            row.update(state="in parts" if graph.parts else "eager",
                       operator=variant.why.operator, why=str(variant.why),
                       line=str(variant.why.line or ""))
        elif row["state"] == "not called":
            row.update(state="compiled", why=variant.why,
                       kernels=sum(k["count"] for k in variant.package.model.kernels))
    return row
