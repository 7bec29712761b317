"""Models with fewer weights."""
from __future__ import annotations

import os
from typing import Any

from . import errors, options
from .rewrite import Rewritten, rewrite


class Pruned(Rewritten):
    """What `hone.prune` wrote: `path` of the ONNX file, which `hone.compile` and others read.

    sqnr_db, top1: of the file as compiled, against the dense model; predicted_db: as the search saw
    it. sparsity: the share of all weights that are zero or gone. layers: name, op, sparsity,
    alone_db, share, kept, why, cost_ms. front: kept, sqnr_db, top1, median_ms and ratio of models
    with more and fewer layers dense; empty without a target. heads: layer, head, saliency (the share
    of the layer's heads) and gone, of structure "head".
    """

    def __init__(self, told: dict[str, Any]):
        super().__init__(told)
        self.structure: str = told["structure"]
        self.sparsity: float = told["sparsity"]
        self.heads: list[dict[str, Any]] = told.get("heads", [])

    def __repr__(self) -> str:
        return (f"<{self.path}: {self.structure}, {100 * self.sparsity:.1f} % zero or gone, "
                f"{self.sqnr_db:.1f} dB, {self._kept()} of {len(self.layers)} layers dense, "
                f"{self.megabytes:.2f} of {self.megabytes_in_f32:.2f} MB>")


def prune(model: Any, sparsity: float | None = None, data: Any = None, *,
          structure: str = "none", output: str | os.PathLike[str] | None = None, keep: Any = (),
          labels: Any = None, report: str | os.PathLike[str] | None = None,
          **how: options.Unpack[options.RewriteHow]) -> Pruned:
    """Writes the model with its least salient weights zero as ONNX and says what that costs.

    model: path of an .onnx file or an onnx.ModelProto. sparsity: the share of each layer's weights
    (blocks, channels, heads) that becomes zero, from 0 to below 1; structure "2:4" has its own. data: what
    weights are worth is judged by (their size alone without): a path, paths, or a dict of arrays by
    input, of one run or several behind each other. structure: none, channel or head (taken out
    of the model), block:MxN or N:M. keep: names of nodes that stay dense. labels: the right classes of
    `data`, or the path of an .npz that holds them. report: where to write a page with the front.
    how: target_sqnr (dB), max_drop (points), seconds, dims, shapes, bind, target, threads, log.
    Errors: BadInput says which file, array or node; UsageError.
    """
    words = ["--structure", structure]
    if sparsity is not None:
        try:
            words += [f"--sparsity={float(sparsity)}"]
        except (TypeError, ValueError):
            raise errors.UsageError(f"sparsity={sparsity!r} is no number from 0 to below 1") from None
    return Pruned(rewrite("prune", model, words, data=data, output=output, keep=keep,
                          labels=labels, report=report, **how))
