"""Output of results: tables for people, or one JSON object per line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console as Terminal
from rich.text import Text

from coordinator_core.cluster.clocks import utc_as
from jobs.cli.terminal_table import EMPTY, UNBOUNDED, TerminalTable, print_blocks
from jobs.formatting import json_text, number_ranges, visible
from jobs.secret_values import redacted

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
