"""Compiled Hone models from Python: ctypes and numpy, nothing else.

    import hone
    model = hone.Model("model.hone")
    outputs = model.run({"x": x})            # name -> numpy array

or on the command line, with inputs and outputs as .npz files:

    python hone.py model.hone inputs.npz outputs.npz

The library is found as libhone_runtime.so.0 on the loader's path (LD_LIBRARY_PATH, /etc/ld.so.conf),
or give Model(..., library="/path/to/libhone_runtime.so"). A package is code: load only what you trust.
"""
import ctypes
import sys

import numpy as np

_ALIGNMENT = 64  # buffers aligned so are used in place, others are copied by the runtime

# bf16 has no numpy type: its bits are given as uint16.
_DTYPES = {0: np.bool_, 1: np.int8, 2: np.uint8, 3: np.int16, 4: np.uint16, 5: np.int32,
           6: np.uint32, 7: np.int64, 8: np.uint64, 9: np.float16, 10: np.uint16,
           11: np.float32, 12: np.float64}


class HoneError(RuntimeError):
    """A failure of the runtime; `status` is the number of hone_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t)]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _ContextOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("pin", ctypes.c_int32), ("profile", ctypes.c_int32), ("poison", ctypes.c_int32),
                ("own_threads", ctypes.c_int32), ("spin_us", ctypes.c_int32),
                ("parallel_for", ctypes.c_void_p), ("executor", ctypes.c_void_p)]


class _StepInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("rung", ctypes.c_char_p),
                ("record_id", ctypes.c_char_p), ("is_kernel", ctypes.c_int32),
                ("time_ns", ctypes.c_int64)]


def _load(path):
    try:
        lib = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"{error}: Hone's runtime is missing; install libhone-runtime, or name "
                          "the library: Model(..., library='/path/to/libhone_runtime.so.0')") from error
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    signatures = {
        "hone_version": (ctypes.c_char_p, []),
        "hone_last_error": (ctypes.c_char_p, []),
        "hone_model_open": (ctypes.c_int, [ctypes.c_char_p, pointer, ctypes.POINTER(pointer)]),
        "hone_model_close": (None, [pointer]),
        "hone_model_target": (ctypes.c_char_p, [pointer]),
        "hone_model_input_count": (size, [pointer]),
        "hone_model_output_count": (size, [pointer]),
        "hone_model_input": (ctypes.POINTER(_TensorInfo), [pointer, size]),
        "hone_model_output": (ctypes.POINTER(_TensorInfo), [pointer, size]),
        "hone_context_options_init": (None, [ctypes.POINTER(_ContextOptions)]),
        "hone_context_create": (ctypes.c_int, [pointer, ctypes.POINTER(_ContextOptions),
                                               ctypes.POINTER(pointer)]),
        "hone_context_destroy": (None, [pointer]),
        "hone_context_threads": (ctypes.c_int32, [pointer]),
        "hone_context_run": (ctypes.c_int, [pointer, ctypes.POINTER(_Buffer), size,
                                            ctypes.POINTER(_Buffer), size]),
        "hone_context_step_count": (size, [pointer]),
        "hone_context_step": (ctypes.c_int, [pointer, size, ctypes.POINTER(_StepInfo)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def _aligned(shape, dtype):
    count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(count + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start:start + count].view(dtype).reshape(shape)


class Tensor:
    """Name, numpy dtype and shape of an input or output."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.dtype = np.dtype(_DTYPES[info.dtype])
        self.shape = tuple(info.shape[i] for i in range(info.rank))

    def __repr__(self):
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Model:
    """A loaded package with one context. Runs from several threads take turns; make a Model for each
    thread that is to run at the same time."""

    def __init__(self, path, threads=0, profile=False, library="libhone_runtime.so.0"):
        self._lib = _load(library)
        self._model, self._context = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._lib.hone_model_open(str(path).encode(), None,
                                              ctypes.byref(self._model)))
        options = _ContextOptions()
        self._lib.hone_context_options_init(ctypes.byref(options))
        options.threads, options.profile = threads, int(profile)
        self._check(self._lib.hone_context_create(self._model, ctypes.byref(options),
                                                  ctypes.byref(self._context)))
        lib, model = self._lib, self._model
        self.inputs = [Tensor(lib.hone_model_input(model, i).contents)
                       for i in range(lib.hone_model_input_count(model))]
        self.outputs = [Tensor(lib.hone_model_output(model, i).contents)
                        for i in range(lib.hone_model_output_count(model))]
        self.target = lib.hone_model_target(model).decode()
        self.threads = lib.hone_context_threads(self._context)

    def __del__(self):
        if getattr(self, "_context", None):
            self._lib.hone_context_destroy(self._context)
        if getattr(self, "_model", None):
            self._lib.hone_model_close(self._model)

    def _check(self, status):
        if status != 0:
            raise HoneError(status, self._lib.hone_last_error().decode())

    def run(self, inputs):
        """Runs once; inputs and result are dicts of name -> array."""
        given = set(inputs)
        wanted = {tensor.name for tensor in self.inputs}
        if given != wanted:
            raise ValueError(f"the model takes the inputs {sorted(wanted)}, not {sorted(given)}")
        arrays = [np.ascontiguousarray(inputs[tensor.name]) for tensor in self.inputs]
        for tensor, array in zip(self.inputs, arrays):
            if array.dtype != tensor.dtype or np.shape(inputs[tensor.name]) != tensor.shape:
                raise ValueError(f"input {tensor}: got {array.dtype}{list(array.shape)}")
        results = [_aligned(tensor.shape, tensor.dtype) for tensor in self.outputs]
        self._check(self._lib.hone_context_run(self._context, _buffers(arrays), len(arrays),
                                               _buffers(results), len(results)))
        return {tensor.name: array for tensor, array in zip(self.outputs, results)}

    def steps(self):
        """[(name, rung, time in ns)] of the last run; needs profile=True for the times (else -1)."""
        steps = []
        for i in range(self._lib.hone_context_step_count(self._context)):
            info = _StepInfo()
            self._check(self._lib.hone_context_step(self._context, i, ctypes.byref(info)))
            steps.append((info.name.decode(), info.rung.decode(), info.time_ns))
        return steps


def _buffers(arrays):
    return (_Buffer * max(len(arrays), 1))(*[_Buffer(a.ctypes.data, a.nbytes) for a in arrays])


def main():
    if len(sys.argv) not in (4, 5):
        print("usage: hone.py MODEL.hone INPUTS.npz OUTPUTS.npz [LIBRARY]", file=sys.stderr)
        return 2
    library = sys.argv[4:] or ["libhone_runtime.so.0"]
    model = Model(sys.argv[1], library=library[0])
    with np.load(sys.argv[2]) as inputs:
        outputs = model.run({tensor.name: inputs[tensor.name] for tensor in model.inputs})
    np.savez(sys.argv[3], **outputs)
    for name, value in outputs.items():
        print(f"{name} {value.dtype}{list(value.shape)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
