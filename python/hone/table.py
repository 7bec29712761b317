"""Rows by column name, which pandas can take."""
from __future__ import annotations

import html
from typing import Any

from . import errors


class Table(list[dict[str, Any]]):
    """A list of dicts, one for each row; printed as a table, and so shown in notebooks."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return Table(found) if isinstance(at, slice) else found

    def columns(self) -> list[str]:
        """Names in the order in which the rows bring them, but those of lists and dicts."""
        names: dict[str, None] = {}
        for row in self:
            names.update((key, None) for key, value in row.items() if not _nested(value))
        return list(names)

    def to_pandas(self) -> Any:
        """As a pandas.DataFrame; NotInstalled without pandas."""
        try:
            import pandas  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise errors.NotInstalled("there is no pandas here: pip install pandas") from error
        return pandas.DataFrame(list(self))

    def __str__(self) -> str:
        names = self.columns()
        rows = [names] + [[_cell(row.get(name)) for name in names] for row in self]
        widths = [max(len(row[i]) for row in rows) for i in range(len(names))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
                         for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        names = self.columns()

        def line(tag: str, cells: list[str]) -> str:
            inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr>{inner}</tr>"

        rows = "".join(line("td", [_cell(row.get(name)) for name in names]) for row in self)
        return f"<table>{line('th', names)}{rows}</table>"


def _nested(value: Any) -> bool:
    return isinstance(value, (list, dict)) or (isinstance(value, str) and "\n" in value)


def _cell(value: Any) -> str:
    if value is None or _nested(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
