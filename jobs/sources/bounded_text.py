"""Text that people give, as lines and as JSON, within bounds: one mechanism for files of every kind.

A file of a few kilobytes may unpack to gigabytes, one line may be the whole file, and a value of JSON may be nested so
deeply, or be a number so long, that reading it ends in an error of Python or not at all.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from coordinator_core.errors import InputError
from jobs.sources.packed import DAMAGED, opened

MOST_LINE_BYTES: Final = 16 << 20
"""Longer lines are not records: by default, brokers accept batches of up to 1 MB."""

MOST_BYTES: Final = 4 << 30
"""The most that a file may unpack to that is read line by line."""

MOST_WHOLE_BYTES: Final = 256 << 20
"""The most that a file may unpack to that is kept in memory as a whole."""

DEEPEST: Final = 100
"""Nested more deeply is nothing that this software reads."""

LONGEST_NUMBER: Final = 400
"""Digits; the largest number of a format has 20, and a float may be written with some hundred."""

BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
PIECE: Final = 1 << 20
"""Bytes that are unpacked at a time."""


def lines_of(file: Path, most_bytes: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield the lines of a file, which may be packed.

    Raises:
        InputError: the file cannot be read or is not whole, unpacks to more than ``most_bytes``, or has a line of
            ``MOST_LINE_BYTES`` or more.
    """
    number = total = 0
    try:
        with opened(file) as stream:
            while line := stream.readline(MOST_LINE_BYTES):
                number += 1
                total += len(line)
                if len(line) == MOST_LINE_BYTES:
                    raise InputError(f"{file}, line {number}: has {MOST_LINE_BYTES} bytes or more")
                if total > most_bytes:
                    raise InputError(f"{file}: has more than {most_bytes} bytes, unpacked: split it")
                yield line
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{file}: {error.strerror or error}") from error
        raise InputError(f"{file}, after line {number}: {error}") from error


def check_unpacked(file: Path, most_bytes: int = MOST_WHOLE_BYTES) -> None:
    """Raise InputError if a file unpacks to more bytes than may be kept in memory."""
    total = 0
    try:
        with opened(file) as stream:
            while piece := stream.read(PIECE):
                total += len(piece)
                if total > most_bytes:
                    raise InputError(f"{file}: has more than {most_bytes} bytes, unpacked: split it")
    except (*DAMAGED, OSError) as error:
        raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def json_value(text: bytes | str) -> Any:
    """Return a JSON value.

    Raises:
        InputError: the text is not JSON or not UTF-8, is nested too deeply, has a number that is too long, or text that
            is no Unicode.
    """
    try:
        given = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    _check_depth(given)
    try:
        value = json.loads(given, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error}") from None
    # UTF-8 has no surrogates: only an escape can have brought one.
    if "\\u" in given and _has_surrogate(value):
        raise InputError("a text has half of a character (a lone surrogate)")
    return value


def _check_depth(text: str) -> None:
    # Nearly every text has fewer brackets than may be nested: then nothing has to be looked at.
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for bracket in BRACKETS.finditer(text):
        match bracket[0]:
            case "[" | "{":
                depth += 1
                if depth > DEEPEST:
                    raise InputError(f"nested more than {DEEPEST} deep")
            case "]" | "}":
                depth -= 1


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise InputError(f"a number has {len(digits)} digits")
    return int(digits)


def _has_surrogate(value: object) -> bool:
    if isinstance(value, str):
        return LONE_SURROGATE.search(value) is not None
    if isinstance(value, dict):
        return any(_has_surrogate(name) or _has_surrogate(part) for name, part in value.items())
    return isinstance(value, list) and any(map(_has_surrogate, value))
