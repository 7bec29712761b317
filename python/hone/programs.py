"""The programs `hone` and `hone-worker`: where they are, and one run of them."""
from __future__ import annotations

import atexit
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from typing import Any

from . import errors

INSIDE = pathlib.Path(__file__).parent / "_hone"  # what a wheel brings: bin/, libexec/, lib/
GRACE_SECONDS = 10  # a tuning ends itself 5 s after SIGINT


def find(name: str) -> str:
    """The program's path: inside this package, else in the folder $HONE_BIN, else in the PATH."""
    folder = os.environ.get("HONE_BIN")
    inside = INSIDE / "bin" / name
    if inside.exists():
        return str(inside)
    found = shutil.which(name, path=folder) if folder else shutil.which(name)
    if found:
        return found
    where = f"the folder '{folder}' that HONE_BIN names" if folder else "any folder of PATH"
    raise errors.NotInstalled(
        f"there is no program '{name}' in {where}, and none inside this package ({INSIDE}): install "
        f"the wheel or the package hone, or set HONE_BIN to the folder where '{name}' is")


ending = threading.Event()  # the interpreter ends, and so do the programs that it started


class Run:
    """A program that runs, in a session of its own: Ctrl-C comes to us alone, and we pass it on once.

    Lines of its standard error go to `on_line`, in a thread of ours, as they come.
    """

    _running: weakref.WeakSet[Run] = weakref.WeakSet()

    def __init__(self, *words: str, on_line: Callable[[str], None] | None = None):
        self.words = words
        self._lines: list[str] = []
        self._on_line = on_line
        self._owner = os.getpid()
        self._output = tempfile.TemporaryFile()
        environment = dict(os.environ)
        if "onnxruntime" in words:  # --against: that of this Python
            environment["PATH"] = (os.path.dirname(sys.executable) + os.pathsep +
                                   environment.get("PATH", os.defpath))
        self._process = subprocess.Popen([find("hone"), *words, "--json"], env=environment,
                                         stdin=subprocess.DEVNULL, stdout=self._output,
                                         stderr=subprocess.PIPE, start_new_session=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        Run._running.add(self)

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            for raw in stream:
                line = raw.decode(errors="replace").rstrip("\n")
                self._lines.append(line)
                if self._on_line:
                    self._on_line(line)

    @property
    def over(self) -> bool:
        return self._process.poll() is not None and not self._reader.is_alive()

    def interrupt(self) -> None:
        """Asks it to end with what it has, as Ctrl-C does, and waits until it has ended."""
        if os.getpid() != self._owner or self._process.poll() is not None:
            return  # a child after fork has no say
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait(self) -> dict[str, Any]:
        """Its JSON object. Ctrl-C ends it and raises Interrupted; a failure its own class."""
        try:
            status = self._process.wait()
        except KeyboardInterrupt:
            self.interrupt()
            if (status := self._process.returncode) == 0:
                raise  # it was done before it heard of it
        except BaseException:
            self.interrupt()
            raise
        self._reader.join()
        self._output.seek(0)
        printed = self._output.read().decode(errors="replace")
        try:
            result = json.loads(printed)
        except ValueError:
            result = {}
        if status == 0:
            return result
        said = result.pop("error", {}).get("message", "") if isinstance(result, dict) else ""
        if status < 0:
            name = signal.Signals(-status).name
            last = "\n".join(self._lines[-5:])
            raise errors.Fault(f"hone {' '.join(self.words)} was killed by {name}; {last}", result)
        kind = errors.OF_EXIT_CODE.get(status, errors.Fault)
        raise kind(said or "\n".join(self._lines[-5:]) or f"hone ended with {status}", result)

    @staticmethod
    @atexit.register
    def _end_all() -> None:
        ending.set()
        for run in list(Run._running):
            run.interrupt()


def call(*words: str) -> dict[str, Any]:
    """The JSON object that `hone WORDS --json` prints."""
    return Run(*words).wait()


def main() -> None:
    """The command that pip installs: becomes the program of the same name."""
    name = pathlib.Path(sys.argv[0]).name
    try:
        program = find(name)
    except errors.NotInstalled as error:
        sys.exit(f"{name}: error: {error}")
    os.execv(program, [program, *sys.argv[1:]])
