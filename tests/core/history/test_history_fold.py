"""The fold as a whole: any log, any split, any order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.rows import TABLES
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.history.logs import (
    GROUP,
    GroupLog,
    alone,
    classic,
    commit,
    current,
    epoch,
    generation,
    gone,
    group_gone,
    member,
    target,
    target_epoch,
)
from tests.core.stored import next_history

MEMBERS = st.sampled_from("abc")
PARTITIONS = st.lists(st.integers(0, 3), max_size=4, unique=True)
CHANGES = st.one_of(
    st.builds(member, MEMBERS, st.sampled_from("tu"), instance=st.sampled_from([None, "i"])),
    st.builds(epoch, st.integers(1, 6)),
    st.builds(target_epoch, st.integers(1, 6)),
    st.builds(lambda name, parts: target(name, *parts), MEMBERS, PARTITIONS),
    st.builds(
        lambda name, at, parts, state: current(name, at, *parts, state=state),
        MEMBERS,
        st.integers(-2, 6),
        PARTITIONS,
        st.integers(0, 3),
    ),
    st.builds(
        lambda number, parts: generation(number, {name: classic({"t": parts}) for name in "ab"}),
        st.integers(0, 6),
        PARTITIONS,
    ),
    st.sampled_from([generation(0, {}), (RecordType.GROUP_METADATA, {"group": GROUP}, None), commit("t", 1)]),
    st.sampled_from([*gone("a"), *gone("b"), *gone("c"), *group_gone()]),
)
OPERATIONS = st.lists(st.lists(CHANGES, min_size=1, max_size=5), max_size=12)


def key_of(row):
    table = next(table for table in TABLES if table.row is type(row))
    return (table.name, *(_dotted(row, path) for path in table.key))


def _dotted(row, path):
    for name in path.split("."):
        row = getattr(row, name)
    return row


def feed(fold: GroupFold, records: list[CoordinatorRecord], rows: dict) -> None:
    for record in records:
        for row in fold.feed(record):
            assert not getattr(row, "is_open", False)
            rows[key_of(row)] = row
    for row in fold.open_rows():
        rows[key_of(row)] = row


@given(OPERATIONS, st.lists(st.integers(0, 60), max_size=3))
def test_any_log_in_any_pieces_gives_the_rows_of_one_pass(operations, splits):
    log = GroupLog()
    for changes in operations:
        log.write(*changes)
    whole: dict = {}
    feed(GroupFold(Group(GROUP)), log.records, whole)
    pieces: dict = {}
    night = GroupFold(Group(GROUP))
    bounds = sorted({0, len(log.records), *(split for split in splits if split < len(log.records))})
    for start, end in pairwise(bounds):
        night = next_history(night)
        feed(night, log.records[start:end], pieces)
    assert pieces == whole


def test_records_of_unknown_types_are_passed_by():
    log = alone(GroupLog())
    rows = log.rows()
    log.records.append(log.records[-1]._replace(type=99))
    assert log.rows() == rows
    assert log.violations() == ["unknown_record_type"]


def test_coverage_joins_what_touches():
    coverage = Coverage({0: [(10, 19), (0, 9), (30, 40)]})
    assert coverage.unbroken(0, 0, 19)
    assert not coverage.unbroken(0, 5, 25)
    assert not coverage.unbroken(0, 20, 21)
    assert not coverage.unbroken(1, 0, 0)
    assert coverage.unbroken(0, 31, 40)
