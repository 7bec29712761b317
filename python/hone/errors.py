"""What can go wrong: one class for each exit code of `hone` (docs/TROUBLESHOOTING.md)."""
from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from .session import Session


class HoneError(Exception):
    """A failure. `str(error)` is the command line's message: what, where, why, what to do.

    `exit_code` is what `hone` ended with, or would have; `result` what it printed with `--json`
    before it failed ({} where it printed nothing).
    """

    exit_code = 1

    def __init__(self, message: str, result: dict[str, typing.Any] | None = None):
        super().__init__(message)
        self.result = result or {}


class Fault(HoneError):
    """A fault in Hone, or a program of it that was killed; the message says what to report."""


class UsageError(HoneError, ValueError):
    """An argument that does not exist, or has a bad value."""

    exit_code = 2


class BadInput(HoneError, ValueError):
    """A model, file or array that is absent, damaged, unsupported or does not fit."""

    exit_code = 3


class RecordMissing(HoneError):
    """A required tuning record is missing (`require=`)."""

    exit_code = 4


class LogError(HoneError):
    """The log is busy, damaged or from a newer Hone."""

    exit_code = 5


class ServerError(HoneError):
    """The server is unreachable, or refused."""

    exit_code = 6


class Interrupted(HoneError, KeyboardInterrupt):
    """Ctrl-C, or a cancelled session; the message says whether a usable result exists. `session` is
    the hone.Session of a tuning, with the verdict, kernels and report of what was measured."""

    exit_code = 7
    session: Session | None = None


class DeviceError(HoneError):
    """Device, instruction set, driver or sandbox is absent."""

    exit_code = 8


class NoSpace(HoneError):
    """No space, memory or permission."""

    exit_code = 9


class OutputsDiffer(HoneError):
    """Outputs differ from what was expected."""

    exit_code = 10


class DoctorError(HoneError):
    """`hone doctor` found a fault."""

    exit_code = 11


class NotInstalled(HoneError, ImportError):
    """A program or library of Hone, or a Python package that an argument needs, is missing."""


OF_EXIT_CODE: dict[int, type[HoneError]] = {
    1: Fault, 2: UsageError, 3: BadInput, 4: RecordMissing, 5: LogError, 6: ServerError,
    7: Interrupted, 8: DeviceError, 9: NoSpace, 10: OutputsDiffer, 11: DoctorError}

# hone_status of include/hone/hone.h, by the mapping of the command line.
OF_STATUS: dict[int, type[HoneError]] = {
    3: BadInput, 5: BadInput, 7: NoSpace, 8: NoSpace, 9: DeviceError, 11: BadInput, 15: BadInput}
