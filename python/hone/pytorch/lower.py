"""Programs of torch.export in the operators that PyTorch's exporter can say, where that takes no tracing.

The exporter traces a program once more for its decompositions, which takes as long as the rest of it.
In most networks they change a dozen operators in known ways. Where a program has another one, or
writes in place what something else may see, nothing is done here.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from .guards import argument_of, call

_aten = torch.ops.aten
_CIA = torch._C.DispatchKey.CompositeImplicitAutograd
# Composite operators that the exporter keeps.
_KEPT = {_aten.linear.default, _aten.layer_norm.default, _aten.conv1d.default, _aten.conv2d.default,
         _aten.pad.default, _aten.scaled_dot_product_attention.default, _aten.max_pool2d.default,
         _aten.where.ScalarOther, _aten.reshape.default}
# Their results are new memory, which nobody else sees.
_FRESH = {_aten.linear.default, _aten.layer_norm.default, _aten.conv1d.default, _aten.conv2d.default,
          _aten.batch_norm.default, _aten.add.Tensor, _aten.add_.Tensor, _aten.mul.Tensor, _aten.relu.default}
_IN_PLACE = {_aten.add_.Tensor: _aten.add.Tensor, _aten.mul_.Tensor: _aten.mul.Tensor,
             _aten.relu_.default: _aten.relu.default, _aten.hardtanh_.default: _aten.hardtanh.default,
             _aten.silu_.default: _aten.silu.default}


def lower(program: torch.export.ExportedProgram, can_say: Callable[[Any], bool]) -> bool:
    """Whether all of its operators can be said, some of them after they were changed here."""
    nodes = [node for node in program.graph.nodes if node.op not in ("placeholder", "output")]
    if any(isinstance(value, torch.Tensor) and value.is_complex()
           for node in program.graph.nodes for value in _values(node)):
        return False
    if not all(_may_stay(node, can_say) or _may_change(node) for node in nodes):
        return False
    for node in nodes:
        if node.target in _CHANGES:
            made = _CHANGES[node.target](program.graph, node)
            node.replace_all_uses_with(made)
            program.graph_signature.replace_all_uses(node.name, made.name)
            program.graph.erase_node(node)
    program.graph.eliminate_dead_code()
    program.graph.lint()
    program.graph_module.recompile()
    return True


def _values(node: torch.fx.Node) -> Any:
    value = node.meta.get("val")
    return value if isinstance(value, (tuple, list)) else [value]


def _may_stay(node: torch.fx.Node, can_say: Callable[[Any], bool]) -> bool:
    """As tracing once more would leave it."""
    target = node.target
    if node.op != "call_function" or target in _CHANGES:
        return False
    if target is operator.getitem or target is _aten._assert_tensor_metadata.default:
        return True
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable or not can_say(target):
        return False
    return target in _KEPT or not torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), _CIA)


def _may_change(node: torch.fx.Node) -> bool:
    if node.target not in _CHANGES:
        return False
    if node.target in _IN_PLACE:
        return _is_private(node)
    value, args = node.meta["val"], node.args
    if node.target is _aten.diff.default:
        return argument_of(node, "n", 1) == 1 and value.dtype is not torch.bool and \
            isinstance(value.shape[argument_of(node, "dim", -1)], int)
    if node.target is _aten.batch_norm.default:
        return args[5] is False and args[3] is not None and args[4] is not None
    if node.target in _POOLED:
        sizes = value.shape[-len(_POOLED[node.target]):]
        return all(size == 1 for size in sizes) and value.dtype.is_floating_point
    if node.target in (_aten.to.dtype, _aten.to.dtype_layout):  # and to no other layout
        return all(arg is None for arg in args[4:]) and not {*node.kwargs} - {"dtype", "layout", "device"}
    return True


def _is_private(node: torch.fx.Node) -> bool:
    """Whether nobody else sees the memory that it writes, and its result has the type of it."""
    written = node.args[0]
    if written.target not in _FRESH or any(_may_alias(user) for user in written.users if user is not node):
        return False
    other = node.args[1] if len(node.args) > 1 else written
    return not isinstance(other, torch.fx.Node) or \
        (other.meta["val"].dtype, other.meta["val"].shape) == (written.meta["val"].dtype, written.meta["val"].shape)


def _may_alias(user: torch.fx.Node) -> bool:
    """Whether its result may lie in the memory of an argument, or it writes there."""
    return user.target not in _FRESH or user.target in _IN_PLACE


def _copy(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    return _made(graph, node, _aten.clone.default, node.args[0])


def _dense(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    return _made(graph, node, _aten.clone.default, node.args[0], memory_format=torch.contiguous_format)


def _made(graph: torch.fx.Graph, node: torch.fx.Node, target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
    """In the place of the node, with its value."""
    with graph.inserting_before(node):
        made = graph.call_function(target, args, kwargs)
    made.meta = dict(node.meta)
    return made


def _reshape(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    return _made(graph, node, _aten.reshape.default, node.args[0], list(node.meta["val"].shape))


def _normalise(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    x, weight, bias, mean, variance, _, momentum, epsilon, *_ = node.args
    with graph.inserting_before(node):
        whole = call(graph, node, _aten._native_batch_norm_legit_no_training.default, x, weight, bias, mean,
                     variance, momentum, epsilon)
    return _made(graph, node, operator.getitem, whole, 0)


def _mean(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    return _made(graph, node, _aten.mean.dim, node.args[0], _POOLED[node.target], True)


def _cast(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    x, dtype = node.args[0], node.meta["val"].dtype
    if x.meta["val"].dtype == dtype:
        return _copy(graph, node)
    return _made(graph, node, _aten._to_copy.default, x, dtype=dtype)


def _and(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    return _made(graph, node, _aten.bitwise_and.Tensor, *node.args)


def _difference(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    dim = argument_of(node, "dim", -1)
    parts = [argument_of(node, name, None) for name in ("prepend", "self", "append")]
    parts = [part for part in parts if part is not None]
    with graph.inserting_before(node):
        joined = parts[0] if len(parts) == 1 else call(graph, node, _aten.cat.default, parts, dim)
        size = joined.meta["val"].shape[dim]
        later = call(graph, node, _aten.slice.Tensor, joined, dim, 1, size)
        earlier = call(graph, node, _aten.slice.Tensor, joined, dim, 0, size - 1)
    return _made(graph, node, _aten.sub.Tensor, later, earlier)


def _out_of_place(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    made = _made(graph, node, _IN_PLACE[node.target], *node.args, **node.kwargs)
    # What reads the memory later sees the new value.
    later, at = set(), node.next
    while at.op != "root":
        later.add(at)
        at = at.next
    node.args[0].replace_all_uses_with(made, delete_user_cb=lambda user: user in later)
    return made


_POOLED = {_aten.adaptive_avg_pool1d.default: [-1], _aten.adaptive_avg_pool2d.default: [-1, -2]}
_CHANGES: dict[Any, Callable[[torch.fx.Graph, torch.fx.Node], torch.fx.Node]] = {
    _aten.contiguous.default: _dense,
    _aten.flatten.using_ints: _reshape, _aten.batch_norm.default: _normalise,
    _aten.diff.default: _difference, _aten.to.dtype: _cast, _aten.to.dtype_layout: _cast, _aten.__and__.Tensor: _and,
    **dict.fromkeys(_POOLED, _mean), **dict.fromkeys(_IN_PLACE, _out_of_place)}
