"""Damaged segments: what is damaged is reported with its place, cause and bytes; nothing else is lost."""

import random
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError, LogFormatError
from coordinator_core.wire import framing
from coordinator_core.wire.batch_format import Damage, DamageKind
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import encode_batch
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.framing import layout
from tests.core.wire.segments import message, reader, records, rows_of, segment

WHOLE = segment(5, 3)
STARTS = layout(reader(WHOLE), len(WHOLE), 1).edges


def offsets(rows):
    return [row.offset for row in rows if isinstance(row, LogRecord)]


def damages(rows):
    return [row for row in rows if isinstance(row, Damage)]


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
def test_truncation_at_every_byte(cut):
    rows = rows_of(WHOLE[:cut])
    whole = sum(1 for end in STARTS[1:] if end <= cut)
    assert offsets(rows) == list(range(3 * whole))
    tail = cut - STARTS[whole]
    if not WHOLE[STARTS[whole] : cut].strip(b"\0"):  # nothing, or zeros as in a preallocated file
        assert damages(rows) == []
    else:
        (damage,) = damages(rows)
        assert (damage.kind, damage.position, damage.size) == (DamageKind.TRUNCATED, STARTS[whole], tail)
        assert damage.data == WHOLE[STARTS[whole] : cut]
        assert "the file ends within" in damage.cause


@pytest.mark.parametrize("at", range(len(WHOLE)))
def test_a_flipped_byte_costs_its_batch_and_nothing_else(at):
    flipped = bytearray(WHOLE)
    flipped[at] ^= 0xFF
    hit = max(index for index, start in enumerate(STARTS[:-1]) if start <= at)
    rows = rows_of(bytes(flipped))
    in_batch = at - STARTS[hit]
    if in_batch < 8 or 12 <= in_batch < 16:  # the CRC does not cover base offset and leader epoch
        assert len(offsets(rows)) >= 12
        return
    assert offsets(rows) == [offset for offset in range(15) if offset // 3 != hit]
    (damage,) = damages(rows)
    assert (damage.position, damage.size) == (STARTS[hit], STARTS[hit + 1] - STARTS[hit])
    assert damage.data == bytes(flipped[damage.position : damage.position + damage.size])


def test_two_damaged_batches_are_two_reports():
    flipped = bytearray(WHOLE)
    flipped[STARTS[1] + 70] ^= 1
    flipped[STARTS[2] + 70] ^= 1
    found = damages(rows_of(bytes(flipped)))
    assert [(damage.kind, damage.position) for damage in found] == [
        (DamageKind.CRC, STARTS[1]),
        (DamageKind.CRC, STARTS[2]),
    ]
    assert [(damage.base_offset, damage.last_offset) for damage in found] == [(3, 5), (6, 8)]


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(WHOLE)))
def test_whatever_is_done_to_a_segment_both_readers_agree_and_account_for_every_byte(changes, cut):
    changed = bytearray(WHOLE)
    for at, octet in changes:
        changed[at] = octet
    data = bytes(changed[:cut])
    intact = [start for start, end in pairwise(STARTS) if end <= cut and data[start:end] == WHOLE[start:end]]
    if not intact:
        return  # it may then be refused as no log at all: see the next test
    rows = rows_of(data)
    assert set(intact) <= {row.batch.position for row in rows if isinstance(row, LogRecord)}
    covered = {
        (row.position, row.size) if isinstance(row, Damage) else (row.batch.position, row.batch.size) for row in rows
    }
    assert sum(size for _, size in covered) == len(data) or data[sum(size for _, size in covered) :].strip(b"\0") == b""


def test_random_bytes_are_never_anything_but_a_log_format_error_or_damage():
    chance = random.Random(7)
    for _ in range(3000):
        data = bytearray(chance.randbytes(chance.randrange(200)))
        if len(data) > 16 and chance.random() < 0.8:
            data[0] = 0
            data[16] = chance.randrange(4)
            data[8:12] = struct.pack(">i", chance.randrange(-5, 200))
        try:
            rows = rows_of(bytes(data))
        except LogFormatError:
            continue
        assert all(isinstance(row, Damage) for row in rows)


@pytest.mark.parametrize("zeros", [1, 11, 12, 17, 61, 5000])
def test_a_preallocated_tail_of_zeros_is_no_damage(zeros):
    rows = rows_of(WHOLE + bytes(zeros))
    assert (len(offsets(rows)), damages(rows)) == (15, [])


def test_zeros_between_batches_are_damage():
    rows = rows_of(WHOLE + bytes(100) + encode_batch(records(15, 2)))
    assert offsets(rows) == list(range(17))
    assert [(damage.position, damage.size) for damage in damages(rows)] == [(len(WHOLE), 100)]


def test_an_empty_file_and_one_of_zeros_hold_nothing():
    assert rows_of(b"") == []
    assert rows_of(bytes(4096)) == []


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04 this is an archive and no log at all", b"just text", b"\x89PNG\r\n" * 50]
)
def test_a_file_that_is_no_log_is_an_error_that_names_it(data):
    with pytest.raises(LogFormatError) as caught:
        list(read_rows(reader(data), len(data), name="some.log"))
    assert str(caught.value) == "some.log at byte 0: no record batch begins here: the file is not a log segment"
    with pytest.raises(LogFormatError, match=r"some\.log at byte 0"):
        list(read_columns(reader(data), len(data), name="some.log"))


def test_a_newer_magic_is_named():
    newer = bytearray(encode_batch(records(0, 1)))
    newer[16] = 3
    rows = rows_of(segment(1) + bytes(newer))
    assert [damage.cause for damage in damages(rows)] == ["magic 3 is none of 0, 1, 2"]


def test_a_length_beyond_the_bound_is_named(monkeypatch):
    monkeypatch.setattr(framing, "MAX_BATCH_BYTES", 300)
    rows = rows_of(encode_batch(records(100, 10)))
    assert ["larger than the 300 that are accepted" in damage.cause for damage in damages(rows)] == [True]


def test_the_search_for_the_next_batch_gives_up_in_the_end(monkeypatch):
    monkeypatch.setattr(framing, "SEARCH_CRC_BYTES", 10)
    rows = rows_of(segment(1) + b"\1" * 20 + segment(1))
    assert offsets(rows) == [0, 1, 2]
    assert [damage.size for damage in damages(rows)] == [20 + len(segment(1))]


def test_the_bytes_of_damage_are_kept_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(framing, "MAX_DAMAGE_BYTES", 50)
    (damage,) = damages(rows_of(segment(1) + b"\1" * 200))
    assert (damage.size, len(damage.data)) == (200, 50)


def test_batches_after_garbage_are_found_across_chunks(monkeypatch):
    monkeypatch.setattr(framing, "CHUNK_BYTES", 128)
    rows = rows_of(segment(2) + b"\1" * 1000 + encode_batch(records(6, 3)))
    assert offsets(rows) == list(range(9))


def test_a_file_that_shrinks_while_it_is_read_ends_there():
    rows = list(read_rows(reader(WHOLE), len(WHOLE) + 1000))
    assert offsets(rows) == list(range(15))


@pytest.mark.parametrize("reads", range(1, 6))
@pytest.mark.parametrize("left", [0, 3, 90])
def test_a_file_that_shrinks_while_damage_is_looked_at_is_named(monkeypatch, reads, left):
    """After so many reads only these bytes are there."""
    monkeypatch.setattr(framing, "CHUNK_BYTES", 400)
    data, done = b"\1" * 700 + bytes(40), []

    def read_at(position, size):
        done.append(position)
        return (data if len(done) <= reads else data[:left])[position : position + size]

    with pytest.raises(InputError, match=r"the file shrank while it was read \(\d+ of ") as raised:
        list(read_rows(read_at, len(data), name="0.log"))
    assert str(raised.value).startswith(f"0.log at byte {done[-1]}: ")
    assert len(done) == reads + 1


def test_a_layout_of_a_file_that_shrinks_names_it():
    shrunk = iter([WHOLE, WHOLE[:9]])
    with pytest.raises(InputError, match=r"0\.log at byte 0: the file shrank while it was read \(9 of 17 bytes"):
        layout(lambda position, size: next(shrunk)[position : position + size], len(WHOLE), 0, name="0.log")


@pytest.mark.parametrize("every", [1, 200, 400, 10_000])
def test_ranges_between_boundaries_give_the_same_records(every):
    data = segment(20, 4) + message(80, b"k", b"v", magic=1, timestamp=5) + bytes(30)
    edges = layout(reader(data), len(data), every).edges
    assert edges[0] == 0
    assert edges[-1] == len(data)
    parts = [list(read_rows(reader(data), len(data), *edge)) for edge in pairwise(edges)]
    assert [row for part in parts for row in part] == rows_of(data)


def test_no_boundary_is_set_where_a_damaged_batch_begins():
    flipped = bytearray(WHOLE)
    flipped[STARTS[2] + 70] ^= 1
    found = layout(reader(bytes(flipped)), len(flipped), 1)
    assert found.edges == [edge for edge in STARTS if edge != STARTS[2]]
    assert layout(reader(b"no log"), 6, 1).edges == [0, 6]
    assert layout(reader(b""), 0, 1) == ([0], -1, True, -1)


@pytest.mark.parametrize(
    ("behind", "is_clear"), [(b"", True), (bytes(40), True), (b"\1" * 40, False), (WHOLE[:70], False), (b"\0\1", False)]
)
@pytest.mark.parametrize("count", [1, 9, 2000])
def test_a_layout_says_the_highest_offset_and_what_follows_the_batches(count, behind, is_clear):
    """More batches than one chunk of the walk has."""
    data = segment(count, 4) + behind
    found = layout(reader(data), len(data), 1 << 30)
    assert found[:3] == ([0, len(data)], 4 * (count - 1), is_clear)
    if is_clear:
        assert found.last_at == (len(segment(count - 1, 4)) if count > 1 else 0)
