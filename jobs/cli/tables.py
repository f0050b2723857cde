"""Results as tables for people, or as one JSON object a line."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from jobs.plain import number_ranges

Line = Mapping[str, Any]

GAP = "  "
INDENT = " " * 6
"""Of what does not fit beside the other columns, and goes below them."""
NO_BREAK = "\N{NO-BREAK SPACE}"


def print_lines(lines: Sequence[Line], *, as_json: bool, title: str) -> None:
    """The lines as JSON objects, or as one table with the fields of the first line as columns."""
    if as_json:
        for line in lines:
            print_json(line)
    else:
        print_table(title, lines)


def print_json(line: Line) -> None:
    """One object on one line."""
    print(json.dumps(line, ensure_ascii=False))


def print_written(what: str, where: Path, *, as_json: bool) -> None:
    """Where a file was written."""
    if as_json:
        print_json({what: str(where)})
    else:
        print(where)


def print_table(title: str, lines: Sequence[Line]) -> None:
    """A table; columns that are empty in every line are left out.

    On a terminal too narrow for it some columns go below the others, with their names. A pipe or a file gets one line
    a row, however long.
    """
    print(f"{cell(title)} ({len(lines)})")
    for text in _laid_out(lines, terminal_width()):
        print(text)
    print()


def print_text(text: str) -> None:
    """A sentence, which on a terminal is broken between words."""
    width = terminal_width()
    print(text if width is None else _wrapped(text, width, first=""))


def terminal_width() -> int | None:
    """Columns of the terminal that standard output goes to, or what COLUMNS says; None where nothing bounds a line."""
    bounded = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return max(shutil.get_terminal_size().columns, 2 * len(INDENT)) if bounded else None


def _laid_out(lines: Sequence[Line], width: int | None) -> Iterator[str]:
    """The head of the table and its rows, each followed by its values that are not in columns."""
    names = [name for name in (lines[0] if lines else ()) if any(line[name] is not None for line in lines)]
    rows = [{name: cell(line[name]) for name in names} for line in lines]
    widths = {name: max(map(cell_len, (name, *(row[name] for row in rows)))) for name in names}
    beside = _fitting(widths, width)
    numbers = {name for name in beside if all(isinstance(line[name], int | float | None) for line in lines)}

    def in_columns(row: Mapping[str, str]) -> str:
        return "".join(GAP + _padded(row[name], widths[name], right=name in numbers) for name in beside).rstrip()

    if names:
        yield ""
        yield in_columns({name: name for name in names})
        yield GAP + "-" * (sum(widths[name] + len(GAP) for name in beside) - len(GAP))
    for row in rows:
        yield in_columns(row)
        below = [f"{name}: {row[name]}" for name in names if name not in beside and row[name] != "-"]
        if below and width is not None:
            whole = (each.replace(" ", NO_BREAK) if len(each) < width / 2 else each for each in below)
            yield _wrapped((2 * GAP).join(whole), width, first=INDENT).replace(NO_BREAK, " ")


def _fitting(widths: Mapping[str, int], width: int | None) -> list[str]:
    """The columns that fit beside each other, in their order; the first one always does."""
    chosen: list[str] = []
    used = 0
    for name, own in widths.items():
        if width is None or not chosen or used + len(GAP) + own <= width:
            chosen.append(name)
            used += len(GAP) + own
    return chosen


def _padded(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def _wrapped(text: str, width: int, *, first: str) -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=INDENT, break_on_hyphens=False)


def cell(value: Any) -> str:
    """A value as the text of a cell, ``-`` for nothing; what a client named cannot steer the terminal."""
    if value is None or value == "":
        return "-"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(value))


def ranges(topic_partitions: Iterable[str]) -> str:
    """``topic-partition`` names, shortened: ``orders 0-3,7 payments 1``."""
    by_topic: dict[str, list[int]] = {}
    for each in topic_partitions:
        topic, _, partition = each.rpartition("-")
        by_topic.setdefault(topic, []).append(int(partition))
    return " ".join(f"{topic} {number_ranges(by_topic[topic])}" for topic in sorted(by_topic))


def utc(timestamp_ms: int | None) -> str | None:
    """A time in ISO 8601, to the millisecond."""
    if timestamp_ms is None:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # a time that a client made up
        return f"{timestamp_ms} ms"
