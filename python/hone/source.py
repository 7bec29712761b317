"""What to tune or compile: an .onnx file, an ONNX object or a torch module, as a file."""
from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    from .pytorch.export import Exported

_AROUND = 'torch.compile(module, backend="hone") compiles what lies around it'


def is_module(model: Any) -> bool:
    """Whether it is a torch.nn.Module; nobody imports torch to ask that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


class Source:
    """`path` of the .onnx file; one made here lives as long as this object."""

    def __init__(self, model: Any, inputs: Any = None):
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._exported: Exported | None = None  # of a torch module
        if isinstance(model, (str, os.PathLike)):
            self.path = os.fspath(model)
            if self.path.startswith("-"):  # no option of the program
                self.path = f"./{self.path}"
            if self.path.endswith(".hone"):
                raise errors.BadInput(f"'{self.path}' is a package, and a model (.onnx) is wanted; "
                                      "hone.load() runs packages")
        elif hasattr(model, "SerializeToString"):
            try:
                data = model.SerializeToString()
            except Exception as error:  # protobuf's own class, for more than 2 GB
                raise errors.BadInput(f"the ONNX object cannot be written ({error}); above 2 GB save "
                                      "it with external data and give the path") from error
            self.path = self._file()
            pathlib.Path(self.path).write_bytes(data)
        elif is_module(model):
            self.path, self._module = self._file(), type(model).__name__
            self._exported = _export(model, inputs, self.path)
        else:
            raise errors.BadInput(f"a model is the path of an .onnx file, an onnx.ModelProto or a "
                                  f"torch.nn.Module, not {type(model).__name__}")
        if inputs is not None and not isinstance(inputs, dict) and not is_module(model):
            raise errors.UsageError("inputs= of an ONNX model are a dict of arrays by the names of its "
                                    f"inputs, not a {type(inputs).__name__}")
        self.name = pathlib.Path(self.path).stem

    def _file(self) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="hone-")
        return os.path.join(self._folder.name, "model.onnx")

    @contextlib.contextmanager
    def spoken_of(self) -> Iterator[None]:
        """What is raised meanwhile about a file that was made of a torch module speaks of the module:
        its operator and the user's line, and no path that is gone."""
        try:
            yield
        except errors.BadInput as error:
            if self._exported is None:
                raise
            refusal = self._exported.refusal(str(error), self.path)
            advice = f"; {_AROUND}" if refusal.operator else ""
            message = f"{self._module}: {refusal}{advice}".replace(self.path, self._module)
            message = re.sub(r"\bnode \S+ \((\w+)\)", r"\1", message)  # a name that nobody gave
            raise errors.BadInput(message, error.result) from error


def _export(module: Any, inputs: Any, path: str) -> Exported:
    import torch  # pylint: disable=import-outside-toplevel
    name = type(module).__name__
    if inputs is None:
        raise errors.BadInput(f"a torch module has no shapes of its own: give the example inputs of "
                              f"{name} (inputs=(x, ...))")
    example = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    tensors = [*module.parameters(), *module.buffers(), *example]
    away = {str(t.device) for t in tensors if hasattr(t, "device") and t.device.type != "cpu"}
    if away:
        raise errors.BadInput(f"{name} or its inputs are on {', '.join(sorted(away))}, and Hone reads "
                              "them from the CPU: give module.cpu() and x.cpu()")
    try:
        import onnxscript  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    except ImportError as error:
        raise errors.NotInstalled("torch exports to ONNX with the package onnxscript: "
                                  "pip install onnx onnxscript") from error
    # pylint: disable=import-outside-toplevel
    from .pytorch.export import Exported, alone, quiet
    from .pytorch.exporter import written_through
    training = module.training
    try:
        module.eval()
        with alone(), quiet(), torch.no_grad(), written_through():
            made = torch.onnx.export(module, example, path, dynamo=True, verbose=False)
    except Exception as error:
        raise errors.BadInput(f"torch cannot export {name} to ONNX: {_why(error)}") from error
    finally:
        module.train(training)
    assert made is not None
    return Exported([value.name or "" for value in made.model.graph.inputs],
                    {node.name or "": node for node in made.model.graph})


def _why(error: BaseException) -> str:
    """Operator and line where the exporter's error knows them, and what to do."""
    from .pytorch.refusal import (  # pylint: disable=import-outside-toplevel
        Refusal, blamed, last_line)
    cause = error  # which knows more than what wraps it
    while cause.__cause__ is not None:
        cause = cause.__cause__
    said = re.sub(r"\x1b\[[0-9;]*m", "", str(cause)).strip() or type(cause).__name__
    first = said.splitlines()[0][:300]
    if (node := blamed(error)) is not None:
        no_such = "No ONNX function found" in said
        refusal = Refusal.of_node(node, "PyTorch's exporter has no ONNX for it" if no_such else first)
        return f"{refusal}; {_AROUND}"
    if "data-dependent" in said:
        line = last_line(said)
        return (f"control flow that depends on data cannot be{f', at {line}' if line else ''} ({first}); "
                f"{_AROUND}")
    return said[:1500]
