"""Tables that fit a terminal: what all rows share is said once, times and ids get shorter, long texts wrap.

Output that does not go to a terminal is never shortened, and not filled up: it has a tab between two columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console as Terminal
from rich.console import JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Cells = dict[str, list[str]]
"""The columns of a table by name, each with the text of every row."""

EMPTY: Final = "-"
NARROWEST: Final = 8
"""The smallest width to which a column of text is folded."""
READABLE: Final = 40
"""The smallest width of a column of sentences beside others: narrower ones are printed below their row."""
GAP: Final = 2
"""The space between two columns of a folded table."""
INDENT: Final = 4
"""How far a text is indented that is printed below its row."""
UNBOUNDED: Final = 1 << 20
"""Line width of output that does not go to a terminal."""

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d\.\d{3})\+00:00")
_UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
# 22 characters of base 64, among them upper and lower case: other words of that length have one case.
_KAFKA_ID = re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])([\w-]{8})[\w-]{14}(?![\w-])")


class TerminalTable:
    """A table of texts, made to fit a width. ``numbers`` are the columns of numbers, which are never folded."""

    def __init__(self, cells: Cells, numbers: frozenset[str]) -> None:
        self.cells = cells
        self.numbers = numbers
        self.notes: list[str] = []
        self.unfolded = set(numbers)

    def print(self, terminal: Terminal) -> bool:
        """Print the table with its notes, in the fullest form that fits. Return False if none does."""
        for shorten in (None, self._say_shared_once, self._shorten_times, self._shorten_ids):
            if shorten is not None:
                shorten()
            whole = self._whole()
            if terminal.measure(whole, options=terminal.options.update(max_width=UNBOUNDED)).maximum <= terminal.width:
                self._print_notes(terminal)
                terminal.print(whole)
                return True
        return self._print_folded(terminal, {}) or self._print_folded(terminal, self._sentences())

    def _whole(self) -> Table:
        table = Table(box=SIMPLE, pad_edge=False)
        for name in self.cells:
            table.add_column(name, justify=self._justify(name), overflow="fold")
        for row in zip(*self.cells.values(), strict=True):
            table.add_row(*map(Text, row))
        return table

    def _print_folded(self, terminal: Terminal, below: Cells) -> bool:
        """Print the table with long texts folded; the columns ``below`` are printed below their row.

        Return False if it does not fit.
        """
        beside = {name: column for name, column in self.cells.items() if name not in below}
        widths = self._widths(beside, terminal.width)
        if widths is None:
            return False
        self._print_notes(terminal)
        terminal.print()
        self._print_row(terminal, widths, [Text(name, style="bold") for name in beside])
        terminal.print(Text("─" * (sum(widths.values()) + GAP * (len(widths) - 1))))
        for number in range(len(next(iter(self.cells.values())))):
            self._print_row(terminal, widths, [Text(column[number]) for column in beside.values()])
            for name, column in below.items():
                if column[number] != EMPTY:
                    text = column[number] if len(below) == 1 else f"{name}: {column[number]}"
                    terminal.print(Padding(Text(text), (0, 0, 0, INDENT)))
        terminal.print()
        return True

    def _print_row(self, terminal: Terminal, widths: Mapping[str, int], row: Sequence[Text]) -> None:
        grid = Table.grid(padding=(0, GAP, 0, 0))
        for name, width in widths.items():
            grid.add_column(width=width, justify=self._justify(name), overflow="fold", vertical="top")
        grid.add_row(*row)
        terminal.print(grid)

    def _widths(self, cells: Cells, width: int) -> dict[str, int] | None:
        """Return the width of each column so that all fit: the widest texts are folded first. None if they do not."""
        heads = {name: max(map(cell_len, name.split())) for name in cells}
        widths = {name: max(heads[name], *map(cell_len, column)) for name, column in cells.items()}
        least = {
            name: widths[name] if name in self.unfolded else min(widths[name], max(heads[name], _narrowest(column)))
            for name, column in cells.items()
        }
        excess = sum(widths.values()) + GAP * (len(widths) - 1) - width
        while excess > 0:
            widest = max((name for name in widths if widths[name] > least[name]), key=widths.__getitem__, default=None)
            if widest is None:
                return None
            widths[widest] -= 1
            excess -= 1
        return widths

    def _sentences(self) -> Cells:
        return {name: column for name, column in self.cells.items() if _are_sentences(column)}

    def _justify(self, name: str) -> JustifyMethod:
        return "right" if name in self.numbers else "left"

    def _print_notes(self, terminal: Terminal) -> None:
        for note in self.notes:
            terminal.print(Text(note, style="dim"))

    def _say_shared_once(self) -> None:
        """Take out columns that are the same in every row, except the first, by which rows are named."""
        first, *others = self.cells
        shared = [name for name in others if len(set(self.cells[name])) == 1]
        if len(self.cells[first]) < 2 or not shared:
            return
        self.notes.append("in every row: " + ", ".join(f"{name} {self.cells.pop(name)[0]}" for name in shared))

    def _shorten_times(self) -> None:
        """Leave out the zone, and the date if all times of the table have the same."""
        times = [name for name, column in self.cells.items() if _are_times(column)]
        dates = {match[1] for name in times for cell in self.cells[name] if (match := _TIME.fullmatch(cell))}
        if not dates:
            return
        form = r"\2" if len(dates) == 1 else r"\1 \2"
        self.unfolded.update(times)
        for name in times:
            self.cells[name] = [_TIME.sub(form, cell) for cell in self.cells[name]]
        self.notes.append(f"times: {dates.pop()}, UTC" if len(dates) == 1 else "times: UTC")

    def _shorten_ids(self) -> None:
        """Shorten ids that Kafka makes (uuids) to their beginning, if different ones stay different."""
        for name, column in self.cells.items():
            if name in self.numbers:
                continue
            short = [_KAFKA_ID.sub(r"\1…", _UUID.sub(r"\1…", cell)) for cell in column]
            if short != column and len(set(short)) == len(set(column)):
                self.cells[name] = short


def _narrowest(column: Sequence[str]) -> int:
    """Return the smallest width to which texts are folded: sentences stay readable, names and addresses whole."""
    longest = max((cell_len(word) for cell in column for word in cell.split()), default=0)
    return max(longest, READABLE if _are_sentences(column) else NARROWEST)


def _are_sentences(column: Sequence[str]) -> bool:
    return any(cell.count(" ") > 3 for cell in column)


def _are_times(column: Sequence[str]) -> bool:
    return any(map(_TIME.fullmatch, column)) and all(
        _TIME.fullmatch(cell) or not any(map(str.isdigit, cell)) for cell in column
    )


def print_blocks(terminal: Terminal, lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Print each line as a block with one row for each field that is not empty."""
    for line in lines:
        fields = Table.grid("", "", padding=(0, 2))
        for name in names:
            if line[name] != EMPTY:
                fields.add_row(name, Text(line[name], overflow="fold"))
        terminal.print("", fields, sep="\n")
