"""Models in fewer bits."""
from __future__ import annotations

import os
from typing import Any

from . import options
from .rewrite import Rewritten, rewrite


class Quantised(Rewritten):
    """What `hone.quantize` wrote: `path` of the ONNX file, which `hone.compile` and others read.

    sqnr_db, top1: of the file as compiled, against f32; predicted_db: as the search saw it.
    layers: name, op, low, high, alone_db, share, kept, why, cost_ms. front: kept, sqnr_db, top1,
    median_ms and ratio of models with more and fewer layers in f32; empty without a target.
    """

    def __init__(self, told: dict[str, Any]):
        super().__init__(told)
        self.scheme: str = told["scheme"]

    def __repr__(self) -> str:
        return (f"<{self.path}: {self.scheme}, {self.sqnr_db:.1f} dB, {self._kept()} of "
                f"{len(self.layers)} layers in f32, {self.megabytes:.2f} of "
                f"{self.megabytes_in_f32:.2f} MB>")


def quantize(model: Any, data: Any = None, *, output: str | os.PathLike[str] | None = None,
             scheme: str = "int8", keep: Any = (), labels: Any = None,
             report: str | os.PathLike[str] | None = None,
             **how: options.Unpack[options.QuantizeHow]) -> Quantised:
    """Writes the model with narrow numbers as ONNX and says what that costs.

    model: path of an .onnx file or an onnx.ModelProto. data: to learn ranges from (int8 needs it):
    a path, paths, or a dict of arrays by input, of one run or several behind each other. scheme:
    int8, int8-dynamic, int8-weights, int4-weights, bf16 or f16. keep: names of nodes that stay in
    f32. labels: the right classes of `data`, or the path of an .npz that holds them. report: where
    to write a page with the front. how: method, percentile, group, target_sqnr (dB), max_drop
    (points), seconds, dims, shapes, bind, target, threads, log.
    Errors: BadInput says which file, array or node; UsageError.
    """
    return Quantised(rewrite("quantize", model, ["--scheme", scheme], data=data, output=output,
                             keep=keep, labels=labels, report=report, **how))
