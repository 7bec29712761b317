"""A graph of PyTorch as an ONNX file."""
from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from dataclasses import dataclass
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch._dynamo
import torch.fx.traceback

from .. import errors
from .aliases import drop_dropouts
from .exporter import save, to_onnx
from .guards import add_guards, argument_of
from .observe import Interpreter, Observation, first_line
from .refusal import Refusal, blamed, last_line

_DIVISIONS = {torch.ops.aten.div, torch.ops.aten.floor_divide, torch.ops.aten.remainder, torch.ops.aten.fmod}
_ADVICE = ("what comes before", "inputs that never change", "docs/reference/operators")
_QUIET = ("torch.onnx", "onnxscript", "onnx_ir")


@dataclass(frozen=True)
class Exported:
    """An ONNX model: names of its inputs in the order of the free arguments, and nodes by name."""

    inputs: list[str]
    nodes: dict[str, Any]

    def refusal(self, message: str, path: str) -> Refusal:
        """That of `hone compile` of the file at `path`, whose message names a node of ONNX, with the user's
        line, and without the advice of the command line."""
        message = re.split(f"(?:; |\n)(?={'|'.join(_ADVICE)})", message.removeprefix(f"{path}: "))[0]
        for name in re.findall(r"\bnode (\S+) \(|'([^']+)'", message):
            name = name[0] or name[1]
            if name in self.nodes:
                told = self.nodes[name].metadata_props
                named = re.search(r"target=torch\.ops\.([\w.]+)",
                                  told.get("pkg.torch.onnx.fx_node", ""))
                line = last_line(told.get("pkg.torch.onnx.stack_trace", ""))
                return Refusal(message, named[1] if named else self.nodes[name].op_type, line)
        return Refusal(message)


class _Part(torch.nn.Module):
    """A graph as a function of its free arguments; the others are constants of the export."""

    def __init__(self, module: torch.fx.GraphModule, arguments: Sequence[Any], free: Sequence[int],
                 seen: Observation):
        super().__init__()
        self.__dict__["run"] = Interpreter(module)  # not a part of this module: no names of its own
        self._free, self._seen = tuple(free), seen
        self._arguments = list(arguments)
        for i, value in enumerate(arguments):
            if i in self._free:
                self._arguments[i] = None
            elif isinstance(value, torch.Tensor):
                self._arguments[i] = None
                self.register_buffer(f"constant_{i}", value.detach())

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arguments = list(self._arguments)
        for name, value in self.named_buffers():
            arguments[int(name.rpartition("_")[2])] = value
        for i, value in zip(self._free, values):
            arguments[i] = value
        # Nodes keep the user's lines.
        with torch.fx.traceback.preserve_node_meta():
            results = self.run.run(*arguments)
        results = [results] if self._seen.single else results
        computed = [results[position] for position in self._seen.computed]
        return (*computed, *(arguments[i] for i in self._seen.mutated))


def export(module: torch.fx.GraphModule, arguments: Sequence[Any], free: Sequence[int],
           seen: Observation, path: str | os.PathLike[str], *, dense: bool) -> Exported:
    """Writes the graph as ONNX: inputs are the arguments `free`, of which shapes and types count;
    every other one is a constant. dense: so they lie where the graph is called. Outputs:
    seen.computed, then seen.mutated.

    Refusal: what PyTorch's exporter cannot say, or would say wrongly. NotInstalled: no onnxscript.
    """
    try:
        import onnxscript  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    except ImportError as error:
        raise errors.NotInstalled("torch exports to ONNX with the package onnxscript: "
                                  "pip install onnx onnxscript") from error
    part = _Part(module, arguments, free, seen)
    examples = tuple(torch.empty(arguments[i].shape, dtype=arguments[i].dtype) for i in free)
    with alone(), torch.inference_mode(False), torch.no_grad(), quiet():
        try:
            program = torch.export.export(part, examples, strict=False)
        except Exception as error:
            raise Refusal.of_node(part.run.at, f"torch.export: {first_line(error)}") from error
        drop_dropouts(program)
        add_guards(program)
        try:
            onnx = to_onnx(program)
        except Exception as error:
            raise Refusal.of_node(blamed(error), _said(error)) from error
        _check(onnx.exported_program, len(seen.mutated), dense)
        save(onnx, path)
    return Exported([value.name for value in onnx.model.graph.inputs],
                    {node.name: node for node in onnx.model.graph})


def _check(program: torch.export.ExportedProgram, mutated: int, dense: bool) -> None:
    """Refuses what ONNX takes and means otherwise."""
    for node in program.graph.nodes:
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            continue
        if torch.Tag.nondeterministic_seeded in target.tags and _draws(node):
            raise Refusal.of_node(node, "it draws random numbers")
        if target.overloadpacket is torch.ops.aten.as_strided and not dense:
            raise Refusal.of_node(node, "it depends on the strides of an argument")
        if "batch_norm" in target.name() and argument_of(node, "training", False):
            raise Refusal.of_node(node, "it is training, which PyTorch's exporter does not say in ONNX")
        if _may_divide_by_zero(node):
            raise Refusal.of_node(node, "it divides integers by a tensor, and PyTorch raises an error where "
                                        "that has a zero")
    written = {*program.graph_signature.user_inputs_to_mutate.values(),
               *program.graph_signature.buffers_to_mutate.values()}
    if len(written) > mutated:
        raise Refusal("it writes into arguments that PyTorch does not count as written")


def _may_divide_by_zero(node: torch.fx.Node) -> bool:
    """Whether PyTorch looks for zeros in a divisor of integers; other numbers of the program are none."""
    if node.target.overloadpacket not in _DIVISIONS or node.meta["val"].dtype.is_floating_point:
        return False
    divisor = argument_of(node, "other", None)
    return isinstance(divisor, torch.fx.Node) or divisor == 0


def _draws(node: torch.fx.Node) -> bool:
    """Whether an operator that may does: dropout does not with a probability of 0, or outside training."""
    attention = node.target.overloadpacket is torch.ops.aten.scaled_dot_product_attention
    probability = argument_of(node, "dropout_p" if attention else "p", 0 if attention else None)
    return probability != 0 and argument_of(node, "train", True) is not False


def _said(error: BaseException) -> str:
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(cause)).strip() or type(cause).__name__
    if "No ONNX function found" in text:
        return "PyTorch's exporter has no ONNX for it"
    return f"torch.onnx.export: {text.splitlines()[0][:300]}"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """PyTorch traces one graph at a time in a process. Meanwhile other threads that call compiled
    functions run them as PyTorch does; unless told so they would be refused as if they were traced."""
    with torch._dynamo.convert_frame.compile_lock, \
            torch._dynamo.config.patch(error_on_nested_fx_trace=False):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """The exporter tells its developers much that users cannot change."""
    loggers = [logging.getLogger(name) for name in _QUIET]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)
