"""What to tune or compile: an .onnx file, an ONNX object or a torch module, as a file."""
from __future__ import annotations

import os
import pathlib
import re
import sys
import tempfile
from typing import Any

from . import errors


class Source:
    """`path` of the .onnx file; one made here lives as long as this object."""

    def __init__(self, model: Any, inputs: Any = None):
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        torch = sys.modules.get("torch")
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
        elif torch is not None and isinstance(model, torch.nn.Module):
            self.path = self._file()
            _export(torch, model, inputs, self.path)
        else:
            raise errors.BadInput(f"a model is the path of an .onnx file, an onnx.ModelProto or a "
                                  f"torch.nn.Module, not {type(model).__name__}")
        if inputs is not None and not isinstance(inputs, dict) and (
                torch is None or not isinstance(model, torch.nn.Module)):
            raise errors.UsageError("inputs= of an ONNX model are a dict of arrays by the names of its "
                                    f"inputs, not a {type(inputs).__name__}")
        self.name = pathlib.Path(self.path).stem

    def _file(self) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="hone-")
        return os.path.join(self._folder.name, "model.onnx")


def _export(torch: Any, module: Any, inputs: Any, path: str) -> None:
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
    from .pytorch.export import quiet  # pylint: disable=import-outside-toplevel
    training = module.training
    try:
        module.eval()
        with quiet(), torch.no_grad():
            torch.onnx.export(module, example, path, dynamo=True, verbose=False)
    except Exception as error:
        # The cause knows operator and line; what wraps it knows torch's own steps.
        said = re.sub(r"\x1b\[[0-9;]*m", "", str(error.__cause__ or error))
        raise errors.BadInput(f"torch cannot export {name} to ONNX (control flow that depends on "
                              f"data cannot be): {said.strip()[:1500]}") from error
    finally:
        module.train(training)
