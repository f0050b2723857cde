"""Commits at a moment, from random rows: what Python finds among them; at the end all commits and their sums say it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from coordinator_core.groups.certainty import CommitRecords, LogGaps
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG
from jobs.queries.from_tables.commits import CommitsThen, GroupKey, SummarizedCommits, read_records
from jobs.queries.from_tables.selection import Selection
from jobs.relations.log_extent import Extents, StoredLogExtent
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.table import COMMIT
from tests.jobs.relations.engines import write

Row = dict[str, Any]
Place = tuple[str, int]
PLACES: Final = [(GROUP_LOG, 0), (GROUP_LOG, 1), (GROUP_LOG, 2), (CONNECT_LOG, 0)]
PARTITIONS: Final = [(topic, number) for topic in "tu" for number in range(4)]
OFFSETS: Final = 80
MOMENTS: Final = (30, 50, 70)
"""Offsets at which log partitions may end; the commit there has a partition of its own."""
PRODUCERS: Final = (None, -1, 0, 7)


RARE: Final[dict[int, tuple[str, bool, int | None, str | None]]] = {
    **{0: ("first", False, None, None), 1: ("undecided", False, 0, "unknown"), 2: ("aborted", False, 7, "aborted")},
    **{3: ("mixed", False, 7, "unknown"), 4: ("mixed", False, 7, "aborted")},
    **{77: ("removed", False, None, None), 78: ("removed", True, None, None), 79: ("last", False, 7, "aborted")},
}
"""Topic, tombstone, producer and outcome of commits of one group at some offsets: partitions that have no others."""


class Then(NamedTuple):
    """What is known of one group: offset of its last commit, commits by offset, and records of its partitions."""

    last: int | None
    held: list[tuple[int, str, int, str, int | None]]
    about: dict[TopicPartition, CommitRecords]


def commit(chance: Random, place: Place, offset: int, *, aborts: bool) -> Row:
    topic, partition = ("late", offset) if offset in MOMENTS else chance.choice(PARTITIONS)
    producer_id = chance.choice(PRODUCERS)
    in_transaction = ["committed", "open", "unknown", *(["aborted"] if aborts else [])]
    outcomes = in_transaction if (producer_id or 0) >= 0 else [None, "unknown"]
    at = {"log_topic": place[0], "log_partition": place[1], "log_offset": offset, "timestamp_ms": offset}
    of = {
        "group_id": "g" if offset in MOMENTS else chance.choice("gh"),
        "topic": topic,
        "partition": partition,
        "producer_id": producer_id,
    }
    is_tombstone = chance.random() < 0.15
    said = {"is_tombstone": is_tombstone, "outcome": None if is_tombstone else chance.choice(outcomes)}
    if offset in RARE:
        topic, is_tombstone, producer_id, outcome = RARE[offset]
        of = {"group_id": "g", "topic": topic, "partition": 0, "producer_id": producer_id}
        said = {"is_tombstone": is_tombstone, "outcome": outcome}
    return {**at, **of, **said, "committed_offset": None if is_tombstone else offset * 10}


def marker(chance: Random, place: Place, offset: int) -> Row:
    at = {"log_topic": place[0], "log_partition": place[1], "log_offset": offset, "kind": "control"}
    ends = chance.random() < 0.8
    return {**at, "producer_id": chance.choice((0, 7)), "is_transactional": ends, "control_type": "COMMIT"}


def rows_of(seed: int, *, aborts: bool) -> tuple[list[Row], list[Row]]:
    """Commits and ends of transactions of each log partition; ``aborts``: some of them are aborted."""
    chance, commits, markers = Random(seed), list[Row](), list[Row]()
    for place in PLACES:
        for offset in range(OFFSETS):
            if offset in MOMENTS or offset in RARE or chance.random() < 0.75:
                row = commit(chance, place, offset, aborts=aborts)
                commits += [row] if aborts or row["outcome"] != "aborted" else []
            else:
                markers.append(marker(chance, place, offset))
    return commits, markers


def not_counted(rows: Iterable[Row]) -> Iterator[Row]:
    """The same rows elsewhere: of another cluster, of another log, and without a place; later and earlier ones."""
    for row in rows:
        yield {**row, "cluster": "other"}
        for shift in (-50, 50):
            moved = {**row, "log_offset": row["log_offset"] + shift}
            yield from ({**moved, **other} for other in ({"cluster": "other"}, {"log_topic": SHARE_LOG}))
            yield {**moved, "log_partition": None}
        yield {**row, "log_offset": None}


def is_undecided(row: Row) -> bool:
    return row["outcome"] == "unknown" and row["producer_id"] is not None and row["producer_id"] >= 0


def counts(row: Row) -> bool:
    return row["outcome"] not in ("open", "aborted") and not is_undecided(row)


def by(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return dict(found)


def last_of(rows: Iterable[Row]) -> int:
    return max((row["log_offset"] for row in rows), default=-1)


KEY: Final = ("log_topic", "log_partition", "group_id", "topic", "partition")


def summaries(commits: list[Row]) -> Iterator[Row]:
    """The rows of all commits at the end, and rows of hours that must not count for them."""
    for key, rows in by(commits, *KEY).items():
        written = [row for row in rows if not row["is_tombstone"]]
        holding = [row for row in written if counts(row)]
        ended = last_of(row for row in rows if row["is_tombstone"])
        last = last_of(holding)
        committed = [row for row in holding if row["log_offset"] == last > ended]
        pending = [row for row in written if row["outcome"] == "open" or is_undecided(row)]
        of_key = {**dict(zip(KEY, key, strict=True)), "run_id": "1", "written": len(written), "commits": len(holding)}
        at = {"partition": key[1], "offset": last, "timestamp_ms": last}
        held = {
            **{"committed": struct(committed[0]) if committed else None, "last": at if holding else None},
            **{"ended": None if ended < 0 else ended, "pending": [struct(row) for row in pending]},
        }
        yield {**of_key, **held}
        late = struct({**rows[0], "log_offset": 99, "outcome": "open", "producer_id": 7})
        of_hour = {"hour_ms": 0, "written": 0, "commits": 9, "ended": 98, "last": {**at, "offset": 99}}
        yield {**of_key, **of_hour, "committed": {**late, "outcome": None}, "pending": [late]}


def struct(row: Row) -> Row:
    return {name: row.get(name) for name in COMMIT}


def elsewhere(rows: Iterable[Row]) -> Iterator[Row]:
    """The same sums, of other clusters and logs, with more."""
    for row in rows:
        late = struct({"log_offset": 97, "outcome": "open", "producer_id": 7, "committed_offset": 1})
        held = [*row["pending"], *([] if row["committed"] is None else [row["committed"]])]
        at = {"partition": 0, "offset": 97, "timestamp_ms": 97}
        more = {"committed": {**late, "outcome": None}, "pending": [late, *held], "ended": 60, "last": at, "written": 0}
        yield {**row, **more, "cluster": "other"}
        yield {**row, **more, "log_topic": SHARE_LOG}


@pytest.fixture(scope="module", params=[True, False], ids=["aborts", "no aborts"])
def rows(request: pytest.FixtureRequest) -> tuple[list[Row], list[Row]]:
    return rows_of(20, aborts=request.param)


@pytest.fixture(scope="module")
def tables(rows: tuple[list[Row], list[Row]], tmp_path_factory: pytest.TempPathFactory) -> FolderReader:
    home, (commits, markers) = tmp_path_factory.mktemp("commits"), rows
    sums = list(summaries(commits))
    made = {
        OFFSET_COMMITS: [*commits, *not_counted(commits)],
        LOG_RECORDS: [*markers, *not_counted(markers)],
        COMMIT_SUMMARIES: [*sums, *elsewhere(sums)],
    }
    write(home, {table: [{"cluster": "c", **row} for row in of_table] for table, of_table in made.items()})
    return FolderReader(str(home))


def then(row: Row, extents: Extents, markers: list[Row]) -> Row:
    """A commit as it was at the moment: open, if its transaction ended later, and whether that is known by now."""
    place = (row["log_topic"], row["log_partition"])
    extent = extents[place]
    if all(of.end is None for of in extents.values()):
        return {**row, "decided_later": False}
    ends = [
        end["log_offset"]
        for end in markers
        if (end["log_topic"], end["log_partition"], end["producer_id"]) == (*place, row["producer_id"])
        and end["is_transactional"]
        and (extent.end is None or end["log_offset"] < extent.end)
    ]
    has_ended = max(ends, default=-1) > row["log_offset"]
    was_open = row["outcome"] in ("committed", "aborted") and not has_ended
    was_open = was_open or (is_undecided(row) and row["log_offset"] > extent.gaps.lost)
    outcome = "open" if was_open else row["outcome"]
    return {**row, "outcome": outcome, "decided_later": was_open and row["outcome"] != "aborted"}


def held(rows: list[Row]) -> Iterator[tuple[int, str, int, str, int | None]]:
    """The commit that holds of one partition, and the last one of each open transaction, behind the last tombstone."""
    ended = last_of(row for row in rows if row["is_tombstone"])
    written = [row for row in rows if not row["is_tombstone"]]
    chosen = {last_of(row for row in written if counts(row)): "committed"}
    for of_producer in by((row for row in written if row["outcome"] == "open"), "producer_id").values():
        chosen[last_of(of_producer)] = "pending"
    for row in written:
        if (status := chosen.get(row["log_offset"])) and row["log_offset"] > ended:
            yield row["log_offset"], row["topic"], row["partition"], status, row["committed_offset"]


def about(rows: list[Row], extent: StoredLogExtent, *, follows: bool) -> CommitRecords | None:
    """What the records of one partition leave open; None: nothing depends on it."""
    rows = [] if extent.gaps.lists_all else rows
    last = last_of(row for row in rows if row["is_tombstone"] or counts(row))
    opened = [row for row in rows if row["outcome"] == "open" and not row["is_tombstone"]]
    ended = last_of(row for row in rows if row["is_tombstone"])
    pending = last_of(opened) if last_of(opened) > ended else -1
    may_be_lost = extent.gaps.lost >= 0 or extent.gaps.lost_later
    if follows or pending >= 0 or ((last >= 0 or any(map(is_undecided, rows))) and may_be_lost):
        return CommitRecords(last, pending, follows, any(row["decided_later"] for row in opened))
    return None


def expected(commits: list[Row], markers: list[Row], extents: Extents, group_id: str | None) -> dict[GroupKey, Then]:
    found: dict[GroupKey, Then] = {}
    mine = (row for row in commits if group_id in (None, row["group_id"]))
    for (topic, number, group), rows in by(mine, "log_topic", "log_partition", "group_id").items():
        extent = extents[topic, number]
        end = OFFSETS if extent.end is None else extent.end
        known = [then(row, extents, markers) for row in rows if row["log_offset"] < end]
        later = {*by((row for row in rows if row["log_offset"] >= end), *KEY)} if extent.gaps.missing >= 0 else set()
        of_partitions = by(known, *KEY)
        records = {
            TopicPartition(*key[3:]): of_key
            for key in {*of_partitions, *later}
            if (of_key := about(of_partitions.get(key, []), extent, follows=key in later)) is not None
        }
        last = last_of(row for row in known if not row["is_tombstone"])
        in_order = sorted(of for of_key in of_partitions.values() for of in held(of_key))
        if last >= 0 or records:
            found[topic, number, group] = Then(None if last < 0 else last, in_order, records)
    return found


def found(of: type[CommitsThen], tables: FolderReader, extents: Extents, group_id: str | None) -> dict[GroupKey, Then]:
    groups = of(Selection(tables, "c", GROUP_TOPICS, group_id), extents).groups()
    names = ("log_offset", "topic", "partition", "status", "committed_offset")
    return {
        key: Then(then.last, [tuple(row[name] for name in names) for row in then.held], read_records(then.about))
        for key, then in groups
    }


WHOLE, COMPACTED, LOST, LATER = LogGaps(), LogGaps(5), LogGaps(20, 12), LogGaps(9, -1, True)
GAPS: Final = {
    "whole": [WHOLE] * 4,
    "of each kind": [COMPACTED, WHOLE, LOST, LATER],
    "of one log": [LOST, WHOLE, LATER, COMPACTED],
}
ENDS: Final = {"the end": [None] * 4, "offsets": [50, 70, None, 30], "one offset": [None, None, 50, None]}


def extents_of(ends: list[int | None], gaps: list[LogGaps]) -> Extents:
    return {
        place: StoredLogExtent(end=end, gaps=replace(gap, at_end=end is None))
        for place, end, gap in zip(PLACES, ends, gaps, strict=True)
    }


@pytest.mark.parametrize("group_id", [None, "g"])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("ends", ENDS)
def test_commits_at_a_moment(
    tables: FolderReader, rows: tuple[list[Row], list[Row]], ends: str, gaps: str, group_id: str | None
) -> None:
    extents = extents_of(ENDS[ends], GAPS[gaps])
    wanted = expected(*rows, extents, group_id)
    assert found(CommitsThen, tables, extents, group_id) == wanted
    if ends == "the end":
        assert found(SummarizedCommits, tables, extents, group_id) == wanted
