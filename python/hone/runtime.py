"""libhone_runtime by ctypes: the C API of include/hone/hone.h."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any

import numpy as np

from . import errors
from .programs import INSIDE

ALIGNMENT = 64  # outputs aligned so are written in place; smaller ones are cheaper to copy
_COPIED_BYTES = 16384

# hone_dtype -> its name in Hone, and NumPy's type. bf16 has none there: its bits are uint16.
DTYPES = {0: ("bool", np.bool_), 1: ("i8", np.int8), 2: ("u8", np.uint8), 3: ("i16", np.int16),
          4: ("u16", np.uint16), 5: ("i32", np.int32), 6: ("u32", np.uint32),
          7: ("i64", np.int64), 8: ("u64", np.uint64), 9: ("f16", np.float16),
          10: ("bf16", np.uint16), 11: ("f32", np.float32), 12: ("f64", np.float64)}


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("copy_constants", ctypes.c_int32),
                ("in_place", ctypes.c_int32)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("pin", ctypes.c_int32), ("profile", ctypes.c_int32), ("poison", ctypes.c_int32),
                ("own_threads", ctypes.c_int32), ("spin_us", ctypes.c_int32),
                ("parallel_for", ctypes.c_void_p), ("executor", ctypes.c_void_p)]


_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "hone_version": (ctypes.c_char_p, []),
    "hone_last_error": (ctypes.c_char_p, []),
    "hone_model_options_fill": (None, [ctypes.POINTER(ModelOptions), ctypes.c_size_t]),
    "hone_model_open": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(ModelOptions),
                                       ctypes.POINTER(_POINTER)]),
    "hone_model_close": (None, [_POINTER]),
    "hone_model_target": (ctypes.c_char_p, [_POINTER]),
    "hone_model_device_class": (ctypes.c_char_p, [_POINTER]),
    "hone_model_input_count": (_SIZE, [_POINTER]),
    "hone_model_output_count": (_SIZE, [_POINTER]),
    "hone_model_input": (ctypes.POINTER(TensorInfo), [_POINTER, _SIZE]),
    "hone_model_output": (ctypes.POINTER(TensorInfo), [_POINTER, _SIZE]),
    "hone_context_options_fill": (None, [ctypes.POINTER(ContextOptions), ctypes.c_size_t]),
    "hone_context_create": (ctypes.c_int, [_POINTER, ctypes.POINTER(ContextOptions),
                                           ctypes.POINTER(_POINTER)]),
    "hone_context_destroy": (None, [_POINTER]),
    "hone_context_threads": (ctypes.c_int32, [_POINTER]),
    "hone_context_run": (ctypes.c_int, [_POINTER, _POINTER, _SIZE, _POINTER, _SIZE]),
}


def _path() -> str:
    named = os.environ.get("HONE_LIBRARY")
    if named:
        return named
    inside = INSIDE / "lib" / "libhone_runtime.so.0"
    if inside.exists():
        return str(inside)
    programs = os.environ.get("HONE_BIN")  # of a build or an archive: its library lies beside
    if programs:
        for beside in pathlib.Path(programs).resolve().parent.glob("lib*/**/libhone_runtime.so.0"):
            return str(beside)
    return "libhone_runtime.so.0"


@functools.cache
def loaded() -> ctypes.CDLL:
    """The library: $HONE_LIBRARY, else inside this package, else beside $HONE_BIN, else the
    loader's. Calls release the interpreter's lock."""
    try:
        opened = ctypes.CDLL(_path())
    except OSError as error:
        raise errors.NotInstalled(
            f"{error}: Hone's runtime is missing; install the wheel or libhone-runtime, or name the "
            "library: HONE_LIBRARY=/path/to/libhone_runtime.so.0") from error
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    return opened


def check(status: int) -> None:
    if status != 0:
        message = loaded().hone_last_error().decode(errors="replace")
        raise errors.OF_STATUS.get(status, errors.Fault)(message)


_view: Any = ctypes.c_char.from_buffer
_place = ctypes.addressof


def address(array: np.ndarray) -> int:
    """Where a contiguous array's bytes are."""
    try:
        return _place(_view(array))  # five times as fast as __array_interface__
    except (TypeError, ValueError):  # read-only, or of no bytes
        return array.__array_interface__["data"][0]


def empty(shape: tuple[int, ...], dtype: np.dtype, count: int) -> np.ndarray:
    """An array of `count` bytes that the runtime writes without a copy where that would cost."""
    if count <= _COPIED_BYTES:
        return np.empty(shape, dtype)
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -address(memory) % ALIGNMENT
    return memory[start:start + count].view(dtype).reshape(shape)
