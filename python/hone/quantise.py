"""Models in fewer bits."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from . import errors, options, programs
from .source import Source
from .table import Table


class Quantised:
    """What `hone.quantize` wrote: `path` of the ONNX file, which `hone.compile` and others read.

    sqnr_db, top1: of the file as compiled, against f32; predicted_db: as the search saw it.
    layers: name, op, low, high, alone_db, share, kept, why, cost_ms. front: kept, sqnr_db, top1,
    median_ms and ratio of models with more and fewer layers in f32; empty without a target.
    """

    def __init__(self, told: dict[str, Any]):
        self.path: str = told["output"]
        self.scheme: str = told["scheme"]
        self.sqnr_db: float = told["written"]["sqnr_db"]
        self.top1: float | None = told["written"]["top1"]
        self.top1_in_f32: float | None = told["top1_in_f32"]
        self.predicted_db: float = told["predicted"]["sqnr_db"]
        self.layers = Table(told["layers"])
        self.front = Table([{**{key: value for key, value in point.items() if key != "time"},
                             **(point["time"] or {})} for point in told["front"]])
        self.megabytes: float = told["output_bytes"] / 1e6
        self.megabytes_in_f32: float = told["model_bytes"] / 1e6

    def __repr__(self) -> str:
        kept = sum(layer["kept"] for layer in self.layers)
        return (f"<{self.path}: {self.scheme}, {self.sqnr_db:.1f} dB, {kept} of "
                f"{len(self.layers)} layers in f32, {self.megabytes:.2f} of "
                f"{self.megabytes_in_f32:.2f} MB>")

    def __fspath__(self) -> str:
        return self.path


def _archive(data: Any, path: pathlib.Path) -> list[str]:
    """What --calibrate takes: paths as they are, arrays by name in a file."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and all(isinstance(d, (str, os.PathLike)) for d in data):
        return [os.fspath(d) for d in data]
    try:
        arrays = {name: np.asarray(value) for name, value in data.items()}
    except AttributeError:
        raise errors.UsageError("data is the path of an .npz file or a folder of them, a list of "
                                "paths, or a dict of arrays by the names of inputs") from None
    np.savez(path, allow_pickle=False, **arrays)
    return [str(path)]


def quantize(model: Any, data: Any = None, *, output: str | os.PathLike[str] | None = None,
             scheme: str = "int8", keep: Any = (), labels: Any = None,
             report: str | os.PathLike[str] | None = None, **how: Any) -> Quantised:
    """Writes the model with narrow numbers as ONNX and says what that costs.

    model: path of an .onnx file or an onnx.ModelProto. data: to learn ranges from (int8 needs it):
    a path, paths, or a dict of arrays by input, of one run or several behind each other. scheme:
    int8, int8-dynamic, int8-weights, int4-weights, bf16 or f16. keep: names of nodes that stay in
    f32. labels: the right classes of `data`, or the path of an .npz that holds them. report: where
    to write a page with the front. how: method, percentile, group, target_sqnr (dB), max_drop
    (points), seconds, dims, shapes, bind, target, threads, log.
    Errors: BadInput says which file, array or node; UsageError.
    """
    source = model if isinstance(model, Source) else Source(model)
    if output is None and not isinstance(model, (str, os.PathLike)):
        raise errors.UsageError("a model that is no file needs output=: where to write")
    words = ["--scheme", scheme]
    words += [word for node in ([keep] if isinstance(keep, str) else keep)
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
        return Quantised(programs.call("quantize", source.path, *words, *more))
