"""What a graph holds or reads, as further arguments of it: calls then see it change."""
from __future__ import annotations

import copy
import operator
from collections.abc import Mapping
from typing import Any

import torch


def lift(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[torch.Tensor, ...]]:
    """The graph with the tensors that are attributes of it as last arguments, and these."""
    held: dict[Any, torch.Tensor] = {}
    nodes: dict[Any, list[torch.fx.Node]] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(module)
            if isinstance(value, torch.Tensor):
                held[node.target] = value
                nodes.setdefault(node.target, []).append(node)
    return _with_arguments(module, nodes, "own"), tuple(held.values())


def lift_numbers(module: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, tuple[int, ...]]:
    """The graph with the numbers that it reads out of arguments (x.item(), as dynamo writes floats that
    may change) as last arguments, and the positions of those arguments."""
    places = [node for node in module.graph.nodes if node.op == "placeholder"]
    nodes: dict[int, list[torch.fx.Node]] = {}
    for node in module.graph.nodes:
        if node.op == "call_method" and node.target == "item" and node.args[0] in places:
            nodes.setdefault(places.index(node.args[0]), []).append(node)
    return _with_arguments(module, nodes, "number"), tuple(nodes)


def _with_arguments(module: torch.fx.GraphModule, nodes: Mapping[Any, list[torch.fx.Node]],
                    name: str) -> torch.fx.GraphModule:
    """A copy with a last argument for each key, in place of its nodes; the graph itself without any."""
    if not nodes:
        return module
    names = {node.name: key for key, each in nodes.items() for node in each}
    graph = copy.deepcopy(module.graph)
    with graph.inserting_before(next(node for node in graph.nodes if node.op != "placeholder")):
        given = {key: graph.placeholder(f"{name}_{i}") for i, key in enumerate(nodes)}
    for node in list(graph.nodes):
        if node.name in names:
            node.replace_all_uses_with(given[names[node.name]])
            graph.erase_node(node)
    return torch.fx.GraphModule(module, graph)
