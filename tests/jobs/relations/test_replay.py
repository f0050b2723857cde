"""What a replay reads of random tables: the rows that the rules give, which are here in Python; on both engines."""

import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from coordinator_core.records import LOG_TOPICS, Family, RecordType
from jobs.pipeline.replay_arrow import INPUT
from jobs.relations.moment import NEVER_MS
from jobs.relations.replay import (
    BYTES,
    BYTES_AGAIN,
    COMMIT,
    LATE,
    MOVED,
    NEW_GROUPS,
    RANGES,
    ROWS,
    ROWS_AGAIN,
    SOME_GROUPS,
    STATE,
    replayed_rows,
)
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, REPLAYED
from jobs.tables.log import LOG_RANGES, QUARANTINE
from jobs.tables.reader import TableReader
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.table import Table
from tests.jobs.relations.engines import through_spark, write

CLUSTER, VERSION = "c", "7"
LOG, SHARES = LOG_TOPICS[Family.GROUP], LOG_TOPICS[Family.SHARE]
PLACES = [*((LOG, number) for number in range(8)), (SHARES, 0), (SHARES, 1)]
SPANS = [
    # topic, log partition, run, first offset, last offset
    *(
        (LOG, 20, "1", 0, 9),
        (LOG, 20, "1", 20, 29),
        (LOG, 20, "3", 10, 19),
        (LOG, 21, "1", 0, 9),
        (LOG, 21, "3", 10, 19),
    ),
    *((LOG, 21, "1", 0, 9), (LOG, 21, "3", 10, 19), (LOG, 22, "1", 0, 9)),
    *((SHARES, 5, "3", 0, 9), (SHARES, 6, "1", 0, 9)),
    *((LOG, 23, "2", 10, 19), (LOG, 23, "3", 0, 4)),
    *((LOG, 24, "1", 10, 19), (LOG, 24, "3", 0, 4), (LOG, 24, "3", 20, 29)),
    *((LOG, 25, "1", 10, 19), (LOG, 25, "4", 0, 4)),
    *((SHARES, 7, "2", 10, 19), (SHARES, 7, "3", 0, 4), (SHARES, 8, "1", 0, 9)),
    (LOG, 26, "1", 10, 19),
]
OTHER_SPANS = [(LOG, 26, "3", 0, 4)]
"""Those of another cluster."""
RARE = [
    # group, topic, log partition, run, offset, and the place of its state
    ("right before late records", LOG, 20, "1", 9, (20, 9)),
    ("right before new records", LOG, 21, "1", 9, (21, 9)),
    ("at the place of its state", LOG, 22, "3", 5, (22, 5)),
    ("shared, in an earlier partition", SHARES, 5, "3", 7, (6, 5)),
    ("behind late records, of the newest known run", LOG, 23, "2", 15, (23, 15)),
    ("between new records", LOG, 24, "1", 15, (24, 15)),
    ("behind records of a run that is not asked for", LOG, 25, "1", 15, (25, 15)),
    ("behind late records of another cluster", LOG, 26, "1", 15, (26, 15)),
    ("shared, behind late records, with a later state", SHARES, 7, "2", 15, (8, 5)),
    *((name, LOG, 22, "1", 5, (22, 5)) for name in ("unreadable", "unreadable offset", "unreadable, of a share log")),
]
UNREADABLE = [
    # group, topic, and record type
    ("unreadable", LOG, RecordType.CONSUMER_GROUP_METADATA.value),
    ("only unreadable", LOG, RecordType.CONSUMER_GROUP_METADATA.value),
    ("unreadable offset", LOG, RecordType.OFFSET_COMMIT.value),
    ("only unreadable offset", LOG, RecordType.OFFSET_COMMIT.value),
    ("unreadable, of a share log", SHARES, RecordType.CONSUMER_GROUP_METADATA.value),
    ("only unreadable, of a share log", SHARES, RecordType.CONSUMER_GROUP_METADATA.value),
    (None, LOG, RecordType.CONSUMER_GROUP_METADATA.value),
]
"""Records of the newest run in partition 22."""
"""Cases that random tables hardly have."""
RUNS = ["1", "2", "3", "4"]
Rows = dict[Table, list[dict[str, Any]]]
Group = tuple[str, str]
Answer = list[tuple[Any, ...]]


class Case(NamedTuple):
    """Tables, and what is asked of them."""

    rows: Rows
    done: str
    news_ms: int
    shown_ms: int

    @property
    def values(self) -> dict[str, Any]:
        return {
            **{"cluster": CLUSTER, "done": self.done, "upto": "3", "version": VERSION, "block": 7},
            **{"topics": REPLAYED_TOPICS, "groups": GROUP_TOPICS, "shares": SHARE_TOPICS},
            **{"news_ms": self.news_ms, "shown_ms": self.shown_ms},
        }


def tables_of(rng: random.Random) -> Rows:
    """Random logs of which each of four runs took a part: mostly one behind the other, sometimes not."""
    rows: Rows = {table: [] for table in (LOG_RANGES, GROUP_RECORDS, COMMIT_SUMMARIES, QUARANTINE, GROUP_STATES)}
    for topic, partition in PLACES:
        place = {"cluster": CLUSTER, "log_topic": topic, "log_partition": partition}
        at, start = rng.randrange(3), rng.random() < 0.5
        for run in RUNS if rng.random() < 0.7 else rng.sample(RUNS, 4):
            for number in range(rng.randrange(3)):
                first = at + rng.choice((0, 0, 3))
                last = first + rng.randrange(25)
                range_ = {"run_id": run, "first_offset": first, "last_offset": last, "leader_epoch": number}
                rows[LOG_RANGES].append({**place, **range_, "has_start": start})
                _fill(rows, rng, place | {"run_id": run}, range(at if rng.random() < 0.3 else first, last + 1))
                at, start = last + 1, False
    new = {(row["log_topic"], row["log_partition"], row["log_offset"]) for row in records(rows, "2")}
    positions = defaultdict[Group, list[tuple[int, int]]](list)
    for row in records(rows, ""):
        if (row["log_topic"], row["log_partition"], row["log_offset"]) not in new:
            positions[_group(row)].append((row["log_partition"], row["log_offset"]))
    ends = {(topic, group_id): (max(places), rng.random() < 0.05) for (topic, group_id), places in positions.items()}
    for topic, partition, run, first, last in SPANS:
        range_ = {"run_id": run, "first_offset": first, "last_offset": last, "has_start": False}
        rows[LOG_RANGES].append({"cluster": CLUSTER, "log_topic": topic, "log_partition": partition, **range_})
    for group_id, topic, record_type in UNREADABLE:
        at = {"log_topic": topic, "log_partition": 22, "log_offset": 7, "timestamp_ms": 7}
        of_run = {"cluster": CLUSTER, "run_id": "3", "group_id": group_id}
        rows[QUARANTINE].append(of_run | at | {"part": "value", "record_type": record_type})
    for group_id, topic, partition, run, offset, place in RARE:
        ends[topic, group_id] = (place, False)
        at = {"log_topic": topic, "log_partition": partition, "log_offset": offset, "timestamp_ms": 0, "batch_base": 0}
        of_run = {"cluster": CLUSTER, "run_id": run, "group_id": group_id, "key": b"k", "value": None}
        rows[GROUP_RECORDS].append(of_run | at)
    for (topic, group_id), ((partition, offset), is_old) in sorted(ends.items()):
        at = {"log_topic": topic, "log_partition": partition, "log_offset": offset, "timestamp_ms": offset}
        state = {"cluster": CLUSTER, "group_id": group_id, "version": "6" if is_old else VERSION, "state": "{}"}
        rows[GROUP_STATES].append(state | at)
    states = [(row["log_topic"], row["group_id"]) for row in rows[GROUP_STATES]]
    rows[REPLAYED] = [
        {"cluster": CLUSTER, "log_topic": topic, "group_id": group_id} for topic, group_id in rng.sample(states, 4)
    ]
    for of_table in rows.values():
        of_table += [
            {**row, "cluster": "other", "group_id": f"{row.get('group_id')}{rng.choice(('', '?'))}"}
            for row in of_table
            if rng.random() < 0.3
        ]
    old_state = {"log_topic": LOG, "log_partition": 22, "log_offset": 5, "version": "6", "state": "{}"}
    rows[GROUP_STATES].append({"cluster": "other", "group_id": "unreadable", "timestamp_ms": 5} | old_state)
    for topic, partition, run, first, last in OTHER_SPANS:
        range_ = {"run_id": run, "first_offset": first, "last_offset": last, "has_start": False}
        rows[LOG_RANGES].append({"cluster": "other", "log_topic": topic, "log_partition": partition, **range_})
    rows[REPLAYED].append({"cluster": "other", "log_topic": LOG, "group_id": "behind late records of another cluster"})
    return rows


def _fill(rows: Rows, rng: random.Random, place: dict[str, Any], offsets: Iterable[int]) -> None:
    """Add records, commits and unreadable records of groups at some of these offsets."""
    for offset in offsets:
        row = {
            **place,
            "group_id": f"{rng.randrange(30)} of {place['log_partition'] // 2}",
            "log_offset": offset,
            "timestamp_ms": offset,
        }
        kind = rng.randrange(12)
        if kind < 3:
            lacks = {0: {"timestamp_ms": None}, 1: {"log_offset": None}, 2: {"log_topic": "another"}}
            row |= {"batch_base": offset - 1, "key": b"k", "value": rng.choice((b"value", None))}
            rows[GROUP_RECORDS].append(row | lacks.get(rng.randrange(12), {}))
        elif kind == 3:
            beside = [{"log_offset": offset, "timestamp_ms": offset, "topic_id": rng.choice((None, "id"))}]
            row |= {"topic": "orders", "partition": 4, "hour_ms": rng.choice((0, 0, 0, None)), "beside": beside}
            rows[COMMIT_SUMMARIES].append(row | ({"beside": []} if rng.random() < 0.1 else {}))
        elif kind == 4:
            row |= {"record_type": RecordType.CONSUMER_GROUP_METADATA.value, "part": rng.choice(("key", "value"))}
            lacks = {0: {"part": "batch"}, 1: {"stray": "s"}, 2: {"group_id": None}, 3: {"record_type": 1}}
            rows[QUARANTINE].append(row | lacks.get(rng.randrange(10), {}))


def records(rows: Rows, after: str) -> list[dict[str, Any]]:
    """What runs after one say of groups."""
    found = []
    for table in (GROUP_RECORDS, COMMIT_SUMMARIES, QUARANTINE):
        for row in rows[table]:
            if row["cluster"] != CLUSTER or not after < row["run_id"] <= "3" or row["log_topic"] not in REPLAYED_TOPICS:
                continue
            given = dict.fromkeys(INPUT) | {name: row[name] for name in INPUT if name in row}
            if table is COMMIT_SUMMARIES:
                if row["hour_ms"] is None or not row["beside"]:
                    continue
                of = {"committed_topic": "orders", "committed_partition": 4}
                given |= of | {"committed_topic_id": row["beside"][0]["topic_id"]}
            elif table is QUARANTINE:
                is_commit = row["record_type"] <= 1
                logs = GROUP_TOPICS[:1] if is_commit else GROUP_TOPICS
                of_group = row["log_topic"] in logs and row["group_id"] is not None
                if not of_group or row["part"] == "batch" or row.get("stray") is not None:
                    continue
                given["unreadable"] = COMMIT if is_commit else STATE
            if given["log_offset"] is not None:
                found.append(given)
    firsts: dict[Group, dict[str, Any]] = {}
    for row in found:
        if row["unreadable"] == COMMIT:
            key = (*_group(row), row["log_partition"])
            firsts[key] = min(row, firsts.get(key, row), key=lambda each: each["log_offset"])
    return [row for row in found if row["unreadable"] != COMMIT] + [*firsts.values()]


def rebuilt(rows: Rows, asked: Case) -> set[Group]:
    """The groups that begin again."""
    states = [row for row in rows[GROUP_STATES] if row["cluster"] == CLUSTER]
    ranges = [row for row in rows[LOG_RANGES] if row["cluster"] == CLUSTER and row["run_id"] <= "3"]
    begun = {_group(row) for row in rows[REPLAYED] if row["cluster"] == CLUSTER}
    news = defaultdict[Group, list[tuple[int, int]]](list)
    for row in records(rows, asked.done):
        news[_group(row)].append((row["log_partition"], row["log_offset"]))
    for state in states:
        is_behind = min(news[_group(state)], default=(99, 0)) <= (state["log_partition"], state["log_offset"])
        is_old = state["version"] != VERSION or state["timestamp_ms"] >= asked.news_ms or not asked.done
        if is_old or (state["log_topic"] != SHARES and is_behind):
            begun.add(_group(state))
    for row in rows[GROUP_RECORDS]:
        is_known = row["cluster"] == CLUSTER and row["run_id"] <= asked.done and row["log_topic"] in GROUP_TOPICS
        is_placed = row["timestamp_ms"] is not None and row["log_offset"] is not None
        if is_known and is_placed and row["timestamp_ms"] >= asked.shown_ms:
            begun.add(_group(row))
    for place in {(row["log_topic"], row["log_partition"]) for row in ranges}:
        here = [row for row in ranges if (row["log_topic"], row["log_partition"]) == place]
        new = [row["first_offset"] for row in here if row["run_id"] > asked.done]
        known = [row["last_offset"] for row in here if row["run_id"] <= asked.done]
        if new and known and min(new) < max(known):
            old = [row for row in rows[GROUP_RECORDS] if row["cluster"] == CLUSTER and row["run_id"] <= asked.done]
            for row in (*old, *states):
                if (row["log_topic"], row["log_partition"]) == place and row["log_offset"] is not None:
                    begun |= {_group(row)} if min(new) <= row["log_offset"] + 1 else set()
    return begun | {_group(row) for row in states if row["group_id"] in {group_id for _, group_id in begun}}


def _group(row: dict[str, Any]) -> Group:
    return row["log_topic"], row["group_id"]


def with_coverage(rows: Rows, row: dict[str, Any]) -> dict[str, Any]:
    """A row with what is known of the log at its place."""
    of_log = [each for each in rows[LOG_RANGES] if each["cluster"] == CLUSTER]
    place = row["log_topic"], row["log_partition"]
    ranges = [each for each in of_log if (each["log_topic"], each["log_partition"]) == place]
    ranges.sort(key=lambda each: each["first_offset"])
    row = row | {"timestamp_ms": -1 if row["timestamp_ms"] is None else row["timestamp_ms"]}
    since = None
    for number, each in enumerate(ranges):
        joins = number and ranges[number - 1]["last_offset"] + 1 == each["first_offset"]
        since = since if joins else each["first_offset"]
        if each["first_offset"] <= row["log_offset"] <= each["last_offset"]:
            behind = [other["first_offset"] for other in ranges[number + 1 :]]
            follows = row["log_offset"] == each["last_offset"] and bool(behind) and behind[0] > each["last_offset"] + 1
            row |= {"leader_epoch": each.get("leader_epoch"), "unbroken_since": since, "gap_follows": follows}
            row["from_start"] = any(other["has_start"] for other in ranges)
    return row


def expected(asked: Case, *, rebuilds: bool) -> list[tuple[Any, ...]]:
    rows = asked.rows
    again = rebuilt(rows, asked) if rebuilds else set()
    fresh = records(rows, asked.done)
    chosen = [row for row in fresh if _group(row) not in again]
    chosen += [row for row in records(rows, "") if _group(row) in again]
    nothing = dict.fromkeys(INPUT)
    states = [
        nothing | {name: row[name] for name in INPUT if name in row}
        for row in rows[GROUP_STATES]
        if row["cluster"] == CLUSTER and _group(row) in {_group(each) for each in fresh} - again
    ]
    marks = [nothing | {"log_topic": topic, "group_id": group_id, "state": ""} for topic, group_id in again]
    placed = [with_coverage(rows, row) for row in chosen]
    return sorted((tuple(row[name] for name in INPUT) for row in (*placed, *states, *marks)), key=repr)


def found(tables: TableReader, asked: Case, text: str, **more: str) -> list[tuple[Any, ...]]:
    rows = ([row[name] for name in INPUT] for row in tables.rows(text, **asked.values, **more))
    plain = (tuple(bytes(each) if isinstance(each, bytearray) else each for each in row) for row in rows)
    return sorted(plain, key=repr)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("replay")
    write(place, TABLES)
    return place


TABLES = tables_of(random.Random(1))
SOME = Case(TABLES, "2", NEVER_MS, NEVER_MS)
LAST_MS = max(
    row["timestamp_ms"]
    for row in TABLES[GROUP_STATES]
    if row["cluster"] == CLUSTER and _group(row) not in rebuilt(TABLES, SOME)
)
SHOWN_MS = max(
    row["timestamp_ms"] or 0
    for row in TABLES[GROUP_RECORDS]
    if row["cluster"] == CLUSTER
    and row["log_topic"] in GROUP_TOPICS
    and row["run_id"] <= "2"
    and row["log_offset"] is not None
    and _group(row) not in rebuilt(TABLES, SOME)
)
CASES = [
    SOME,
    Case(TABLES, "2", LAST_MS, NEVER_MS),
    Case(TABLES, "2", NEVER_MS, SHOWN_MS),
    Case(TABLES, "", NEVER_MS, NEVER_MS),
]
"""After some runs; the same with news of the time of one state, or with topics of the time of one record; all again."""


@pytest.fixture(scope="module")
def answers() -> dict[bool, list[Answer]]:
    """What the rules say of each case, with groups that begin again and without."""
    return {rebuilds: [expected(asked, rebuilds=rebuilds) for asked in CASES] for rebuilds in (False, True)}


@pytest.mark.parametrize("rebuilds", [False, True])
def test_a_replay_reads_what_the_rules_say(home: Path, answers: dict[bool, list[Answer]], rebuilds: bool) -> None:
    for asked, answer in zip(CASES, answers[rebuilds], strict=True):
        assert found(FolderReader(str(home)), asked, replayed_rows(rebuilds=rebuilds)) == answer


def test_a_first_replay_reads_no_states(home: Path, answers: dict[bool, list[Answer]]) -> None:
    rows, whole = found(FolderReader(str(home)), SOME, replayed_rows(is_first=True)), answers[False][0]
    assert rows == [row for row in whole if row[INPUT.index("state")] is None]
    assert len(rows) < len(whole)


@pytest.mark.parametrize("size", [3, 20])
def test_the_parts_of_a_replay_have_the_rows_of_the_whole(
    home: Path, answers: dict[bool, list[Answer]], size: int
) -> None:
    tables = FolderReader(str(home))
    for number in (0, 3):
        asked = CASES[number]
        groups = [group_id for (group_id,) in tables.tuples(NEW_GROUPS, **asked.values)]
        assert groups == sorted({row["group_id"] for row in records(asked.rows, asked.done)})
        parts = [groups[begin : begin + size] for begin in range(0, len(groups), size)]
        assert len(parts) > 2
        of_parts = [
            found(tables, asked, replayed_rows(among=SOME_GROUPS), first_group=part[0], last_group=part[-1])
            for part in parts
        ]
        assert sorted((row for rows in of_parts for row in rows), key=repr) == answers[False][number]


def test_the_cases_have_groups_that_begin_again_and_others() -> None:
    groups = {_group(row) for row in TABLES[GROUP_STATES] if row["cluster"] == CLUSTER}
    some, more, shown, whole = (len(rebuilt(TABLES, asked)) for asked in CASES)
    assert 10 < some < min(more, shown)
    assert max(more, shown) < whole == len(groups)


def test_sizes_are_those_of_the_new_rows(home: Path) -> None:
    for asked in CASES:
        tables, fresh = FolderReader(str(home)), records(asked.rows, asked.done)
        groups = {_group(row) for row in fresh}
        of_states = [row for row in asked.rows[GROUP_STATES] if row["cluster"] == CLUSTER and _group(row) in groups]
        size = sum(len(row["value"] or b"") for row in fresh) + sum(len(row["state"]) for row in of_states)
        ranges = [row for row in asked.rows[LOG_RANGES] if row["cluster"] == CLUSTER]
        counts = [next(tables.tuples(text, **asked.values))[0] or 0 for text in (ROWS, BYTES, RANGES)]
        assert counts == [len(fresh), size, len(ranges)]


def test_sizes_of_groups_that_begin_again_are_those_of_all_their_rows(home: Path) -> None:
    for asked in CASES:
        again = rebuilt(asked.rows, asked)
        read = [row for row in records(asked.rows, asked.done) if _group(row) not in again]
        read += [row for row in records(asked.rows, "") if _group(row) in again]
        counts = [next(FolderReader(str(home)).tuples(text, **asked.values))[0] for text in (ROWS_AGAIN, BYTES_AGAIN)]
        assert counts == [len(read), sum(len(row["value"] or b"") for row in read)]


@pytest.mark.parametrize("rebuilds", [False, True])
def test_spark_reads_the_same(
    home: Path, answers: dict[bool, list[Answer]], spark: SparkSession, rebuilds: bool
) -> None:
    tables = through_spark(spark, home)
    for number in (0, 3):  # after some runs, and all again
        assert found(tables, CASES[number], replayed_rows(rebuilds=rebuilds)) == answers[rebuilds][number]


NEWS = [
    # group, topic, log partition, run and cluster of a record or a commit; the state of each group is in partition 3
    ("moved", LOG, 2, "3", CLUSTER),
    ("known before", LOG, 2, "2", CLUSTER),
    ("not asked for", LOG, 2, "4", CLUSTER),
    ("stays", LOG, 3, "3", CLUSTER),
    ("behind", LOG, 4, "3", CLUSTER),
    ("of another log", "another", 2, "3", CLUSTER),
    ("of another log, too", "another", 2, "3", CLUSTER),
    ("of another cluster", LOG, 2, "3", "other"),
    ("whose state is of another cluster", LOG, 2, "3", CLUSTER),
]


def test_groups_have_moved_of_which_new_rows_lie_in_an_earlier_partition(tmp_path: Path) -> None:
    names = ("group_id", "log_topic", "log_partition", "run_id", "cluster")
    news = [dict(zip(names, row, strict=True)) for row in NEWS]
    commits = [{**row, "hour_ms": 0} for row in news if row["log_topic"] == LOG]
    of_all_hours = [{**news[0], "hour_ms": None, "topic": topic} for topic in ("t", "u")]
    states = [{**row, "log_partition": 3, "cluster": CLUSTER} for row in news]
    states[-1]["cluster"] = "other"
    of_group = {"part": "value", "record_type": RecordType.GROUP_METADATA.value, "log_offset": 5}
    unread = [{**row, **of_group} for row in news]
    unread.append({**unread[0], "record_type": RecordType.OFFSET_COMMIT.value})
    tables: Rows = {GROUP_RECORDS: news, COMMIT_SUMMARIES: [*commits, *of_all_hours], QUARANTINE: unread}
    write(tmp_path, {**tables, GROUP_STATES: states})
    moved = list(FolderReader(str(tmp_path)).tuples(MOVED, **SOME.values))
    assert moved == [(3,)], "a record, a commit and an unreadable record of the first group"


def test_new_records_are_late_that_lie_before_known_ones(tmp_path: Path) -> None:
    spans = [
        *((LOG, 0, "1", 0, 9), (LOG, 0, "3", 10, 19)),
        *((LOG, 1, "2", 10, 19), (LOG, 1, "3", 0, 4), (LOG, 1, "3", 20, 29)),
        *((LOG, 2, "1", 0, 9), (LOG, 2, "1", 30, 39), (LOG, 2, "3", 20, 29)),
        *((LOG, 3, "1", 10, 19), (LOG, 3, "4", 0, 4)),
        *((LOG, 4, "1", 10, 19), (LOG, 4, "2", 0, 4)),
        *(("another", 0, "1", 10, 19), ("another", 0, "3", 0, 4)),
        (LOG, 5, "1", 10, 19),
    ]
    names = ("log_topic", "log_partition", "run_id", "first_offset", "last_offset")
    ranges = [{"cluster": CLUSTER, **dict(zip(names, span, strict=True))} for span in spans]
    ranges.append({**ranges[-1], "cluster": "other", "run_id": "3", "first_offset": 0, "last_offset": 4})
    write(tmp_path, {LOG_RANGES: ranges})
    assert sorted(FolderReader(str(tmp_path)).tuples(LATE, **SOME.values)) == [(LOG, 1, 0), (LOG, 2, 20)]


MUTATIONS = [
    ("AND log_topic IN :topics AND log_offset IS NOT NULL", "AND log_offset IS NOT NULL"),
    ("AND hour_ms IS NOT NULL", ""),
    ("part IN ('key', 'value')", "TRUE"),
    ("AND stray IS NULL", ""),
    ("record_type > 1 AND", ""),
    ("AND group_id IS NOT NULL", ""),
    ("run_id > :done AND run_id <= :upto AND log_topic", "run_id > :done AND log_topic"),
    ("cluster = :cluster AND run_id <= :done", "run_id <= :done"),
    ("min(named_struct(", "max(named_struct("),
    (":done = '' OR", ""),
    ("version <> :version OR", ""),
    ("OR timestamp_ms >= :news_ms", ""),
    ("timestamp_ms >= :news_ms", "timestamp_ms > :news_ms"),
    ("s.log_topic NOT IN :shares AND", ""),
    ("timestamp_ms >= :shown_ms", "timestamp_ms > :shown_ms"),
    ("AND log_topic IN :groups AND timestamp_ms", "AND timestamp_ms"),
    ("run_id <= :done AND log_topic IN :groups", "log_topic IN :groups"),
    ("f.first.log_partition < s.log_partition\n    OR", ""),
    ("f.first.log_offset <= s.log_offset", "f.first.log_offset < s.log_offset"),
    ("UNION SELECT log_topic, group_id FROM $replayed WHERE cluster = :cluster", ""),
    ("UNION ALL SELECT log_topic, group_id, log_partition, log_offset FROM states", ""),
    ("WHERE l.first <= p.log_offset + 1", "WHERE l.first <= p.log_offset"),
    ("AS places WHERE first < last", "AS places"),
    ("ON s.group_id = b.group_id", "ON s.group_id = b.group_id AND s.log_topic = b.log_topic"),
    ("LEFT ANTI JOIN rebuilt AS r ON f.log_topic", "LEFT SEMI JOIN rebuilt AS r ON f.log_topic"),
    ("LEFT ANTI JOIN rebuilt AS r ON r.log_topic", "LEFT SEMI JOIN rebuilt AS r ON r.log_topic"),
    ("LEFT SEMI JOIN fresh", "LEFT ANTI JOIN fresh"),
    ("> last_offset + 1", "> last_offset"),
    ("bool_or(has_start)", "bool_and(has_start)"),
    ("= first_offset - 1 THEN NULL", "= first_offset THEN NULL"),
    ("ORDER BY log_offset, is_row", "ORDER BY log_offset, is_row DESC"),
    (
        "CASE WHEN log_offset <= l.place.last_offset THEN l.place.leader_epoch",
        "CASE WHEN TRUE THEN l.place.leader_epoch",
    ),
    ("AND log_offset = l.place.last_offset", ""),
    ("coalesce(timestamp_ms, -1)", "timestamp_ms"),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[part for part, _ in MUTATIONS])
def test_a_mutated_text_is_found(home: Path, answers: dict[bool, list[Answer]], part: str, instead: str) -> None:
    """Each part of the text matters to some rows."""
    text = replayed_rows(rebuilds=True)
    assert part in text
    mutated, tables = text.replace(part, instead), FolderReader(str(home))
    cases = zip(CASES[1:], answers[True][1:], strict=True)
    assert any(found(tables, asked, mutated) != answer for asked, answer in cases)
