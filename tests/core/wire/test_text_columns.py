"""Text put together a column at a time equals text put together row by row."""

import json
from base64 import b64encode

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.wire import text_columns
from coordinator_core.wire.text_columns import Coded, Const, Plain

int64s = st.integers(-(2**63), 2**63 - 1)
words = st.text(alphabet=st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["", "a", 'q"\\', "\x00\x1f", "☃"])


def rows_of(found, count):
    """The rows of one part, or of several next to each other."""
    return text_columns.column(found if isinstance(found, list) else [found], count).to_pylist()


@given(st.lists(st.none() | int64s | st.integers(0, 9), min_size=1, max_size=60))
def test_integers(values):
    expected = ["null" if value is None else str(value) for value in values]
    assert rows_of(text_columns.integers(pa.array(values, pa.int64())), len(values)) == expected


def test_integers_that_stand_in_runs_or_close_together_are_coded():
    for numbers, kinds in (
        ([10**9] * 50 + [10**12] * 50, [Coded]),
        (range(1000), [Coded]),
        (range(0, 10**9, 10**6), [Plain]),
        (range(0, 10**9, 10**4), [Plain]),
        (range(0, 10**7, 10**2), [Coded, Coded]),
    ):
        assert [type(part) for part in text_columns.integers(pa.array(numbers))] == kinds


@pytest.mark.parametrize("first", [0, 9_999, 10**12 - 7, 2**63 - 10**8])
def test_many_integers(first):
    values = list(range(first, first + 10**8, 9_973))
    assert rows_of(text_columns.integers(pa.array(values, pa.int64())), len(values)) == list(map(str, values))
    assert rows_of(text_columns.integers(pa.array([None, *values], pa.int64())), 1 + len(values))[:2] == [
        "null",
        str(first),
    ]


@given(st.lists(st.none() | words, min_size=1, max_size=40))
def test_strings(values):
    expected = [json.dumps(value, ensure_ascii=False) for value in values]
    for found in (
        text_columns.strings(pa.array(values, pa.string())),
        text_columns.words(pa.array(values, pa.string())),
    ):
        assert rows_of(found, len(values)) == expected


@given(st.lists(st.none() | st.binary(max_size=4), min_size=1, max_size=40))
def test_base64(values):
    expected = ["null" if value is None else f'"{b64encode(value).decode()}"' for value in values]
    assert rows_of(text_columns.base64(pa.array(values, pa.binary())), len(values)) == expected


def test_booleans():
    assert rows_of(text_columns.booleans(pa.array([True, False, None])), 3) == ["true", "false", "null"]


@st.composite
def parts(draw):
    count = draw(st.integers(1, 40))
    found = []
    for kind in draw(st.lists(st.sampled_from("ncrp"), min_size=1, max_size=6)):
        if kind == "n":
            found.append(Const(draw(words)))
        elif kind == "c":
            of = draw(st.lists(words, min_size=1, max_size=5))
            codes = draw(st.lists(st.integers(0, len(of) - 1), min_size=count, max_size=count))
            found.append(text_columns.names(of, np.array(codes)))
        elif kind == "r":
            runs = sorted(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
            found += text_columns.integers(pa.array([10**15 * run for run in runs]))
        else:
            found.append(Plain(pa.array(draw(st.lists(words, min_size=count, max_size=count)), text_columns.TEXT)))
    return count, found


@given(parts(), st.data())
def test_folding_changes_no_text(drawn, data):
    count, found = drawn
    expected = ["".join(pieces) for pieces in zip(*(rows_of(part, count) for part in found), strict=True)]
    assert text_columns.column(found, count).to_pylist() == expected
    rows = np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count)))
    chosen = [text_columns.picked(part, rows) for part in text_columns.folded(found, count)]
    assert text_columns.column(chosen, len(rows)).to_pylist() == [expected[row] for row in rows]


@pytest.mark.parametrize(
    "part", [Const("b"), text_columns.names(["a", "b"], np.array([1, 1, 0])), Plain(pa.array(["b", "b", "a"]))]
)
def test_optional_and_replaced_parts(part):
    before = rows_of(part, 3)
    framed = text_columns.optional("<", part, ">", ["a", "c"])
    assert rows_of(framed, 3) == ["" if text == "a" else f"<{text}>" for text in before]
    where = np.array([True, False, False])
    assert rows_of(text_columns.replaced(part, where, "x"), 3) == ["x", *before[1:]]
    assert text_columns.replaced(part, np.zeros(3, np.bool_), "x") is part


@given(parts(), st.data())
def test_texts_of_some_rows_each_merge_into_one(drawn, data):
    count, found = drawn
    whole = text_columns.laid_out(found, count)
    first = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    halves = [
        (rows, text_columns.laid_out([text_columns.picked(part, rows) for part in found], len(rows)))
        for rows in (np.flatnonzero(first), np.flatnonzero(~first))
        if len(rows)
    ]
    halves.append((np.arange(count, count + 2), text_columns.laid_out([Const("1 "), Plain(pa.array(["a", "b"]))], 2)))
    merged = text_columns.merged(halves, count + 3)
    expected = [*whole.rows().to_pylist(), "1 a", "1 b", ""]
    assert merged.rows().to_pylist() == expected
    assert bytes(merged.on_end(1, count + 3)).decode() == "".join(expected[1:])
    assert bytes(text_columns.merged([], count).on_end(0, count)) == b""
