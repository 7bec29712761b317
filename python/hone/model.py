"""Compiled models: load, call, save."""
from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import errors, files, options, programs, runtime
from .source import Source
from .table import Table

_CPU = {1, 3}  # DLPack's kinds of device: CPU, and CPU memory that a GPU sees too


@dataclass(frozen=True)
class Tensor:
    """An input or output: dense, row-major."""

    name: str
    type: str  # "f32", "i64", "bf16", ...
    dtype: np.dtype  # NumPy's; uint16 (the bits) for bf16
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.type}[{','.join(map(str, self.shape))}]"


def _tensor(info: runtime.TensorInfo) -> Tensor:
    name, dtype = runtime.DTYPES[info.dtype]
    return Tensor(info.name.decode(errors="replace"), name, np.dtype(dtype),
                  tuple(info.shape[i] for i in range(info.rank)), info.bytes)


def _array(tensor: Tensor, value: Any) -> np.ndarray:
    """The value as a contiguous array of the tensor's type and shape: itself where it is one."""
    if isinstance(value, np.ndarray):
        array = options.unmasked(f"input '{tensor.name}'", value)
    elif hasattr(value, "__dlpack_device__"):
        try:
            here = value.__dlpack_device__()[0] in _CPU
        except ValueError:  # a device that DLPack does not know
            here = False
        if not here:
            device = getattr(value, "device", "that DLPack tells")  # which not all tensors have
            raise errors.BadInput(f"input '{tensor.name}' is on the device {device}, and this "
                                  "model runs on the CPU: give x.cpu()")
        value = value.detach() if getattr(value, "requires_grad", False) else value
        try:
            array = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError) as error:
            raise errors.BadInput(f"input '{tensor.name}' is {tensor}, and NumPy cannot read what "
                                  f"was given ({error}); of bfloat16 give the bits: "
                                  "x.view(torch.uint16)") from error
    elif isinstance(value, (list, tuple, int, float, bool)):
        try:
            array = np.asarray(value, tensor.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise errors.BadInput(f"input '{tensor.name}' is {tensor}: {error}") from error
    elif isinstance(value, Mapping):
        raise errors.BadInput(f"input '{tensor.name}' is {tensor}, not a dict: give inputs by name as "
                              "model.run({...}) or model(**{...})")
    else:
        array = np.asarray(value)
    if tensor.type == "bf16" and array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    if array.dtype != tensor.dtype:
        raise errors.BadInput(f"input '{tensor.name}' is {tensor}, not {array.dtype}: give "
                              f"x.astype(np.{tensor.dtype})")
    if array.shape != tensor.shape:
        raise errors.BadInput(f"input '{tensor.name}' is {tensor}, not of shape {array.shape}; a "
                              "package has fixed shapes: compile another with shapes= or dims=")
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class Model:
    """A compiled model in this process; `hone.load` and `hone.compile` make it.

    Any number of threads may call it; the calls take turns, each on `threads` threads, and the
    interpreter's lock is released meanwhile. For calls at the same time load it once for each. A
    child process after fork may go on calling it.
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int | None = None,
                 copy_constants: bool = False):
        self._model, self._context = ctypes.c_void_p(), ctypes.c_void_p()
        self._file = -1
        self._library = library = runtime.loaded()
        path = os.fspath(path)
        model_options, context_options = runtime.ModelOptions(), runtime.ContextOptions()
        library.hone_model_options_fill(model_options, ctypes.sizeof(model_options))
        model_options.copy_constants = int(copy_constants)
        runtime.check(library.hone_model_open(os.fsencode(path), model_options,
                                              ctypes.byref(self._model)))
        library.hone_context_options_fill(context_options, ctypes.sizeof(context_options))
        context_options.threads = options.count("threads", threads) or 0
        runtime.check(library.hone_context_create(self._model, context_options,
                                                  ctypes.byref(self._context)))
        # The package itself, whatever later stands under its name.
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.name = pathlib.Path(path).stem
        self.inputs = tuple(_tensor(library.hone_model_input(self._model, i).contents)
                            for i in range(library.hone_model_input_count(self._model)))
        self.outputs = tuple(_tensor(library.hone_model_output(self._model, i).contents)
                             for i in range(library.hone_model_output_count(self._model)))
        self.target: str = library.hone_model_target(self._model).decode()
        self.device_class: str = library.hone_model_device_class(self._model).decode()
        self.threads: int = library.hone_context_threads(self._context)
        self._takes = [(tensor.dtype, tensor.shape, tensor.bytes) for tensor in self.inputs]
        self._gives = [(tensor.dtype, tensor.shape, tensor.bytes) for tensor in self.outputs]
        self._bytes = [tensor.bytes for tensor in (*self.inputs, *self.outputs)]
        self._hone_context_run = library.hone_context_run
        self._names = {tensor.name: i for i, tensor in enumerate(self.inputs)}
        self._slots = ctypes.c_uint64 * max(1, 2 * (len(self.inputs) + len(self.outputs)))
        self._outputs_at = 16 * len(self.inputs)  # bytes
        self._source: Source | None = None
        self._how: list[str] = []  # the options that it was compiled with
        self.kernels = Table()

    def __del__(self) -> None:
        if getattr(self, "_context", None):
            self._library.hone_context_destroy(self._context)
        if getattr(self, "_model", None):
            self._library.hone_model_close(self._model)
        if getattr(self, "_file", -1) >= 0:
            os.close(self._file)

    def __reduce_ex__(self, _: Any) -> Any:
        """No copies, which would close what this one holds, and no pickles."""
        raise TypeError(f"the model '{self.name}' cannot be copied or pickled: save() it, and hone.load() "
                        "the file where another is wanted")

    def __repr__(self) -> str:
        def told(tensors: tuple[Tensor, ...]) -> str:
            return ", ".join(f"{tensor.name}: {tensor}" for tensor in tensors)
        return (f"<hone.Model {self.name} ({told(self.inputs)}) -> ({told(self.outputs)}) "
                f"for {self.target}>")

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Runs the model once: inputs in the graph's order, or by name.

        Contiguous NumPy arrays and DLPack tensors on the CPU (torch's, JAX's, ...) are read where
        they are (copied unless aligned to 64 bytes); others are copied. Gives a new array, or a
        tuple of them where there are several outputs, which nothing else refers to. BadInput where
        an input is missing or does not fit; nothing is converted silently but lists.
        """
        arrays = self._in_order(values, named)
        results = self._run(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """As a call, by the names of the graph, whatever they are: outputs by name."""
        results = self._run(self._in_order((), inputs))
        return {tensor.name: array for tensor, array in zip(self.outputs, results)}

    def _in_order(self, values: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        if not named and len(values) == len(self.inputs):
            return list(values)
        wanted = ", ".join(f"{tensor.name}: {tensor}" for tensor in self.inputs)
        given = dict(zip(self._names, values))
        unknown = sorted(set(named) - set(self._names))
        twice = sorted(set(named) & set(given))
        missing = sorted(set(self._names) - set(named) - set(given))
        if len(values) > len(self.inputs) or unknown or twice or missing:
            wrong = [f"{what} {', '.join(names)}" for what, names in
                     (("unknown", unknown), ("given twice", twice), ("missing", missing)) if names]
            raise errors.BadInput(f"the model '{self.name}' takes {len(self.inputs)} inputs "
                                  f"({wanted}): {'; '.join(wrong) or f'{len(values)} were given'}")
        given.update(named)
        return [given[name] for name in self._names]

    def _run(self, values: list[Any]) -> list[np.ndarray]:
        slots, at = self._slots(), 0
        kept, results = [], []  # until the call is over
        for (dtype, shape, count), value in zip(self._takes, values):
            if not (type(value) is np.ndarray and value.dtype == dtype and value.shape == shape and
                    value.flags.c_contiguous):
                value = _array(self.inputs[at // 2], value)
            kept.append(value)
            slots[at] = runtime.address(value)
            slots[at + 1] = count
            at += 2
        for dtype, shape, count in self._gives:
            array = runtime.empty(shape, dtype, count)
            results.append(array)
            slots[at] = runtime.address(array)
            slots[at + 1] = count
            at += 2
        start = ctypes.addressof(slots)
        status = self._hone_context_run(self._context, start, len(self._takes),
                                        start + self._outputs_at, len(self._gives))
        if status != 0:
            runtime.check(status)
        return results

    def run_at(self, places: Iterable[int]) -> None:
        """As a call, on memory of the caller: the addresses of the inputs, then of the outputs, in the
        graph's order. Each holds the `bytes` of its Tensor, dense, and lives until the call is over;
        addresses that 64 divides cost no copy."""
        slots = self._slots()
        for at, (place, count) in enumerate(zip(places, self._bytes)):
            slots[2 * at], slots[2 * at + 1] = place, count
        start = ctypes.addressof(slots)
        status = self._hone_context_run(self._context, start, len(self._takes),
                                        start + self._outputs_at, len(self._gives))
        if status != 0:
            runtime.check(status)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the package, whole or not at all, over what is there. NoSpace: it cannot."""
        with open(f"/proc/self/fd/{self._file}", "rb") as package:  # with a position of its own
            files.write_whole(path, package)

    @contextlib.contextmanager
    def _file_of_package(self) -> Iterator[str]:
        """A name of the package for another program."""
        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            link = os.path.join(folder, self.name + ".hone")
            os.symlink(f"/proc/{os.getpid()}/fd/{self._file}", link)
            yield link

    def bench(self, *, against: str | None = None, onnx: Any = None, seconds: float = 2,
              threads: int | None = None) -> Table:
        """Times of one run on this machine, in µs, one row for each program that was measured.

        `against="onnxruntime"` runs the ONNX model there too, in turns with this one: that which it
        was compiled from, or `onnx`. Columns: model, threads, median_us, p99_us, ..., and in the
        second row ratio_median, ratio_low and ratio_high: how many times as fast as this model
        ONNX Runtime is, with a 95 % interval.
        """
        words = ["--seconds", f"{seconds}", *options.words(threads=threads or self.threads)]
        if against is None:
            with self._file_of_package() as package:
                row = programs.call("bench", package, *words)
            row.pop("samples_us")
            return Table([row])
        if against != "onnxruntime":
            raise errors.UsageError(f"against='{against}' is not known: 'onnxruntime' is")
        source = Source(onnx) if onnx is not None else self._source
        if source is None:
            raise errors.UsageError("against='onnxruntime' runs the ONNX model, and this one was "
                                    "loaded as a package: name it (onnx='model.onnx')")
        with self._file_of_package() as package:
            rows = programs.call("bench", package, source.path, *words, *self._how, "--against",
                                 against)["models"]
        ours, rival = rows[0], rows[-1]  # between them `hone bench` compiles and times the model
        ours["runtime"] = "hone"
        for row in (ours, rival):
            for key in ("turns_us", "file"):
                row.pop(key)
        rival.update({f"ratio_{key}": value for key, value in rival.pop("ratio").items()})
        return Table([ours, rival])

    def profile(self, *, seconds: float = 1) -> Table:
        """The kernels of a run, slowest first: name, count, us (a run), flop, bytes, and
        roofline_share, the least time that this machine needs over that which it took."""
        with self._file_of_package() as package:
            result = programs.call("bench", package, "--profile", "--seconds", f"{seconds}",
                                   *options.words(threads=self.threads))
        return Table(sorted(result["profile"], key=lambda row: -row["us"]))


def load(path: str | os.PathLike[str], *, threads: int | None = None,
         copy_constants: bool = False) -> Model:
    """A package (.hone) ready to run. A package is code: load only what you trust.

    threads: of a run, the caller's included; else as many as it was made for, but no more than the
    cores of this process. copy_constants: see hone.h. BadInput: absent, damaged or no package;
    DeviceError: this machine cannot run it.
    """
    return Model(path, threads=threads, copy_constants=copy_constants)


def compile(model: Any, inputs: Any = None, *, output: options.Path | None = None,
            threads: int | None = None, log: options.LogPath = None, precision: str | None = None,
            dims: options.Dims = None, server: str | None = None,
            **how: options.Unpack[options.CompileHow]) -> Model:
    """Compiles a model for this machine (or `target`) with the best schedules of the log.

    model: path of an .onnx file, an onnx.ModelProto, or a torch.nn.Module (then `inputs` are its
    example inputs, a tensor or a tuple). output: where to keep the package; else `Model.save` can.
    threads: that runs take. log: path, "FILE@sha256:DIGEST", or False for none. precision: "f32",
    "bf16" or "f16". dims: {"batch": 4}. server: the farm whose records are used. how:
    shapes={"x": (1, 3, 224, 224)}, bind={"x": array}, cut, target, accuracy, batch, cascades,
    require, device_class, cache_mb, tls, insecure_loopback (docs/reference/commands.md#hone-compile).
    Errors: BadInput names operator and node; LogError; RecordMissing; ServerError; DeviceError.
    """
    source = model if isinstance(model, Source) else Source(model, inputs)
    given = {"log": log, "precision": precision, "dims": dims, "server": server, **how}
    with options.Words(threads=threads, **given) as words, source.spoken_of(), \
            tempfile.TemporaryDirectory(prefix="hone-") as folder:
        package = pathlib.Path(output) if output else pathlib.Path(folder, source.name + ".hone")
        told = programs.call("compile", source.path, "-o", str(package), *words)
        compiled = Model(package, threads=threads)
    compiled._source = source
    compiled._how = options.words(**{key: value for key, value in given.items() if key in
                                     ("dims", "shapes", "cut", "accuracy", "precision")})
    compiled.kernels = Table(told["kernels"])
    return compiled
