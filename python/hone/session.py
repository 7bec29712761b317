"""Tuning: starts `hone tune`, follows it, tells its verdict."""
from __future__ import annotations

import html
import io
import json
import os
import pathlib
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import errors, files, options, programs
from .model import Model
from .model import compile as compile_model
from .source import Source
from .table import Table


@dataclass(frozen=True)
class Progress:
    """How far a tuning is. `text` says all of it in a line; what is not known is None."""

    text: str
    seconds: float | None = None  # since it began
    budget_seconds: float | None = None
    candidates: int | None = None  # measured, or known to fail
    default_us: float | None = None  # a run of the model, measured
    predicted_us: float | None = None  # with what was found


@dataclass(frozen=True)
class Verdict:
    """Default and tuned model, run in turns. `str(verdict)` is the command line's sentence."""

    text: str
    word: str | None  # "won", "keeps_defaults"; None: nothing was decided, `text` says why
    default_us: float | None
    tuned_us: float | None
    ratio: float | None  # how many times as fast, with a 95 % interval
    ratio_low: float | None
    ratio_high: float | None

    def __str__(self) -> str:
        return self.text


class Report:
    """The page of `hone report`, shown inline in notebooks; `save` keeps it."""

    def __init__(self, page: str):
        self.page = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, whole or not at all, over what is there. NoSpace: it cannot."""
        files.write_whole(path, io.BytesIO(self.page.encode()))

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.page)}" width="100%" height="700" '
                'style="border:0"></iframe>')


class Session:
    """A tuning; `hone.tune` begins it.

    Iterating gives a Progress about every second until it ends. What it measured stands in the log
    as soon as it is measured, however it ends; the same call goes on where it was interrupted.
    """

    def __init__(self, source: Source, words: options.Words, how: dict[str, Any]):
        self._source, self._how = source, how
        self._changed = threading.Condition()
        self._progress: list[Progress] = []
        self._result: dict[str, Any] | None = None
        self._interrupted: errors.Interrupted | None = None
        self._cancelled = False
        self._words = words
        self._run = programs.Run("tune", source.path, *words.__enter__(), on_line=self._hear)

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)["progress"]
            progress = Progress(**told)
        except (ValueError, KeyError, TypeError):
            progress = Progress(line)
        with self._changed:
            self._progress.append(progress)
            self._changed.notify_all()

    @property
    def over(self) -> bool:
        return self._run.over

    def __iter__(self) -> Iterator[Progress]:
        told = 0
        while True:
            over = self.over  # before the look: what came until then is there
            with self._changed:
                if told == len(self._progress) and not over:
                    self._changed.wait(0.2)
                fresh = self._progress[told:]
            told += len(fresh)
            yield from fresh
            if over and not fresh:
                return

    def wait(self, bar: bool | None = None) -> Session:
        """Waits until it ends; with `bar` (default: on terminals and in notebooks) shows progress.

        Ctrl-C ends the tuning with what was measured and raises Interrupted, whose message says
        whether a usable result exists; what was measured by then is this session's result. Failures
        raise the class of their exit code.
        """
        if self._result is not None:
            return self
        shown = _Bar() if bar or (bar is None and _Bar.fits()) else None
        try:
            for progress in self:
                if shown:
                    shown.show(progress)
        except KeyboardInterrupt:
            self._run.interrupt()
        finally:
            if shown:
                shown.close()
        try:
            with self._source.spoken_of():
                self._result = self._run.wait()
        except errors.Interrupted as error:
            self._result, self._interrupted, error.session = error.result, error, self
            raise
        finally:
            self._words.__exit__()
        return self

    def cancel(self) -> None:
        """Ends it with what was measured, which is then its result."""
        self._cancelled = True
        self._run.interrupt()

    @property
    def result(self) -> dict[str, Any]:
        """What `hone tune --json` printed, when it has ended (waits until then)."""
        try:
            self.wait()
        except errors.Interrupted:
            if not self._cancelled:
                raise
        assert self._result is not None
        return self._result

    @property
    def verdict(self) -> Verdict | None:
        """Default against tuned model (waits until the end). None where a session ended before models
        were compared; a farm compares them with judge=True, and else says that it does not."""
        model = self.result.get("model")
        if not isinstance(model, dict) or not model.get("text"):
            return None
        return Verdict(model["text"].strip(), model["verdict"],
                       *(model.get(key) for key in ("default_us", "tuned_us", "ratio", "ratio_low",
                                                    "ratio_high")))

    @property
    def tasks(self) -> Table:
        """The kernels: name, count, default_us, best_us, trials, roofline_share, ..."""
        return Table(self.result.get("tasks", []))

    @property
    def log(self) -> str | None:
        """The log that has the records; None on a farm."""
        return self.result.get("log")

    def report(self) -> Report:
        """The page about this session: every trial, what won and why. UsageError: on a farm, whose own
        page shows it; Interrupted: it was, before it measured."""
        result = self.result
        if "session" not in result and self._interrupted is not None:
            raise self._interrupted
        if "log" not in result:
            server = shlex.join(options.words(**{key: self._how.get(key) for key in
                                                 ("server", "tls", "insecure_loopback")}))
            raise errors.UsageError(
                "a farm's session is shown by the farm's own page (honed --page-listen), and its kernels by "
                "session.tasks; for a page of every trial, with kernels by their hashes, type: hone db "
                f"snapshot {server} -o farm.db && hone report --db farm.db --session {result['session']}")
        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            path = pathlib.Path(folder, "report.html")
            programs.call("report", "--db", result["log"], "--session", result["session"],
                          "-o", str(path))
            return Report(path.read_text(encoding="utf-8"))

    def compile(self, **more: options.Unpack[options.AgainHow]) -> Model:
        """hone.compile of this model, with the options and the log of this tuning."""
        how = {**self._how, **more}
        if self.log is not None:
            how.setdefault("log", self.log)
        return compile_model(self._source, **how)

    def _repr_html_(self) -> str:
        if not self.over:
            return "<p>tuning ...</p>"
        return f"<p>{html.escape(str(self.verdict or ''))}</p>{self.tasks._repr_html_()}"


class _Bar:
    """One line of standard error, or an output of a notebook's cell, that is written over."""

    _WIDTH = 24

    def __init__(self) -> None:
        self._last, self._cell = 0.0, None
        self._display = None if sys.stderr.isatty() else _notebook()

    @staticmethod
    def fits() -> bool:
        return sys.stderr.isatty() or _notebook() is not None

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < 0.1:
            return
        self._last = now
        line = progress.text
        if progress.seconds is not None and progress.budget_seconds:
            done = min(self._WIDTH, int(self._WIDTH * progress.seconds / progress.budget_seconds))
            line = f"[{'#' * done}{'.' * (self._WIDTH - done)}] {line}"
        if self._display is None:
            cells = max(20, os.get_terminal_size(2).columns - 1) if sys.stderr.isatty() else 100
            sys.stderr.write(f"\r\x1b[K{line[:cells]}")
            sys.stderr.flush()
            return
        page = {"text/plain": line}
        if self._cell is None:
            self._cell = self._display(page, raw=True, display_id=True)
        else:
            self._cell.update(page, raw=True)

    def close(self) -> None:
        if self._display is None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _notebook() -> Any:
    """The display function of a notebook's kernel, if we are in one."""
    try:
        if "IPKernelApp" not in sys.modules["IPython"].get_ipython().config:
            return None
        return sys.modules["IPython"].display.display
    except (KeyError, AttributeError):
        return None


def tune(model: Any, inputs: Any = None, *, seconds: float | None = None,
         trials: int | None = None, wait: bool = True, bar: bool | None = None,
         threads: int | None = None, log: options.Path | None = None, precision: str | None = None,
         dims: options.Dims = None, server: str | None = None,
         **how: options.Unpack[options.TuneHow]) -> Session:
    """Searches for faster schedules of a model's kernels, into the log.

    model: path of an .onnx file, an onnx.ModelProto, or a torch.nn.Module (then `inputs` are its
    example inputs). inputs: {name: array} with which default and tuned model are compared, else
    drawn. seconds, trials: the budget; ten minutes where neither is given. wait=False returns at
    once: iterate over the session, or wait() for it. bar: see Session.wait. threads, log, precision,
    dims, server: see hone.compile; threads are those that the model is to run on. how: shapes, bind,
    cut, target, accuracy, batch, cascades, seed, device_class, cache_mb, and on a farm tls,
    insecure_loopback, judge, project, priority (docs/reference/commands.md#hone-tune).
    Errors: BadInput names operator and node; LogError: the log is busy; DeviceError; ServerError;
    Interrupted: Ctrl-C, and what was measured is kept, in the log and in the error's `session`.
    """
    source = Source(model, inputs)
    kept = inputs if isinstance(inputs, dict) else None
    given = {"threads": threads, "log": log, "precision": precision, "dims": dims, "server": server,
             **how}
    words = options.Words(inputs=kept, seconds=seconds, trials=trials, **given)
    carried = {key: value for key, value in given.items() if key in (
        "dims", "shapes", "bind", "cut", "target", "threads", "accuracy", "precision", "batch",
        "cascades", "device_class", "server", "tls", "insecure_loopback")}
    session = Session(source, words, carried)
    return session.wait(bar) if wait else session
