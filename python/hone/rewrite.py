"""What commands that change layers of a model share: their arguments, and what they say."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from . import errors, options, programs
from .source import Source, is_module
from .table import Table


class Rewritten:
    """The written file and what was measured of it."""

    def __init__(self, told: dict[str, Any]):
        self.path: str = told["output"]
        self.sqnr_db: float = told["written"]["sqnr_db"]
        self.top1: float | None = told["written"]["top1"]
        self.top1_in_f32: float | None = told["top1_in_f32"]
        self.predicted_db: float = told["predicted"]["sqnr_db"]
        self.layers = Table(told["layers"])
        self.front = Table([{**{key: value for key, value in point.items() if key != "time"},
                             **(point["time"] or {})} for point in told["front"]])
        self.megabytes: float = told["output_bytes"] / 1e6
        self.megabytes_in_f32: float = told["model_bytes"] / 1e6

    def _kept(self) -> int:
        return sum(layer["kept"] for layer in self.layers)

    def __fspath__(self) -> str:
        return self.path


def _archive(data: Any, path: pathlib.Path) -> list[str]:
    """What --calibrate takes: paths as they are, arrays by name in a file."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and all(isinstance(d, (str, os.PathLike)) for d in data):
        return [os.fspath(d) for d in data]
    try:
        arrays = {name: options.unmasked(f"data['{name}']", value)
                  for name, value in data.items()}
    except AttributeError:
        raise errors.UsageError("data is the path of an .npz file or a folder of them, a list of "
                                "paths, or a dict of arrays by the names of inputs") from None
    np.savez(path, allow_pickle=False, **arrays)
    return [str(path)]


def rewrite(command: str, model: Any, words: list[str], *, data: Any, output: Any, keep: Any,
            labels: Any, report: Any, **how: Any) -> dict[str, Any]:
    """What the command says, called with `words` and what the arguments stand for."""
    if is_module(model):
        raise errors.BadInput(
            f"hone.{command} reads ONNX, and {type(model).__name__} is a torch module: export it first "
            "(torch.onnx.export(module, (x,), 'model.onnx', dynamo=True)) and give that path")
    source = model if isinstance(model, Source) else Source(model)
    if output is None and not isinstance(model, (str, os.PathLike)):
        raise errors.UsageError("a model that is no file needs output=: where to write")
    words = words + [word for node in ([keep] if isinstance(keep, str) else keep)
                     for word in ("--keep", node)]
    if output is not None:
        words += ["-o", os.fspath(output)]
    if report is not None:
        words += ["--report", os.fspath(report)]
    with options.Words(**how) as more, tempfile.TemporaryDirectory(prefix="hone-") as folder:
        if data is not None:
            for path in _archive(data, pathlib.Path(folder, "data.npz")):
                words += ["--calibrate", path]
        if labels is not None:
            path = labels
            if not isinstance(labels, (str, os.PathLike)):
                path = pathlib.Path(folder, "labels.npz")
                np.savez(path, allow_pickle=False, labels=np.asarray(labels, np.int64))
            words += ["--labels", os.fspath(path)]
        return programs.call(command, source.path, *words, *more)
