"""Arguments of Python as options of the command line."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from . import errors


def count(name: str, value: Any) -> int | None:
    most = (1 << 31) - 1  # of an int of the C API
    if value is None or (isinstance(value, (int, np.integer)) and 1 <= int(value) <= most):
        return None if value is None else int(value)
    raise errors.UsageError(f"{name}={value!r} is not a count: give a whole number from 1")


def unmasked(what: str, value: Any) -> np.ndarray:
    """The value as an array of NumPy; BadInput where elements of it are masked, which no file and no
    model knows of."""
    if np.ma.is_masked(value):
        raise errors.BadInput(f"{what} is a masked array, and {np.ma.count_masked(value)} of its "
                              f"{np.size(value)} elements are masked: give x.filled(VALUE)")
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise errors.BadInput(f"{what} is an array of objects, and one of numbers is wanted")
    return array


def _pairs(name: str, value: Any) -> list[tuple[str, Any]]:
    try:
        return list(value.items())
    except AttributeError:
        raise errors.UsageError(f"{name}={value!r} is no dict of names") from None


def _one(name: str, value: Any) -> list[str]:
    if name == "dims":
        return [word for key, size in _pairs(name, value) for word in ("--dim", f"{key}={size}")]
    if name == "shapes":
        try:
            return [word for key, shape in _pairs(name, value)
                    for word in ("--shape", f"{key}={'x'.join(map(str, shape))}")]
        except TypeError:
            raise errors.UsageError(f"shapes={value!r}: give a tuple of sizes for each name") from None
    if name == "cut":
        return ["--cut", value if isinstance(value, str) else ",".join(value)]
    if name == "log":
        if value is False:
            return ["--no-log"]
        try:
            value = os.fspath(value)
        except TypeError:
            raise errors.UsageError(f"log={value!r} is no path: name a file, or False for none") from None
        return ["--snapshot" if "@sha256:" in value else "--db", value]
    if name == "threads":
        return ["--threads", str(count(name, value))]
    if isinstance(value, bool):
        return ["--" + name.replace("_", "-")] if value else []
    return ["--" + name.replace("_", "-"), str(value)]


_KNOWN = {"dims", "shapes", "cut", "log", "threads", "target", "accuracy", "precision", "require",
          "server", "tls", "insecure_loopback", "device_class", "cache_mb", "seconds", "trials",
          "seed", "project", "priority", "method", "percentile", "group", "target_sqnr",
          "max_drop"}


def words(**arguments: Any) -> list[str]:
    """The options; an argument that is None is left out."""
    unknown = sorted(set(arguments) - _KNOWN)
    if unknown:
        raise errors.UsageError(f"there is no argument {', '.join(unknown)}; known are "
                                f"{', '.join(sorted(_KNOWN | {'bind'}))}")
    return [word for name, value in arguments.items() if value is not None
            for word in _one(name, value)]


class Words:
    """The options, with arrays written to files for as long as this is open."""

    def __init__(self, *, bind: Any = None, inputs: Any = None, **arguments: Any):
        self._words = words(**arguments)
        self._bind = {} if bind is None else dict(_pairs("bind", bind))
        self._inputs = None if inputs is None else dict(_pairs("inputs", inputs))
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> list[str]:
        given = list(self._words)
        if self._bind or self._inputs is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="hone-")
            folder = pathlib.Path(self._folder.name)
            for number, (name, value) in enumerate(self._bind.items()):
                path = folder / f"{number}.npy"
                if isinstance(value, (str, os.PathLike)):
                    path = pathlib.Path(value)
                else:
                    np.save(path, unmasked(f"bind['{name}']", value))
                given += ["--bind", f"{name}={path}"]
            if self._inputs is not None:
                arrays = {name: unmasked(f"inputs['{name}']", value)
                          for name, value in self._inputs.items()}
                np.savez(folder / "inputs.npz", allow_pickle=False, **arrays)
                given += ["--inputs", str(folder / "inputs.npz")]
        return given

    def __exit__(self, *_: object) -> None:
        if self._folder:
            self._folder.cleanup()
