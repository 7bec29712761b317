"""Tunings behind the calls of a program: one after another, in one thread."""
from __future__ import annotations

import os
import queue
import threading
import warnings
import weakref
from typing import TYPE_CHECKING

from .. import errors, programs
from .refusal import FallbackWarning, Refusal

if TYPE_CHECKING:
    from .variant import Variant

_waiting: queue.SimpleQueue[tuple[weakref.ref[Variant], float]] = queue.SimpleQueue()
_worker: threading.Thread | None = None
_owner = os.getpid()
_lock = threading.Lock()


def tune(variant: Variant, seconds: float) -> None:
    """Tunes it when those before it are done; it goes on with what was found. A tuning that is left
    running ends with the interpreter, and what it measured stands in the log."""
    global _worker, _owner
    with _lock:
        _waiting.put((weakref.ref(variant), seconds))
        if _worker is None or _owner != os.getpid():
            _owner = os.getpid()
            _worker = threading.Thread(target=_work, name="hone-tune", daemon=True)
            _worker.start()


def _work() -> None:
    while True:
        held, seconds = _waiting.get()
        variant = held()
        if variant is None or programs.ending.is_set():
            continue
        try:
            variant.tune(seconds, bar=False)
        except (errors.HoneError, Refusal, RuntimeError, OSError) as error:
            if not programs.ending.is_set():
                warnings.warn(f"hone: the tuning in the background ended: {error}", FallbackWarning)
