"""Hone makes neural networks fast by search.

    import hone

    session = hone.tune("model.onnx", seconds=60)    # into the log; Ctrl-C ends it cleanly
    print(session.verdict)                           # "model: 15.5 → 8.4 ms, 1.85 × faster ..."
    model = hone.compile("model.onnx")               # with the log's best
    y = model(x)                                     # NumPy arrays, or anything of DLPack
    model.save("model.hone")
    model = hone.load("model.hone")

Tuning and compiling run the programs of Hone in processes of their own; running is in this process.
Errors are of the classes below HoneError, one for each exit code of the command line.
docs/PYTHON.md is the guide; `python -m hone.tour` shows it in a minute.
"""
import importlib
import typing

from .errors import (BadInput, DeviceError, DoctorError, Fault, HoneError, Interrupted, LogError,
                     NoSpace, NotInstalled, OutputsDiffer, RecordMissing, ServerError, UsageError)

if typing.TYPE_CHECKING:
    from .farm import Farm, connect
    from .log import Log
    from .model import Model, Tensor, compile, load  # pylint: disable=redefined-builtin
    from .networks import zoo
    from .pruning import Pruned, prune
    from .pytorch import Explanation, FallbackWarning, explain, seen, tune_seen
    from .quantise import Quantised, quantize
    from .session import Progress, Report, Session, Verdict, tune
    from .table import Table

__version__ = "0.1.0"
__all__ = ["BadInput", "DeviceError", "DoctorError", "Explanation", "FallbackWarning", "Farm",
           "Fault", "HoneError", "Interrupted", "Log", "LogError", "Model", "NoSpace",
           "NotInstalled", "OutputsDiffer", "Progress", "Pruned", "Quantised", "RecordMissing",
           "Report", "ServerError", "Session", "Table", "Tensor", "UsageError", "Verdict", "compile",
           "connect", "explain", "load", "prune", "quantize", "seen", "tune", "tune_seen", "zoo"]

# Imported when first asked for: the command of a wheel must not wait for NumPy, nor anyone for torch.
_PLACES = {"Farm": "farm", "connect": "farm", "Log": "log", "Model": "model", "Tensor": "model",
           "compile": "model", "load": "model", "zoo": "networks", "Progress": "session",
           "Report": "session", "Session": "session", "Verdict": "session", "tune": "session",
           "Table": "table", "Explanation": "pytorch", "FallbackWarning": "pytorch",
           "explain": "pytorch", "seen": "pytorch", "tune_seen": "pytorch",
           "Pruned": "pruning", "prune": "pruning", "Quantised": "quantise", "quantize": "quantise"}


def __getattr__(name: str) -> typing.Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hone' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
