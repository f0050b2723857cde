"""Output of results: tables for people, or one JSON object per line.

Tables are made to fit a terminal: what all rows share is said once, times and ids get shorter, long texts wrap.
Elsewhere nothing is shortened, and not filled up: there is a tab between two columns.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console as Terminal
from rich.console import JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from coordinator_core.cluster.clocks import utc_as
from jobs.formatting import json_text, number_ranges, visible
from jobs.secret_values import redacted

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
            # Measured without a bound: within one the table would be folded, and always fit.
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
            # By one character each time, so that the widest columns end up equally wide.
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


Line = Mapping[str, Any]


def print_lines(lines: Sequence[Line], *, as_json: bool, title: str) -> None:
    """Print the lines as JSON objects, or as one table whose columns are the fields of the first line."""
    if as_json:
        for line in lines:
            print_json(line)
    else:
        print_table(title, lines)


def print_json(line: Line) -> None:
    """Print one object on one line."""
    print(json_text(line))


def print_written(key: str, where: Path, *, as_json: bool) -> None:
    """Print where a file was written."""
    if as_json:
        print_json({key: str(where)})
    else:
        print(where)


def print_table(title: str, lines: Sequence[Line]) -> None:
    """Print a table. A column that only some lines have is empty in the others. Columns that are empty in every line
    are left out.

    On a terminal the table is made to fit; if that is impossible, each line is printed as a block with one row for each
    field. In a pipe or a file each line is one row, whatever its length, with a tab between two columns.
    """
    terminal = _terminal()
    every = dict.fromkeys(name for line in lines for name in line)
    lines = [{name: line.get(name) for name in every} for line in lines]
    names = [name for name in every if any(line[name] is not None for line in lines)]
    terminal.print(f"{cell(redacted(title))} ({len(lines)})")
    if not lines:
        return
    cells = {name: [cell(line[name]) for line in lines] for name in names}
    if not _is_bounded():
        for row in (names, *zip(*cells.values(), strict=True)):
            print("\t".join(row))
        return
    numbers = frozenset(name for name in names if all(isinstance(line[name], int | float | None) for line in lines))
    if not TerminalTable(dict(cells), numbers).print(terminal):
        print_blocks(terminal, [dict(zip(names, row, strict=True)) for row in zip(*cells.values(), strict=True)], names)


def print_text(text: str) -> None:
    """Print a sentence; on a terminal, line breaks are between words."""
    _terminal().print(Text(cell(text)))


def _terminal() -> Terminal:
    """Return the output; its width is that of the terminal, or COLUMNS; otherwise lines are not limited."""
    return Terminal(width=None if _is_bounded() else UNBOUNDED, highlight=False, markup=False, emoji=False)


def _is_bounded() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()


def cell(value: object) -> str:
    """Return a value as text, ``-`` for an empty one. Control characters in ids are escaped."""
    if value is None or value == "":
        return EMPTY
    return visible(str(value))


def ranges(topic_partitions: Iterable[str]) -> str:
    """Return ``topic-partition`` names in short form: ``orders 0-3,7 payments 1``."""
    by_topic: dict[str, list[int]] = {}
    for name in topic_partitions:
        topic, _, partition = name.rpartition("-")
        by_topic.setdefault(topic, []).append(int(partition))
    return " ".join(f"{topic} {number_ranges(by_topic[topic])}" for topic in sorted(by_topic))


def utc(timestamp_ms: int | None) -> str | None:
    """Return a time in ISO 8601, to the millisecond; one outside the calendar as a number of ms.

    None: there is none, as of a record without a time.
    """
    return None if timestamp_ms is None else utc_as(timestamp_ms, lambda time: time.isoformat(timespec="milliseconds"))
