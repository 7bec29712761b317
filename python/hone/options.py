"""Arguments of Python as options of the command line."""
from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

import numpy as np

from . import errors

if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack  # for the others too
elif TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

Path = Union[str, "os.PathLike[str]"]
LogPath = Union[Path, Literal[False], None]  # also "FILE@sha256:DIGEST"; False: none
Dims = Union[Mapping[str, int], None]  # of the names that a model leaves open


class ModelHow(TypedDict, total=False):
    """How a model is read, and for what its kernels are made."""

    shapes: Mapping[str, Sequence[int]] | None  # by the names of inputs
    bind: Mapping[str, Any] | None  # inputs that become constants: arrays, or paths of .npy files
    cut: str | Sequence[str] | None  # names of values that become the outputs
    target: str | None  # "cpu:avx2", ...
    accuracy: str | None  # "strict", "default" or "fast"
    batch: str | None  # "auto", "together" or "each"
    cascades: str | None  # "auto", "off", "on" or "all"
    device_class: str | None
    cache_mb: int | None


class AccessHow(TypedDict, total=False):
    """How a server is asked."""

    tls: Path | None  # folder with your ca.pem, cert.pem and key.pem
    insecure_loopback: bool


class FarmTuneHow(ModelHow, total=False):
    """How a farm tunes."""

    seed: int | None
    judge: bool  # a device of the farm compares the whole model, default against tuned
    project: str | None
    priority: int | None  # -100 to 100


class TuneHow(FarmTuneHow, AccessHow, total=False):
    """How hone.tune tunes."""


class FarmCompileHow(ModelHow, total=False):
    """How a model is compiled with a farm's records."""

    require: str | None  # "exact", ...: RecordMissing where a kernel has no such record


class CompileHow(FarmCompileHow, AccessHow, total=False):
    """How hone.compile compiles."""


class AgainHow(CompileHow, total=False):
    """What Session.compile may change."""

    output: Path | None
    threads: int | None
    log: LogPath
    precision: str | None
    dims: Dims
    server: str | None


class RewriteHow(TypedDict, total=False):
    """How hone.prune and hone.quantize look for layers, and read a model."""

    target_sqnr: float | None  # dB
    max_drop: float | None  # points
    seconds: float | None
    dims: Dims
    shapes: Mapping[str, Sequence[int]] | None
    bind: Mapping[str, Any] | None
    target: str | None
    threads: int | None
    log: LogPath


class QuantizeHow(RewriteHow, total=False):
    """How hone.quantize learns ranges."""

    method: str | None
    percentile: float | None
    group: int | None


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
          "seed", "judge", "project", "priority", "batch", "cascades", "method", "percentile", "group",
          "target_sqnr", "max_drop"}


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
