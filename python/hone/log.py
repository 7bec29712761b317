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

    def _words(self, *, positional: bool) -> list[str]:
        if self.path is None:
            return []
        return [self.path] if positional else options.words(log=self.path)

    def stats(self) -> dict[str, Any]:
        """How many records, sessions, devices, ... it has."""
        return programs.call("db", "stats", *self._words(positional=True))

    def best(self, workload: str = "") -> Table:
        """The fastest record of each workload, target and device class: workload (hash), target,
        median_us with its interval, trace, ...; only workloads whose hash begins so, if given."""
        records = programs.call("db", "best", *self._words(positional=True))["records"]
        return Table(row for row in records if row["workload"].startswith(workload))

    def query(self, model: Any, **how: Any) -> Table:
        """What the log knows about each kernel of a model: rung of the look-up, record, median_us,
        why. how: dims, shapes, bind, cut, target, threads, accuracy, device_class."""
        source = Source(model, how.pop("inputs", None))
        with options.Words(**how) as words:
            return Table(programs.call("query", source.path, *self._words(positional=False),
                                       *words)["kernels"])

    def __repr__(self) -> str:
        return f"<hone.Log {self.path or 'of this user'}>"
