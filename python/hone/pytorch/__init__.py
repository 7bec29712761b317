"""torch.compile(module, backend="hone"): graphs of PyTorch on packages of Hone.

    import torch

    compiled = torch.compile(net.eval(), backend="hone")
    with torch.no_grad():
        y = compiled(x)                              # the first call compiles, as Inductor's does

A graph is exported to ONNX, compiled with the best that the log knows, and called without copies.
What cannot be compiled runs as PyTorch runs it, after one warning that names operator and line.
Wheels register the name "hone" with PyTorch; elsewhere `import hone.pytorch` does.
docs/PYTHON.md has the guide; decision 0013 says why it is made so.
"""
from __future__ import annotations

from ..errors import NotInstalled

try:
    import torch  # noqa: F401  pylint: disable=unused-import
except ImportError as error:
    raise NotInstalled("there is no PyTorch here: pip install torch onnx onnxscript") from error

from .backend import backend, seen, tune_seen
from .explain import Explanation, explain
from .refusal import FallbackWarning

__all__ = ["Explanation", "FallbackWarning", "backend", "explain", "seen", "tune_seen"]
