"""PyTorch's ONNX exporter, without what Hone does itself: first calls wait for it."""
from __future__ import annotations

import contextlib
import functools
import os
import types
from collections.abc import Iterator
from typing import Any

import torch

from .aliases import drop_dropouts, hidden_views
from .lower import lower

_SMALL = 8192  # elements of a constant that passes may compute with
_registries: dict[Any, Any] = {}  # the exporter's, by version of ONNX


def to_onnx(program: torch.export.ExportedProgram) -> torch.onnx.ONNXProgram:
    """The program as ONNX, without the exporter's own passes: Hone folds constants and drops what is not
    needed itself."""
    with _one_registry(), _one_trace():
        onnx = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
    assert onnx is not None
    _simplify(onnx.model)
    return onnx


def save(onnx: torch.onnx.ONNXProgram, path: str | os.PathLike[str]) -> None:
    """Weights go from their memory into a file beside it, of which Hone maps what it reads."""
    onnx.save(path, external_data=True)


def _simplify(model: Any) -> None:
    """Without sequences of tensors and functions, which the exporter makes of some operators, with
    transposed weights as weights and without biases of zeros, so that kernels are those of a model
    exported by hand."""
    # pylint: disable=import-outside-toplevel
    import onnx_ir
    from onnx_ir.passes import common
    from onnxscript import optimizer
    nodes = onnx_ir.traversal.RecursiveGraphIterator(model.graph)
    if model.functions or any("Sequence" in node.op_type for node in nodes):
        optimizer.optimize_ir(model, should_fold=_is_small)
    for node in list(model.graph):
        _fold_transpose(model.graph, node)
        _drop_zero_bias(node)
    onnx_ir.passes.Sequential(common.RemoveUnusedNodesPass(), common.OutputFixPass(), common.NameFixPass())(model)


def _fold_transpose(graph: Any, node: Any) -> None:
    import onnx_ir as ir  # pylint: disable=import-outside-toplevel
    if node.op_type != "Transpose" or node.outputs[0].is_graph_output():
        return
    given, result = node.inputs[0], node.outputs[0]
    weight = getattr(given.const_value, "raw", None) if given.is_initializer() else None
    if not isinstance(weight, torch.Tensor):
        return
    order = node.attributes["perm"].as_ints() if "perm" in node.attributes else range(weight.dim())[::-1]
    folded = type(given.const_value)(weight.detach().permute(*order).contiguous(), name=result.name)
    made = ir.Value(name=result.name, shape=folded.shape, type=ir.TensorType(folded.dtype), const_value=folded)
    graph.register_initializer(made)
    result.replace_all_uses_with(made)
    graph.remove(node, safe=True)


def _drop_zero_bias(node: Any) -> None:
    """The exporter gives one to convolutions without any; networks before their training have some."""
    if node.op_type in ("Conv", "ConvTranspose") and len(node.inputs) > 2 and _is_zero(node.inputs[2]):
        node.resize_inputs(2)


def _is_zero(value: Any) -> bool:
    import onnx_ir as ir  # pylint: disable=import-outside-toplevel
    while value.producer() is not None and value.producer().op_type in ("Expand", "CastLike"):
        value = value.producer().inputs[0]
    known = ir.convenience.get_const_tensor(value)
    return known is not None and not known.numpy().any()


def _is_small(node: Any) -> bool | None:
    """False: it is not folded; None: as the pass likes."""
    sizes = [value.const_value.size for value in node.inputs if value is not None and value.const_value is not None]
    return None if max(sizes, default=0) <= _SMALL else False


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _one_trace() -> contextlib.AbstractContextManager[None]:
    """The exporter traces a program once more to decompose operators: only where there are some."""
    def where_needed(decompose: Any, program: Any, registry: Any) -> Any:
        return program if lower(program, registry.is_registered) else _decomposed(decompose, program, registry)
    return _decomposing(where_needed)


def written_through() -> contextlib.AbstractContextManager[None]:
    """The exporter of a module sees whose memory is written in place."""
    def seen(decompose: Any, program: Any, registry: Any) -> Any:
        drop_dropouts(program)
        return _decomposed(decompose, program, registry)
    return _decomposing(seen)


def _decomposing(made: Any) -> contextlib.AbstractContextManager[None]:
    # pylint: disable=import-outside-toplevel
    from torch.onnx._internal.exporter import _fx_passes
    decompose = _fx_passes.decompose_with_registry
    return _replaced(_fx_passes, "decompose_with_registry", functools.partial(made, decompose))


def _decomposed(decompose: Any, program: Any, registry: Any) -> Any:
    """The exporter keeps operators that it knows as they are, also those that hide a view."""
    hidden = hidden_views(program)
    kept = {name: said for name, said in registry.functions.items() if said[0].fx_target not in hidden}
    return decompose(program, types.SimpleNamespace(functions=kept))


@contextlib.contextmanager
def _one_registry() -> Iterator[None]:
    """The exporter reads its 500 operators anew for each graph, which takes longer than most graphs; and
    some of them it says otherwise than PyTorch computes them (translate.py)."""
    # pylint: disable=import-outside-toplevel
    from torch.onnx._internal.exporter import _registration

    from . import translate
    kind = _registration.ONNXRegistry
    read = kind.__dict__["from_torchlib"]

    def kept(**version: Any) -> Any:
        key = tuple(version.items())
        if key not in _registries:
            with _replaced(_registration, "onnxscript_apis", types.SimpleNamespace(get_torchlib_ops=_torchlib)):
                _registries[key] = read.__get__(None, kind)(**version)
            for operator, said in translate.TABLE.items():
                _registries[key].register_op(operator, said)
        return _registries[key]

    with _replaced(kind, "from_torchlib", staticmethod(kept)):
        yield


def _torchlib() -> list[Any]:
    """What the exporter reads of its operators; its own list parses the source of each for more."""
    # pylint: disable=import-outside-toplevel,unused-import
    from onnxscript.function_libs.torch_lib import ops, registration  # noqa: F401
    return [types.SimpleNamespace(qualified_name=name, function=function, is_complex=is_complex)
            for name, known in registration.default_registry.items() if not name.startswith("internal::")
            for functions, is_complex in ((known.overloads, False), (known.complex, True))
            for function in functions]
