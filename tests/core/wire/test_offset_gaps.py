"""Offsets without a record: which compaction explains, and which are lost. Tables find the same: ``test_gaps.py``."""

import random
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.wire.batch_format import Damage, DamageKind
from coordinator_core.wire.log_columns import LOG_COLUMNS
from coordinator_core.wire.offset_gaps import OffsetGaps


def row(offset: int, key: str = "", batch: tuple[int, int] | None = None, kind: str = "record") -> dict[str, Any]:
    base, last = batch or (offset, offset)
    found: dict[str, Any] = {
        field.name: {pa.int64(): 0, pa.int32(): 0, pa.int16(): 0, pa.bool_(): False}.get(field.type, "")
        for field in LOG_COLUMNS
        if not field.nullable
    }
    placed = {} if kind == "empty" else {"offset": offset, "key": (key or f"key-{offset}").encode()}
    return found | {"kind": kind, "batch_base_offset": base, "batch_last_offset": last, **placed}


def damage(kind: DamageKind = DamageKind.CRC, last: int = -1) -> Damage:
    return Damage(kind, 0, 1, "cause", b"", last, last)


def columns(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=LOG_COLUMNS)


def gaps(*parts: dict[str, Any] | Damage, from_start: bool = True, is_compacted: bool = True) -> OffsetGaps:
    found = OffsetGaps(from_start=from_start, is_compacted=is_compacted)
    for part in parts:
        if isinstance(part, Damage):
            found.note_damage(part)
        else:
            found.feed(columns(part))
    found.finish()
    return found


@pytest.mark.parametrize(
    ("parts", "missing", "lost"),
    [
        ([row(0), row(1), row(2)], -1, []),
        ([row(0, batch=(0, 5)), row(3, batch=(0, 5)), row(6)], 5, []),
        ([row(0), row(9, batch=(4, 9))], 8, []),
        ([row(0, "a"), row(1, "b"), row(9, "a"), row(10, "a")], 8, []),
        ([row(0, "a"), row(1, "a"), row(9)], 8, [(2, 8, "missing")]),
        ([row(0, "a", (0, 3)), row(1, "a", (0, 3)), row(6, "b", (5, 6))], 5, [(4, 4, "missing")]),
        ([row(0), row(4, batch=(1, 4), kind="empty"), row(5)], 4, []),
        ([row(0), damage(), row(4)], 3, [(1, 3, "damaged")]),
        ([row(0), damage(), row(1)], -1, []),
        ([damage(), row(4)], 3, [(0, 3, "damaged")]),
        ([row(3)], 2, []),
        ([row(0), damage()], 1, [(1, 1, "damaged")]),
        ([row(0), damage(last=7)], 7, [(1, 7, "damaged")]),
        ([row(0), damage(DamageKind.TRUNCATED)], -1, []),
    ],
)
def test_gaps_and_their_cause(parts: list, missing: int, lost: list[tuple[int, int, str]]) -> None:
    found = gaps(*parts)
    assert (found.last_missing_below(None), found.lost) == (missing, lost)


def test_what_came_before_the_first_segment_is_lost() -> None:
    assert gaps(row(5), from_start=False).lost == [(0, 4, "missing")]


def test_a_damaged_beginning_is_told_before_the_first_row() -> None:
    found = OffsetGaps(from_start=True)
    found.note_damage(damage())
    assert found.feed(columns(row(4))) == [0]
    assert OffsetGaps(from_start=False).feed(columns(row(4))) == []


def test_in_a_log_that_is_not_compacted_each_hole_is_a_loss() -> None:
    assert gaps(row(0), row(5), is_compacted=False).lost == [(1, 4, "missing")]


def test_as_seen_from_a_moment() -> None:
    found = gaps(row(0, "a"), row(4, "b"), row(5, "a"), row(9), row(10), damage(), row(20))
    seen = [(found.last_missing_below(end), found.last_lost_below(end)) for end in (1, 3, 6, 8, 15)]
    assert seen == [(-1, -1), (2, -1), (3, -1), (7, 7), (14, 14)]
    assert [found.is_lost_from(end) for end in (8, 15, 20, None)] == [True, True, False, False]
    assert found.last_lost_below(None) == 19


@pytest.mark.parametrize("seed", range(20))
def test_however_the_rows_come_the_gaps_are_the_same(seed: int) -> None:
    chance = random.Random(seed)
    offsets = sorted(chance.sample(range(300), 200))
    rows = [row(offset, f"key-{chance.randrange(150)}") for offset in offsets]
    one = OffsetGaps(from_start=True)
    numbers = one.feed(columns(*rows))
    pieces, found, at = OffsetGaps(from_start=True), [], 0
    while at < len(rows):
        size = chance.randint(1, 40)
        found += [at + number for number in pieces.feed(columns(*rows[at : at + size]))]
        at += size
    assert (pieces.lost, found) == (one.lost, numbers)
    seen: set[bytes] = set()
    expected = []
    has_repeated = False
    for before, after in zip([None, *rows], rows, strict=False):
        if before is not None and after["offset"] > before["offset"] + 1 and has_repeated:
            expected.append((before["offset"] + 1, after["offset"] - 1, "missing"))
        has_repeated |= after["key"] in seen
        seen.add(after["key"])
    assert one.lost == expected


@pytest.mark.parametrize("size", [1, 9])
@pytest.mark.parametrize(
    ("batches", "hidden"),
    [
        ([None, None, None], [False, True, True]),
        ([(0, 0), None, None], [False, True, True]),
        ([None, (5, 5), None], [False, True, True]),
        ([None, (2, 5), None], [False, False, False]),
        ([(0, 0), (5, 5), (6, 6)], [False, False, False]),
    ],
)
def test_a_dump_by_a_consumer_may_hide_the_end_of_a_transaction(
    size: int, batches: list[tuple[int, int] | None], hidden: list[bool]
) -> None:
    """Rows 1, 5 and 6, each in its batch; None: a consumer saw it. Ends below 2 and 3, and that of the log."""
    rows = [row(offset, batch=each or (-1, -1)) for offset, each in zip((1, 5, 6), batches, strict=True)]
    found = OffsetGaps(from_start=True)
    for begin in range(0, len(rows), size):
        found.feed(columns(*rows[begin : begin + size]))
    assert [found.may_hide_ends(end) for end in (2, 3, None)] == hidden
