"""Records of groups and of the share state log at a moment, from random rows: what Python finds among them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import pytest

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, RecordType
from coordinator_core.wire.record_codec import encode_key
from jobs.queries.from_tables import stored_moment
from jobs.queries.from_tables.commits import GroupKey
from jobs.queries.from_tables.selection import Selection
from jobs.queries.from_tables.stored_moment import RECORD, GroupRecords, UnreadKeys
from jobs.relations.log_extent import Extents, StoredLogExtent
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from tests.jobs.relations.engines import write

Row = dict[str, Any]
GROUP_PLACES: Final = [(GROUP_LOG, 0), (GROUP_LOG, 1), (GROUP_LOG, 2), (CONNECT_LOG, 0)]
SHARE_PLACES: Final = [(SHARE_LOG, 0), (SHARE_LOG, 1), (SHARE_LOG, 2)]
OFFSETS: Final = 24
UPDATE: Final = SHARE_SNAPSHOT + 1
"""Any other type of record."""
UNREAD_KEY: Final = encode_key(RecordType.OFFSET_COMMIT, {"group": "g", "topic": "t", "partition": 0})


def at(place: tuple[str, int], offset: int) -> Row:
    return {"log_topic": place[0], "log_partition": place[1], "log_offset": offset, "timestamp_ms": offset}


def made(chance: Random) -> tuple[list[Row], list[Row], list[Row]]:
    """Records of groups, those that cannot be decoded, and all positions of the logs; some offsets are missing."""
    records, unread, positions = list[Row](), list[Row](), list[Row]()
    for place in (*GROUP_PLACES, *SHARE_PLACES):
        for offset in range(OFFSETS):
            row = at(place, offset)
            if chance.random() < 0.15:
                continue
            positions.append({**row, "kind": chance.choice(("record", "record", "control"))})
            if chance.random() < 0.1:
                told = {"group_id": "g", "record_type": RecordType.OFFSET_COMMIT.value, "key": UNREAD_KEY}
                unread.append({**row, "part": "value", **told})
            elif chance.random() < 0.85:
                kind, group = chance.choice((SHARE_SNAPSHOT, UPDATE)), chance.choice("gh")
                key = kind.to_bytes(2, "big") + f"{group}{chance.randrange(2)}".encode()
                records.append({**row, "group_id": group, "record_type": kind, "key": key, "value": b"v"})
    return records, unread, positions


def not_counted(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows elsewhere: of another cluster, of another log, and without a place; later and earlier ones."""
    for row in rows:
        for shift in (-50, -1, 0, 1, 50):
            moved = {**row, "log_offset": row["log_offset"] + shift}
            yield from ({**moved, **other} for other in ({"cluster": "other"}, {"log_topic": "another"}))
            yield {**moved, "log_partition": None}
        yield {**row, "log_offset": None}


RECORDS, UNREAD, POSITIONS = made(Random(3))
TOMBSTONES: Final = [
    {**at(place, offset), "group_id": group, "topic": topic, "partition": 0, "is_tombstone": is_tombstone}
    for place in GROUP_PLACES
    for offset, group, topic, is_tombstone in (
        *((2, "g", "t", True), (5, "g", "t", True), (6, "g", "t", False), (9, "g", "t", True)),
        *((4, "g", "u", True), (7, "h", "t", True)),
    )
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    home = tmp_path_factory.mktemp("moment")
    rows = {GROUP_RECORDS: RECORDS, QUARANTINE: UNREAD, LOG_RECORDS: POSITIONS, OFFSET_COMMITS: TOMBSTONES}
    others = {table: list(not_counted(of_table)) for table, of_table in rows.items()}
    others[LOG_RECORDS] += [{**at(place, OFFSETS + 9), "kind": "empty"} for place in SHARE_PLACES]
    all_rows = {table: [*others[table], *of_table] for table, of_table in rows.items()}
    write(home, {table: [{"cluster": "c", **row} for row in of_table] for table, of_table in all_rows.items()})
    return FolderReader(str(home))


ENDS: Final = {"the end": [None] * 4, "offsets": [6, 20, None, 11]}
GAPS: Final = [LogGaps(3), LogGaps(), LogGaps(9, 9), LogGaps(7)]


def extents_of(places: list[tuple[str, int]], ends: str) -> Extents:
    parts = zip(places, ENDS[ends], GAPS, strict=False)
    return {place: StoredLogExtent(end=end, gaps=gaps) for place, end, gaps in parts}


def place_of(row: Row) -> tuple[str, int]:
    return row["log_topic"], row["log_partition"]


def before(rows: Iterable[Row], extents: Extents, group_id: str | None = None) -> list[Row]:
    """The rows before the end of these log partitions, of one group or all."""
    here = [row for row in rows if (extent := extents.get(place_of(row))) and row["log_offset"] < (extent.end or 99)]
    return [row for row in here if group_id in (None, row.get("group_id"))]


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("ends", ENDS)
def test_records_of_groups(tables: FolderReader, ends: str, group_id: str | None) -> None:
    extents = extents_of(GROUP_PLACES, ends)
    found = GroupRecords(Selection(tables, "c", GROUP_TOPICS, group_id), extents)
    some = before(RECORDS, extents, group_id)
    by_group: dict[GroupKey, list[tuple[Any, ...]]] = defaultdict(list)
    for row in sorted(some, key=lambda row: (row["group_id"], *place_of(row), row["log_offset"])):
        by_group[(*place_of(row), row["group_id"])].append(tuple(row.get(name) for name in RECORD.split(", ")))
    rows = [(key, [tuple(row.values()) for row in of_group]) for key, of_group in found.by_group()]
    assert rows == list(by_group.items())
    later: dict[GroupKey, set[bytes]] = defaultdict(set)
    for row in RECORDS:
        extent = extents.get(place_of(row))
        follows = extent is not None and extent.end is not None and row["log_offset"] >= extent.end
        if extent is not None and follows and extent.gaps.missing >= 0 and group_id in (None, row["group_id"]):
            later[(*place_of(row), row["group_id"])].add(row["key"])
    keys = found.later_keys()
    assert {group: sorted(of_group) for group, of_group in keys.items()} == {
        group: sorted(of_group) for group, of_group in later.items()
    }


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("ends", ENDS)
def test_commits_that_cannot_be_read_count_behind_the_last_tombstone(
    tables: FolderReader, ends: str, group_id: str | None
) -> None:
    extents = extents_of(GROUP_PLACES[:3], ends)
    found = UnreadKeys(Selection(tables, "c", [GROUP_LOG], group_id), extents)
    last: dict[tuple[GroupKey, TopicPartition], int] = {}
    for row in before(TOMBSTONES, extents):
        if row["is_tombstone"] and row["group_id"] == "g":
            last[(*place_of(row), "g"), TopicPartition(row["topic"], 0)] = row["log_offset"]
    assert found._removed == last


class Calls:
    """What is said to a state log, in order."""

    def __init__(self, **given: Any) -> None:
        self.calls: list[Any] = []

    def lose(self, partition: int) -> None:
        self.calls.append(partition)

    def apply(self, row: Row) -> None:
        self.calls.append((row["log_partition"], row["log_offset"], row["key"]))


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("ends", ENDS)
def test_records_of_the_share_state_log(
    tables: FolderReader, ends: str, group_id: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each share partition since its last snapshot, with what is missing before each; unreadable ones, too."""
    monkeypatch.setattr(stored_moment, "ShareStateLog", Calls)
    monkeypatch.setattr(stored_moment, "record_of", lambda row, decoder: row)
    extents = extents_of(SHARE_PLACES, ends)
    stored = stored_moment.StoredShareLog(Selection(tables, "c", GROUP_TOPICS, group_id), None)
    stored.__dict__.update(_extents=extents, given=SimpleNamespace(doubtful=[]))
    state: Any = stored.state(None)
    some = before(RECORDS, extents, group_id)
    since: dict[bytes, int] = defaultdict(int)
    for row in some:
        if row["record_type"] == SHARE_SNAPSHOT:
            since[row["key"][2:]] = max(since[row["key"][2:]], row["log_offset"])
    offsets = {(row["log_partition"], row["log_offset"]) for row in before(POSITIONS, extents)}
    firsts = {number: min(offset for of, offset in offsets if of == number) for number, _ in offsets}
    holes = [(of, at) for of, at in offsets if at > firsts[of] and (of, at - 1) not in offsets]
    unread = [(row["log_partition"], row["log_offset"]) for row in before(UNREAD, extents)]
    said: list[tuple[tuple[int, int], int, Any]] = [(place, 0, place[0]) for place in (*holes, *unread)]
    for row in some:
        if row["log_offset"] >= since[row["key"][2:]]:
            place = (row["log_partition"], row["log_offset"])
            said.append((place, 1, (*place, row["key"])))
    assert state.calls == [call for _, _, call in sorted(said, key=lambda part: part[:2])]
    assert {kind for _, kind, _ in said} == {0, 1}
