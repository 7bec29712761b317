"""A tuning log, read."""
from __future__ import annotations

import os
from typing import Any

from . import options, programs
from .source import Source
from .table import Table


class Log:
    """The log at `path` (or a snapshot of one); without a path the user's own.

    Readers disturb nobody who writes it. LogError: damaged, or from a newer Hone; BadInput: absent.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        self.path = None if path is None else os.fspath(path)

    def _words(self) -> list[str]:
        return [] if self.path is None else [self.path]

    def stats(self) -> dict[str, Any]:
        """How many records, sessions, devices, ... it has."""
        return programs.call("db", "stats", *self._words())

    def best(self, workload: str = "") -> Table:
        """The fastest record of each workload, target and device class: workload (hash), target,
        median_us with its interval, trace, ...; only workloads whose hash begins so, if given."""
        return best(workload, *self._words())

    def query(self, model: Any, inputs: Any = None, *, threads: int | None = None,
              precision: str | None = None, dims: options.Dims = None,
              **how: options.Unpack[options.ModelHow]) -> Table:
        """What the log knows about each kernel of a model: rung of the look-up, record, median_us,
        why. model, inputs and how: as for hone.compile."""
        return query(model, inputs, log=self.path, threads=threads, precision=precision, dims=dims,
                     **how)

    def __repr__(self) -> str:
        return f"<hone.Log {self.path or 'of this user'}>"


def best(workload: str, *words: str) -> Table:
    """Log.best of the log that the words name."""
    records = programs.call("db", "best", *words)["records"]
    return Table(row for row in records if row["workload"].startswith(workload))


def query(model: Any, inputs: Any, **how: Any) -> Table:
    """Log.query of the log, or the server, that `how` names."""
    source = Source(model, inputs)
    with options.Words(**how) as words, source.spoken_of():
        return Table(programs.call("query", source.path, *words)["kernels"])
