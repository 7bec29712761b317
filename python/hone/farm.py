"""The same on a farm: whose honed is somewhere else."""
from __future__ import annotations

import os
from typing import Any

from . import model, options, programs, session
from .source import Source
from .table import Table


class Farm:
    """Asks one server; `hone.connect` makes it."""

    def __init__(self, address: dict[str, Any]):
        self._address = address

    def tune(self, network: Any, inputs: Any = None, **how: Any) -> session.Session:
        """hone.tune on the farm's devices."""
        return session.tune(network, inputs, **self._address, **how)

    def compile(self, network: Any, inputs: Any = None, **how: Any) -> model.Model:
        """hone.compile with the farm's records."""
        return model.compile(network, inputs, **self._address, **how)

    def query(self, network: Any, **how: Any) -> Table:
        """Log.query of the farm's log."""
        source = Source(network)
        with options.Words(**self._address, **how) as words:
            return Table(programs.call("query", source.path, *words)["kernels"])

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
