"""Columns of text put together from parts, many rows at once.

A part is one string for all rows (Const), a few words and which row has which (Coded), or one string a row (Plain).
Parts that stand next to each other are folded as long as few distinct combinations can arise, so that most of the
joining is done once for many rows; what is left is joined by Arrow in one pass.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

FEW_WORDS = 4096
"""Parts are combined word by word as long as there are no more combinations than this."""

SHORT_RANGE = 1024
"""Whole numbers within such a range are coded by their distance to the least."""

TEXT = pa.string()

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Const:
    """The same text in every row."""

    text: str


@dataclass(frozen=True, slots=True)
class Coded:
    """Row i has the text ``words[codes[i]]``."""

    words: pa.Array
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Plain:
    """Row i has the text ``rows[i]``."""

    rows: pa.Array


Part = Const | Coded | Plain


def integers(column: pa.Array) -> Part:
    """Whole numbers in decimal, ``null`` for nulls."""
    if column.null_count:
        return _with_nulls(integers(column.fill_null(0)), column)
    values = column.to_numpy()
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low < SHORT_RANGE:
        return Coded(pa.array(range(low, high + 1)).cast(TEXT), (values - low).astype(np.int32))
    starts, codes = _runs(values[1:] != values[:-1])
    if 4 * len(starts) <= len(values):
        return Coded(pa.array(values[starts]).cast(TEXT), codes)
    return Plain(column.cast(TEXT))


def booleans(column: pa.Array) -> Part:
    """``true`` and ``false``, ``null`` for nulls."""
    values = column.fill_null(False).to_numpy(zero_copy_only=False)
    return _with_nulls(Coded(pa.array(["false", "true"]), values.astype(np.int32)), column)


def strings(column: pa.Array) -> Part:
    """JSON strings, ``null`` for nulls."""
    return _by_word(column, _quoted)


def base64(column: pa.Array) -> Part:
    """Bytes as JSON strings of base64, ``null`` for nulls."""
    return _by_word(
        column, lambda words: pa.array([f'"{b64encode(word).decode()}"' for word in words.to_pylist()], TEXT)
    )


def names(words: Sequence[str], codes: NDArray[np.integer]) -> Part:
    """Row i has ``words[codes[i]]``, as it is."""
    return Coded(pa.array(words, TEXT), codes.astype(np.int32))


def replaced(part: Part, where: Mask, text: str) -> Part:
    """The part with ``text`` in the rows of a mask."""
    if not where.any():
        return part
    if isinstance(part, Coded):
        words = pa.concat_arrays([part.words, pa.array([text], TEXT)])
        return Coded(words, np.where(where, np.int32(len(part.words)), part.codes))
    rows = part.rows if isinstance(part, Plain) else part.text
    return Plain(pc.if_else(pa.array(where), text, rows))


def optional(before: str, part: Part, behind: str, absent: Sequence[str]) -> Part:
    """The part between two strings; nothing at all in rows that have one of the ``absent`` texts."""

    def framed(column: pa.Array) -> pa.Array:
        return pc.if_else(pc.is_in(column, pa.array(absent, TEXT)), "", _join(before, column, behind))

    match part:
        case Const(text):
            return Const("" if text in absent else before + text + behind)
        case Coded(words, codes):
            return Coded(framed(words), codes)
        case Plain(rows):
            return Plain(framed(rows))


def picked(part: Part, rows: NDArray[np.int64]) -> Part:
    """Some rows of a part."""
    match part:
        case Coded(words, codes):
            return Coded(words, codes[rows])
        case Plain(whole):
            return Plain(whole.take(pa.array(rows)))
    return part


def folded(parts: Iterable[Part], count: int) -> list[Part]:
    """The same text in fewer parts, ``count`` being the number of rows."""
    found: list[Part] = []
    for part in parts:
        both = _fold(found[-1], part, count) if found else None
        found[-1:] = [both] if both is not None else [*found[-1:], part]
    return found


def combined(parts: Iterable[Part], count: int) -> Part:
    """The same text as one part."""
    found = folded(parts, count)
    return found[0] if len(found) == 1 else Plain(_join(*map(_column, found)))


def column(parts: Iterable[Part], count: int) -> pa.Array:
    """The same text as a string column."""
    whole = combined(parts, count)
    return pa.array([whole.text] * count, TEXT) if isinstance(whole, Const) else _column(whole)


def _with_nulls(part: Part, column: pa.Array) -> Part:
    if not column.null_count:
        return part
    return replaced(part, column.is_null().to_numpy(zero_copy_only=False), "null")


def _column(part: Part) -> pa.Array | pa.Scalar:
    if isinstance(part, Const):
        return pa.scalar(part.text)
    return part.rows if isinstance(part, Plain) else part.words.take(pa.array(part.codes))


def _fold(first: Part, second: Part, count: int) -> Part | None:
    """Two neighbours as one part; None if that would be no gain."""
    match first, second:
        case Const(), Const():
            return Const(first.text + second.text)
        case Const(), Coded():
            return Coded(_join(first.text, second.words), second.codes) if 2 * len(second.words) <= count else None
        case Coded(), Const():
            return Coded(_join(first.words, second.text), first.codes) if 2 * len(first.words) <= count else None
        case Coded(), Coded():
            return _fold_coded(first, second, count)
    return None


def _fold_coded(first: Coded, second: Coded, count: int) -> Coded | None:
    """Every pair of words where there are few pairs; else the pairs that occur, where equal rows stand together."""
    ours, theirs = len(first.words), len(second.words)
    if ours * theirs <= min(FEW_WORDS, count):
        left = first.words.take(pa.array(np.repeat(np.arange(ours), theirs)))
        right = second.words.take(pa.array(np.tile(np.arange(theirs), ours)))
        return Coded(_join(left, right), first.codes * np.int32(theirs) + second.codes)
    starts, codes = _runs((first.codes[1:] != first.codes[:-1]) | (second.codes[1:] != second.codes[:-1]))
    if 4 * len(starts) > count:
        return None
    left, right = (part.words.take(pa.array(part.codes[starts])) for part in (first, second))
    return Coded(_join(left, right), codes)


def _runs(changes: Mask) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Where runs of equal rows begin, and the number of each row's run, given where row i + 1 differs from row i."""
    codes = np.zeros(len(changes) + 1, np.int32)
    np.cumsum(changes, out=codes[1:])
    return np.concatenate([[0], np.flatnonzero(changes) + 1]), codes


def _join(*columns: pa.Array | pa.Scalar | str) -> pa.Array:
    return pc.binary_join_element_wise(*columns, "")


def _by_word(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> Part:
    """Converts distinct values only, if they are clearly fewer than the rows."""
    coded = column.dictionary_encode()
    if 2 * len(coded.dictionary) > len(column) and not column.null_count:
        return Plain(convert(column))
    words = convert(coded.dictionary)
    return _with_nulls(Coded(words, coded.indices.fill_null(0).to_numpy()), column)


def _quoted(words: pa.Array) -> pa.Array:
    content = np.frombuffer(words.buffers()[2] or b"", np.uint8)
    if not ((content < 0x20) | (content == 0x22) | (content == 0x5C)).any():
        return _join('"', words, '"')
    return pa.array([json.dumps(word, ensure_ascii=False) for word in words.to_pylist()], TEXT)
