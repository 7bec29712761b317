"""What torch.compile(..., options={...}) may say to this backend, and HONE_TUNE."""
from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from .. import errors

BACKGROUND_SECONDS = 60  # a graph, with HONE_TUNE=background


@dataclass(frozen=True)
class Options:
    """Those of hone.compile where they have its names."""

    threads: int = 0  # of a run; 0: torch.get_num_threads()
    log: Any = None
    precision: str | None = None
    accuracy: str | None = None
    server: str | None = None
    tls: str | None = None
    insecure_loopback: bool = False
    packages: int = 16  # of a graph, for shapes and weights; further ones run as PyTorch runs them
    freeze: bool = True  # weights are constants of a package; else they are inputs of each call
    tune_seconds: float = field(default=0, init=False)
    tune_in_background: bool = field(default=False, init=False)

    @classmethod
    def of(cls, given: dict[str, Any] | None) -> Options:
        """UsageError: an option that is not known."""
        known = [f.name for f in fields(cls) if f.init]
        unknown = sorted(set(given or {}) - set(known))
        if unknown:
            raise errors.UsageError(f"the backend hone has no option {', '.join(unknown)}; known are "
                                    f"{', '.join(known)}")
        made = cls(**(given or {}))
        if made.log is not None and made.log is not False and not isinstance(made.log, (str, os.PathLike)):
            raise errors.UsageError(f"log={made.log!r} is no path: name a file, or False for none")
        object.__setattr__(made, "threads", made.threads or torch.get_num_threads())
        seconds, background = _tune(os.environ.get("HONE_TUNE", ""))
        object.__setattr__(made, "tune_seconds", seconds)
        object.__setattr__(made, "tune_in_background", background)
        return made

    @property
    def pinned(self) -> bool:
        """Whether the log is a snapshot named by its digest, which nothing is written into."""
        return bool(self.log) and "@sha256:" in os.fspath(self.log)

    @property
    def can_tune(self) -> bool:
        """Whether a log takes what a tuning finds."""
        return self.log is not False and not self.pinned

    def tune(self) -> dict[str, Any]:
        """As arguments of hone.tune, where it can_tune."""
        return {name: getattr(self, name) for name in ("threads", "log", "precision", "accuracy",
                                                       "server", "tls", "insecure_loopback")}

    def compile(self) -> dict[str, Any]:
        """As arguments of hone.compile: a log that no tuning has made yet knows nothing."""
        how, log = self.tune(), self.log
        if log and not self.pinned and not os.path.exists(log):
            how["log"] = False
        return how


def _tune(said: str) -> tuple[float, bool]:
    if said in ("", "0"):
        return 0, False
    if said == "background":
        return BACKGROUND_SECONDS, True
    try:
        seconds = float(said)
    except ValueError:
        seconds = -1
    if not 0 < seconds < 1e6:
        raise errors.UsageError(f"HONE_TUNE={said} is neither 'background' nor seconds for each graph")
    return seconds, False
