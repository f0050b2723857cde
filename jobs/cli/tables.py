"""Results as tables for people, or as one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console as Terminal
from rich.markup import escape
from rich.table import Table

from jobs.plain import number_ranges

Line = Mapping[str, Any]


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
    """A table; columns that are empty in every line are left out."""
    columns = [name for name in (lines[0] if lines else ()) if any(line[name] is not None for line in lines)]
    table = Table(title=f"{escape(title)} ({len(lines)})", title_justify="left", box=SIMPLE)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*(cell(line[column]) for column in columns))
    Terminal().print(table)


def cell(value: Any) -> str:
    """A value as the text of a cell, ``-`` for nothing."""
    if value is None or value == "":
        return "-"
    return escape(str(value))


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
