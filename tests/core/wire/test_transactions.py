"""Outcomes of transactions: by markers, across holes, after compaction."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.control import ABORT, COMMIT
from coordinator_core.wire.log_columns import LOG_COLUMNS
from coordinator_core.wire.transactions import Marker, TransactionOutcome, holes, markers, outcomes
from tests.core.wire.other_batches import encode_empty_batch, encode_marker_batch
from tests.core.wire.segments import reader


def data(offset, producer, epoch, count=1, *, transactional=True):
    records = [NewRecord(offset + at, 1, b"k", b"v") for at in range(count)]
    return encode_batch(records, producer=Producer(producer, epoch, 0), transactional=transactional)


def end(offset, producer, epoch, control_type):
    return encode_marker_batch(control_type, 7, offset=offset, timestamp=1, producer=Producer(producer, epoch))


def columns(*batches):
    segment = b"".join(batches)
    parts = list(read_columns(reader(segment), len(segment)))
    return pa.Table.from_batches(parts, LOG_COLUMNS).combine_chunks().to_batches()[0]


def told(log, **options):
    return outcomes(log, markers(log), **options).to_pylist()


LOG = columns(
    data(0, 1, 0, 2),
    data(2, 2, 0),
    data(3, 9, 0, transactional=False),
    end(4, 1, 1, COMMIT),
    data(5, 1, 1),
    end(6, 2, 1, ABORT),
    data(7, 3, 5),
    end(8, 1, 2, ABORT),
)


def test_the_next_marker_of_the_producer_decides():
    expected = ["committed", "committed", "aborted", None, None, "aborted", None, "open", None]
    assert told(LOG) == expected


def test_markers_are_found_with_their_place():
    assert markers(LOG) == [
        Marker(1, 1, 4, TransactionOutcome.COMMITTED),
        Marker(2, 1, 6, TransactionOutcome.ABORTED),
        Marker(1, 2, 8, TransactionOutcome.ABORTED),
    ]


def test_the_same_log_decided_part_by_part_in_any_order():
    ends = markers(LOG)
    parts = [LOG.slice(at, 2) for at in range(0, LOG.num_rows, 2)]
    assert [name for part in parts for name in outcomes(part, ends[::-1]).to_pylist()] == told(LOG)


def test_across_a_hole_nothing_is_known():
    assert told(LOG, holes=[3]) == ["unknown", "unknown", "unknown", None, None, "aborted", None, "open", None]
    assert told(LOG, holes=[7])[5:] == ["unknown", None, "unknown", None]


def test_holes_lie_between_batches():
    log = columns(data(0, 1, 0, 2), data(5, 1, 0), encode_empty_batch(6, 9), data(11, 1, 0), end(12, 1, 1, COMMIT))
    assert holes(log) == [2, 10]
    assert told(log, holes=holes(log)) == ["unknown", "unknown", "unknown", None, "committed", None]
    assert holes(LOG) == holes(LOG.slice(0, 0)) == []


def test_without_markers_all_is_open():
    assert outcomes(LOG, []).to_pylist() == ["open", "open", "open", None, None, "open", None, "open", None]


def test_a_marker_of_a_lower_epoch_does_not_decide():
    assert told(columns(data(0, 1, 5), end(1, 1, 4, COMMIT))) == ["unknown", None]


def test_an_emptied_control_batch_ends_a_transaction_without_saying_how():
    emptied = encode_empty_batch(1, 1, producer=Producer(1, 1), transactional=True, control=True)
    log = columns(data(0, 1, 0), emptied, data(2, 1, 1), end(3, 1, 2, COMMIT))
    assert told(log) == ["unknown", None, "committed", None]


steps = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["data", COMMIT, ABORT])), max_size=40)


@given(steps)
def test_outcomes_agree_with_a_plain_walk(drawn):
    batches, expected, pending = [], [], {}
    for offset, (producer, what) in enumerate(drawn):
        expected.append(None)
        if what == "data":
            batches.append(data(offset, producer, 0))
            pending.setdefault(producer, []).append(offset)
            expected[offset] = "open"
        else:
            batches.append(end(offset, producer, 0, what))
            for decided in pending.pop(producer, []):
                expected[decided] = "committed" if what == COMMIT else "aborted"
    if batches:
        assert told(columns(*batches)) == expected
