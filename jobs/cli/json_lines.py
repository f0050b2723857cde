"""JSON lines from a file (optionally gzipped) or from standard input."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from coordinator_core.errors import InputError

STANDARD_INPUT = Path("-")


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file (``-``: standard input), one from each line.

    Raises:
        InputError: a line is not a JSON object; the message names it.
    """
    if file == STANDARD_INPUT:
        yield from _objects("standard input", sys.stdin)
        return
    with open(file, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    opener = gzip.open if packed else open
    with opener(file, "rt", encoding="utf-8") as lines:
        yield from _objects(str(file), lines)


def _objects(name: str, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            if line.strip():
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise InputError(f"{name}, line {number}: not a JSON object")
                yield value
    except json.JSONDecodeError as cause:
        raise InputError(f"{name}, line {number}: {cause}") from cause
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile) as cause:
        raise InputError(f"{name}, after line {number}: {cause}") from cause
