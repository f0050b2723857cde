"""JSON lines from a file (optionally gzipped) or from standard input: cases and traces."""

import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from coordinator_core.cluster.image import MOST_PARTITIONS
from coordinator_core.errors import InputError
from jobs.sources.bounded_text import MOST_LINE_BYTES, json_value, lines_of

STANDARD_INPUT = Path("-")


def read_lines(file: Path) -> Iterator[dict[str, object]]:
    """Yield the JSON objects of a file (``-``: standard input), one from each line.

    Raises:
        InputError: a line is not a JSON object, or a topic in it has more partitions than can be; the message names it.
    """
    if file == STANDARD_INPUT:
        lines = iter(lambda: sys.stdin.readline(MOST_LINE_BYTES), "")
        yield from _objects("standard input", takewhile(bool, lines))
    else:
        yield from _objects(str(file), lines_of(file))


def _objects(name: str, lines: Iterable[bytes | str]) -> Iterator[dict[str, object]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json_value(line)
            if not isinstance(value, dict):
                raise InputError("not a JSON object")
            _check_counts(value)
        except InputError as error:
            raise InputError(f"{name}, line {number}: {error}") from None
        yield value


def _check_counts(value: object) -> None:
    """Raise InputError for a number of partitions that no topic has: they would be listed one by one."""
    if isinstance(value, list):
        for entry in value:
            _check_counts(entry)
    elif isinstance(value, dict):
        for name, field in value.items():
            if name == "partitions" and isinstance(field, int) and field > MOST_PARTITIONS:
                raise InputError(f"{field} partitions, but a topic has at most {MOST_PARTITIONS}")
            _check_counts(field)
