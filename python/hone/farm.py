"""The same on a farm: whose honed is somewhere else."""
from __future__ import annotations

import os
from typing import Any

from . import log, model, options, programs, session
from .table import Table


class Farm:
    """Asks one server; `hone.connect` makes it."""

    def __init__(self, address: dict[str, Any]):
        self._address = address

    def tune(self, network: Any, inputs: Any = None, *, seconds: float | None = None,
             trials: int | None = None, wait: bool = True, bar: bool | None = None,
             threads: int | None = None, precision: str | None = None, dims: options.Dims = None,
             **how: options.Unpack[options.FarmTuneHow]) -> session.Session:
        """hone.tune on the farm's devices. judge=True: a device compares the whole model too, which
        gives the verdict; without it a farm compares kernels only. Also: project, priority."""
        return session.tune(network, inputs, seconds=seconds, trials=trials, wait=wait, bar=bar,
                            threads=threads, precision=precision, dims=dims, **self._address, **how)

    def compile(self, network: Any, inputs: Any = None, *, output: options.Path | None = None,
                threads: int | None = None, precision: str | None = None, dims: options.Dims = None,
                **how: options.Unpack[options.FarmCompileHow]) -> model.Model:
        """hone.compile with the farm's records."""
        return model.compile(network, inputs, output=output, threads=threads, precision=precision,
                             dims=dims, **self._address, **how)

    def query(self, network: Any, inputs: Any = None, *, threads: int | None = None,
              precision: str | None = None, dims: options.Dims = None,
              **how: options.Unpack[options.ModelHow]) -> Table:
        """Log.query of the farm's log."""
        return log.query(network, inputs, threads=threads, precision=precision, dims=dims,
                         **self._address, **how)

    def stats(self) -> dict[str, Any]:
        """Log.stats of the farm's log."""
        return programs.call("db", "stats", *options.words(**self._address))

    def best(self, workload: str = "") -> Table:
        """Log.best of the farm's log, which is copied into a file for temporary ones first."""
        return log.best(workload, *options.words(**self._address))

    def sessions(self) -> Table:
        """The tuning sessions of the farm."""
        return Table(programs.call("session", "list", *options.words(**self._address))["sessions"])


def connect(server: str, *, tls: str | os.PathLike[str] | None = None,
            insecure_loopback: bool = False) -> Farm:
    """A farm whose honed is at `server` ("host" or "host:7421"), asked once whether it is there.

    tls: folder with your ca.pem, cert.pem and key.pem (docs/FARM.md). ServerError: it is away, or
    refuses you.
    """
    farm = Farm({"server": server, "tls": None if tls is None else os.fspath(tls),
                 "insecure_loopback": insecure_loopback})
    farm.sessions()
    return farm
