"""Well-known networks with seeded weights."""
from __future__ import annotations

import os

from . import programs


def zoo(name: str, output: str | os.PathLike[str] | None = None, *, seed: int = 0) -> str:
    """Writes a network as ONNX and returns its path: resnet18, mobilenet_v2, bert_small, mlp, ...

    output: where, over what is there; default NAME.onnx here. UsageError names what there is.
    """
    path = os.fspath(output) if output is not None else f"{name}.onnx"
    programs.call("zoo", name, "-o", path, "--seed", str(seed))
    return path
