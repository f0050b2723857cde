"""Columns of text joined from parts, many rows at once.

A part is one string for all rows (Const), a few words and a code for each row (Coded), or one string per row (Plain).
Parts that are next to each other are combined as long as few distinct combinations can arise, so that most of the
joining is done once for many rows. The rest is joined in one pass: the words of all parts are placed side by side, and
Arrow takes those of the first row, of the second, and so on, which gives the text as it will be written.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

WORTH = 16
"""Parts are combined if that makes the number of distinct words this many times smaller than the number of rows."""

SHORT_RANGE = 1024
"""Whole numbers within such a range, or one much shorter than the column, are coded by their distance to the least."""

LAST_DIGITS = 10_000
"""Long columns of numbers from here on are put together from their last four digits, and what stands before."""

MANY_ROWS = LAST_DIGITS

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


def integers(column: pa.Array) -> list[Part]:
    """Return integers in decimal, ``null`` for nulls."""
    if column.null_count:
        return [_with_nulls(combined(integers(column.fill_null(0)), len(column)), column)]
    values = column.to_numpy()
    coded = _coded_integers(values)
    if coded is not None:
        return [coded]
    if len(values) >= MANY_ROWS and values.min() >= 0:
        front = values // LAST_DIGITS
        coded = _coded_integers(front)
        if coded is not None:
            # 1234567 is "123" and "4567"; 5 is "" and "5". The second half of the words has leading zeros, for rows
            # with a front. Two small dictionaries stand for as many words as there are numbers.
            has_front = front > 0
            back = values - front * LAST_DIGITS + has_front * LAST_DIGITS
            return [replaced(coded, ~has_front, ""), Coded(_last_digits(), back.astype(np.int32))]
    return [Plain(column.cast(TEXT))]


def _coded_integers(values: NDArray[np.integer]) -> Const | Coded | None:
    """None where neither few numbers can occur nor equal ones stand together."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if low == high:
        return Const(str(low))
    if high - low < max(SHORT_RANGE, len(values) // 8):
        return Coded(pa.array(np.arange(low, high + 1)).cast(TEXT), (values - low).astype(np.int32))
    # Rows of one batch or partition stand together: a word for each run may do where the range is too long.
    starts, codes = _runs(values[1:] != values[:-1])
    return Coded(pa.array(values[starts]).cast(TEXT), codes) if 4 * len(starts) <= len(values) else None


@cache
def _last_digits() -> pa.Array:
    """The numbers below LAST_DIGITS as they are, then with leading zeros."""
    return pa.array([f"{number}" for number in range(LAST_DIGITS)] + [f"{number:04}" for number in range(LAST_DIGITS)])


def booleans(column: pa.Array) -> Part:
    """``true`` and ``false``, ``null`` for nulls."""
    values = column.fill_null(False).to_numpy(zero_copy_only=False)
    return _with_nulls(_coded(pa.array(["false", "true"]), values.astype(np.int32)), column)


def strings(column: pa.Array) -> list[Part]:
    """JSON strings, ``null`` for nulls."""
    if column.null_count or _needs_escapes(column):
        return [words(column)]
    return [Const('"'), Plain(column), Const('"')]


def words(column: pa.Array) -> Part:
    """Return JSON strings of which few are distinct, ``null`` for nulls."""
    return _by_word(column, _quoted)


def base64(column: pa.Array) -> Part:
    """Return bytes as JSON strings of base64, ``null`` for nulls."""
    return _by_word(
        column, lambda words: pa.array([f'"{b64encode(word).decode()}"' for word in words.to_pylist()], TEXT)
    )


def names(of: Sequence[str], codes: NDArray[np.integer]) -> Part:
    """Return a part whose row i has ``of[codes[i]]`` unchanged."""
    return _coded(pa.array(of, TEXT), codes.astype(np.int32))


def _coded(words: pa.Array, codes: NDArray[np.int32]) -> Const | Coded:
    """A single part where all rows have the same word."""
    if len(codes) and (codes == codes[0]).all() and len(words):
        return Const(words[int(codes[0])].as_py())
    return Coded(words, codes)


def replaced(part: Part, where: Mask, text: str) -> Part:
    """Return the part with ``text`` in the rows of a mask."""
    if not where.any():
        return part
    if isinstance(part, Coded):
        # One more word, and its code in these rows: the texts of the others are not touched.
        words = pa.concat_arrays([part.words, pa.array([text], TEXT)])
        return Coded(words, np.where(where, np.int32(len(part.words)), part.codes))
    if isinstance(part, Const):
        return Coded(pa.array([part.text, text], TEXT), where.astype(np.int32))
    return Plain(pc.if_else(pa.array(where), text, part.rows))


def optional(before: str, part: Part, behind: str, absent: Sequence[str]) -> Part:
    """Return the part between two strings; empty text in rows that have one of the ``absent`` texts."""

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
    """Return the same text in fewer parts; ``count`` is the number of rows."""
    fewer: list[Part] = []
    for part in parts:
        both = _fold(fewer[-1], part, count) if fewer else None
        fewer[-1:] = [both] if both is not None else [*fewer[-1:], part]
    return fewer


def combined(parts: Iterable[Part], count: int) -> Part:
    """Return the same text as one part."""
    fewer = folded(parts, count)
    return fewer[0] if len(fewer) == 1 else Plain(_laid_out(fewer, count).rows())


def column(parts: Iterable[Part], count: int) -> pa.Array:
    """Return the same text as a string column."""
    return laid_out(parts, count).rows()


@dataclass(frozen=True, slots=True)
class Text:
    """Row i has the text of ``words[pieces[i, 0]]``, ``words[pieces[i, 1]]`` and so on, one after the other."""

    words: pa.Array
    pieces: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.pieces)

    def rows(self, low: int = 0, high: int | None = None) -> pa.StringArray:
        """Return rows ``low`` to ``high`` as a string column."""
        wanted = self.pieces[low:high]
        edges, content = self._taken(wanted)
        # The pieces of a row stand together, so each n-th edge is the end of a row.
        ends = np.ascontiguousarray(edges[:: wanted.shape[1]])
        return pa.StringArray.from_buffers(len(wanted), pa.py_buffer(ends), content)

    def on_end(self, low: int, high: int) -> memoryview:
        """Return the bytes of rows ``low`` to ``high``, one row after the other."""
        edges, content = self._taken(self.pieces[low:high])
        return memoryview(content)[: edges[-1]]

    def _taken(self, pieces: NDArray[np.int32]) -> tuple[NDArray[np.int32], pa.Buffer]:
        # No bounds are checked: the numbers of the pieces are those of words that were laid out here.
        taken = pc.take(self.words, pa.array(pieces.ravel()), boundscheck=False)
        _, offsets, content = taken.buffers()
        return np.frombuffer(offsets, np.int32)[: pieces.size + 1], content


def laid_out(parts: Iterable[Part], count: int) -> Text:
    """Return the parts, folded, as the text of ``count`` rows."""
    return _laid_out(folded(parts, count), count)


def _laid_out(parts: Sequence[Part], count: int) -> Text:
    # The words of all parts become one array: ``base`` is where those of a part begin in it.
    pieces = np.empty((count, len(parts)), np.int32)
    words: list[pa.Array] = []
    base = 0
    for place, part in enumerate(parts):
        match part:
            case Const(text):
                words.append(pa.array([text], TEXT))
                pieces[:, place] = base
            case Coded(distinct, codes):
                words.append(distinct)
                np.add(codes, np.int32(base), out=pieces[:, place])
            case Plain(rows):
                words.append(rows)
                pieces[:, place] = np.arange(base, base + count, dtype=np.int32)
        base += len(words[-1])
    return Text(pa.concat_arrays(words), pieces)


def merged(texts: Sequence[tuple[NDArray[np.int64], Text]], count: int) -> Text:
    """Return one text of all ``count`` rows from texts of some rows each, given with the numbers of these rows."""
    # Texts of fewer pieces than others are filled up with word 0, which is empty.
    nothing = 0
    pieces = np.full((count, max((text.pieces.shape[1] for _, text in texts), default=1)), nothing, np.int32)
    words = [pa.array([""], TEXT)]
    base = 1
    for rows, text in texts:
        pieces[rows, : text.pieces.shape[1]] = text.pieces + np.int32(base)
        words.append(text.words)
        base += len(text.words)
    return Text(pa.concat_arrays(words), pieces)


def _with_nulls(part: Part, column: pa.Array) -> Part:
    if not column.null_count:
        return part
    return replaced(part, column.is_null().to_numpy(zero_copy_only=False), "null")


def _fold(first: Part, second: Part, count: int) -> Part | None:
    """Two neighbours as one part; None if that would be no gain."""
    match first, second:
        case Const(), Const():
            return Const(first.text + second.text)
        case Const(), Coded():
            return Coded(_join(first.text, second.words), second.codes) if WORTH * len(second.words) <= count else None
        case Coded(), Const():
            return Coded(_join(first.words, second.text), first.codes) if WORTH * len(first.words) <= count else None
        case Coded(), Coded():
            return _fold_coded(first, second, count)
    return None


def _fold_coded(first: Coded, second: Coded, count: int) -> Coded | None:
    """Every pair of words where there are few pairs; else the pairs that occur, where equal rows stand together."""
    first_words, second_words = len(first.words), len(second.words)
    if WORTH * first_words * second_words <= count:  # the code of a pair has two digits
        left = first.words.take(pa.array(np.repeat(np.arange(first_words), second_words)))
        right = second.words.take(pa.array(np.tile(np.arange(second_words), first_words)))
        return Coded(_join(left, right), first.codes * np.int32(second_words) + second.codes)
    starts, codes = _runs((first.codes[1:] != first.codes[:-1]) | (second.codes[1:] != second.codes[:-1]))
    if WORTH * len(starts) > count:
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
        # Where most values differ a dictionary only costs: they are converted as they stand.
        return Plain(convert(column))
    words = convert(coded.dictionary)
    return _with_nulls(_coded(words, coded.indices.fill_null(0).to_numpy()), column)


def _needs_escapes(strings: pa.Array) -> bool:
    """Whether a string has a character that JSON does not take as it is."""
    # Of a slice this is the buffer of the whole array: at worst words are looked at one by one in vain.
    content = np.frombuffer(strings.buffers()[2] or b"", np.uint8)
    return bool((content < 0x20).any() or (content == 0x22).any() or (content == 0x5C).any())


def _quoted(words: pa.Array) -> pa.Array:
    if not _needs_escapes(words):
        return _join('"', words, '"')
    return pa.array([json.dumps(word, ensure_ascii=False) for word in words.to_pylist()], TEXT)
