"""Graphs that refuse what PyTorch refuses: ONNX takes values where eager operators raise an error.

ONNX counts negative indices from the end, has classes of nothing, and gives a maximum of no elements.
An index that PyTorch refuses becomes one that Hone refuses when it runs; the call is then left to
PyTorch, whose error is the user's.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .refusal import Refusal

_aten = torch.ops.aten
# (self, dim, index, ...)
_INDEXED = {_aten.index_select, _aten.gather, _aten.scatter, _aten.scatter_, _aten.scatter_add,
            _aten.scatter_add_, _aten.scatter_reduce, _aten.scatter_reduce_, _aten.index_add,
            _aten.index_add_, _aten.index_copy, _aten.index_copy_, _aten.index_reduce,
            _aten.index_reduce_}
_OF_INDEX_SIZE = {_aten.scatter, _aten.scatter_, _aten.scatter_add, _aten.scatter_add_,
                  _aten.scatter_reduce, _aten.scatter_reduce_}
_WITHOUT_IDENTITY = {_aten.max, _aten.min, _aten.amax, _aten.amin, _aten.aminmax, _aten.argmax,
                     _aten.argmin, _aten.any, _aten.all}


def add_guards(program: torch.export.ExportedProgram) -> None:
    """Refusal: an operator takes nothing where it needs something."""
    graph = program.graph
    for node in list(graph.nodes):
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        if node.target.overloadpacket in _WITHOUT_IDENTITY and _reduces_nothing(node):
            raise Refusal.of_node(node, "it reduces a dimension without elements")
        with graph.inserting_before(node):
            guard = _GUARDS.get(node.target.overloadpacket)
            if guard is not None:
                guard(graph, node)
    graph.lint()
    program.graph_module.recompile()


def _reduces_nothing(node: torch.fx.Node) -> bool:
    """Not so maximum(x, y), which is called max.other."""
    value, dims = node.args[0].meta["val"], node.args[1:2]
    if value.numel() > 0 or (dims and isinstance(dims[0], torch.fx.Node)):
        return False
    named = dims[0] if dims else node.kwargs.get("dim")
    over = [named] if isinstance(named, int) else named or range(value.dim())
    return value.dim() == 0 or any(value.shape[dim] == 0 for dim in over)


def call(graph: torch.fx.Graph, like: torch.fx.Node, target: Any, *args: Any, **kwargs: Any) -> torch.fx.Node:
    """A new node before `like`, with its place in the user's program, and the value that it has."""
    made = graph.call_function(target, args, kwargs)
    made.meta = {key: value for key, value in like.meta.items() if key not in ("val", "tensor_meta")}
    with like.meta["val"].fake_mode if isinstance(like.meta["val"], torch._subclasses.FakeTensor) \
            else torch._subclasses.FakeTensorMode():
        made.meta["val"] = target(*torch.fx.node.map_arg(args, lambda arg: arg.meta["val"]), **kwargs)
    return made


def argument_of(node: torch.fx.Node, name: str, default: Any) -> Any:
    """What a node gives an operator as the argument of that name."""
    given = {argument.name: value
             for argument, value in zip(node.target._schema.arguments, node.args)}
    return {**given, **node.kwargs}.get(name, default)


def _not_negative(graph: torch.fx.Graph, node: torch.fx.Node, index: torch.fx.Node, size: int,
                  ignored: int | None = None) -> torch.fx.Node:
    """The index with negative ones beyond the end, which Hone refuses."""
    wrong = call(graph, index, _aten.lt.Scalar, index, 0)
    if ignored is not None and ignored < 0:
        other = call(graph, index, _aten.ne.Scalar, index, ignored)
        wrong = call(graph, index, _aten.logical_and.default, wrong, other)
    guarded = call(graph, index, _aten.masked_fill.Scalar, index, wrong, size)
    for made in (wrong, guarded):
        made.meta["stack_trace"] = node.meta.get("stack_trace", "")
    return guarded


def _put(node: torch.fx.Node, position: int, value: Any) -> None:
    args = list(node.args)
    args[position] = value
    node.args = tuple(args)


def _guard_indexed(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    value, dim, index = node.args[0].meta["val"], node.args[1], node.args[2]
    size = value.shape[dim] if value.dim() else 1
    _put(node, 2, _not_negative(graph, node, index, size))
    if node.target.overloadpacket in _OF_INDEX_SIZE and isinstance(node.args[3], torch.fx.Node):
        _put(node, 3, _cut(graph, node.args[3], index.meta["val"].shape))


def _cut(graph: torch.fx.Graph, source: torch.fx.Node, shape: Sequence[int]) -> torch.fx.Node:
    """What of it has an index: ONNX wants no more."""
    for dim, size in enumerate(shape):
        if source.meta["val"].dim() == len(shape) and source.meta["val"].shape[dim] > size:
            source = call(graph, source, _aten.slice.Tensor, source, dim, 0, size)
    return source


def _guard_embedding(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    _put(node, 1, _not_negative(graph, node, node.args[1], node.args[0].meta["val"].shape[0]))


def _guard_classes(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """A loss that looks up scores by classes."""
    scores, target = (arg.meta["val"] for arg in node.args[:2])
    if target.dtype.is_floating_point:
        return  # probabilities of classes
    ignored = node.args[4] if len(node.args) > 4 else node.kwargs.get("ignore_index", -100)
    size = scores.shape[1 if scores.dim() > 1 else 0]
    _put(node, 1, _not_negative(graph, node, node.args[1], size, ignored))


def _look_up_one_hot(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Rows of an identity, whose look-up sees classes that there are not."""
    classes = node.args[1] if len(node.args) > 1 else -1
    if classes <= 0:
        return  # as many as the data has
    table = call(graph, node, _aten.eye.default, classes, dtype=torch.int64,
                 device=torch.device("cpu"))
    index = _not_negative(graph, node, node.args[0], classes)
    node.target, node.args = _aten.embedding.default, (table, index)


def _check_probabilities(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Outside [0, 1] an index is looked up that there is not."""
    given = node.args[0]
    inside = call(graph, given, _aten.logical_and.default,
                  call(graph, given, _aten.ge.Scalar, given, 0),
                  call(graph, given, _aten.le.Scalar, given, 1))
    wrong = call(graph, given, _aten.logical_not.default, inside)
    index = call(graph, given, _aten.mul.Tensor,
                 call(graph, given, _aten._to_copy.default, wrong, dtype=torch.int64), 2)
    # No table of equal rows, of which Hone looks nothing up.
    rows = call(graph, given, _aten.arange.start, 0, 2, dtype=given.meta["val"].dtype,
                device=torch.device("cpu"))
    rows = call(graph, given, _aten.unsqueeze.default, rows, 1)
    zero = call(graph, given, _aten.embedding.default, rows, index)
    zero = call(graph, given, _aten.squeeze.dim, zero, -1)
    _put(node, 0, call(graph, given, _aten.add.Tensor, given, zero))


def _zero_where_all_is_masked(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """A query that may look at nothing gets zeros; the exporter's softmax would give it everything."""
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if mask is None:
        return
    seen = mask
    if mask.meta["val"].dtype != torch.bool:
        seen = call(graph, mask, _aten.gt.Scalar, mask, float("-inf"))
    some = call(graph, mask, _aten.any.dim, seen, -1, True)
    computed = call(graph, node, node.target, *node.args, **node.kwargs)
    node.target, node.args, node.kwargs = _aten.where.ScalarOther, (some, computed, 0.0), {}


_GUARDS: dict[Any, Callable[[torch.fx.Graph, torch.fx.Node], None]] = {
    **dict.fromkeys(_INDEXED, _guard_indexed),
    _aten.embedding: _guard_embedding, _aten.one_hot: _look_up_one_hot,
    _aten.nll_loss: _guard_classes, _aten.nll_loss_nd: _guard_classes,
    _aten.cross_entropy_loss: _guard_classes, _aten.binary_cross_entropy: _check_probabilities,
    _aten.scaled_dot_product_attention: _zero_where_all_is_masked}
