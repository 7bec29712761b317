"""Operators that give an argument itself or a view of it, which their schema does not say: who writes
there in place writes into the argument."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

_DROPOUT = torch.ops.aten.dropout.default


def drop_dropouts(program: torch.export.ExportedProgram) -> None:
    """Dropout that draws nothing is its argument; PyTorch's tracers make it a copy."""
    for node in program.graph.find_nodes(op="call_function", target=_DROPOUT):
        given, probability, training = node.args
        if probability == 0 or not training:
            node.replace_all_uses_with(given)
            program.graph_signature.replace_all_uses(node.name, given.name)
            program.graph.erase_node(node)
    program.graph_module.recompile()


def hidden_views(program: torch.export.ExportedProgram) -> set[Any]:
    """The operators of those nodes, where the program writes in place at all."""
    nodes = [node for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    if not any(node.target._schema.is_mutable for node in nodes):
        return set()
    return {node.target for node in nodes if not _says_so(node.target) and _shares_memory(node)}


def _says_so(target: torch._ops.OpOverload) -> bool:
    return any(returned.alias_info is not None for returned in target._schema.returns)


def _shares_memory(node: torch.fx.Node) -> bool:
    given = {memory for argument in node.all_input_nodes for memory in _memories(argument)}
    return not given.isdisjoint(_memories(node))


def _memories(node: torch.fx.Node) -> Iterator[int]:
    value = node.meta.get("val")
    for each in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(each, torch.Tensor):
            yield each.untyped_storage()._cdata
