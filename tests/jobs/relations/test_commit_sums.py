"""Commits that went back and removed offsets: both engines say what the cases prove; each part of the texts matters."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.findings.resets import PartitionRewind
from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.audit.folds.removals import EXPIRED_OR_DELETED, SHORTEST_RETENTION_MS, shows_deletions
from coordinator_core.broker_log.events import EventKind
from coordinator_core.cluster.given_topics import NO_REACH, TopicReach
from coordinator_core.records import LogPosition
from jobs.api import REMOVALS_SCHEMA
from jobs.relations.brokers import lines_about_removals
from jobs.relations.commit_sums import (
    END_TYPES,
    GROUP_ENDS_TEXT,
    REMOVALS,
    REWINDS,
    REWINDS_OF_GROUP,
    SUMMARIES,
    GroupEnd,
    Summary,
    removal_rows,
    rewinds_of_group,
    sums_of_group,
    topic_ends,
)
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.snapshots import BROKER_EVENTS
from tests.core.known_topics import EVERYWHEN
from tests.jobs.relations.engines import of_both, write
from tests.jobs.relations.tables_of_logs import add_another_cluster

CLUSTER = "c"
GROUP = {"cluster": CLUSTER, "log_topic": "log", "log_partition": 0, "group_id": "g"}
DAY_MS = 86_400_000
VALUES: dict[str, Any] = {"cluster": CLUSTER, "types": END_TYPES}


def at(offset: int, partition: int = 0) -> dict[str, int]:
    return {"partition": partition, "offset": offset, "timestamp_ms": offset}


REWOUND = {"owned": 10, "owned by two": 20, "by nobody": 30, "handed over": 40, "of another group": 50}
"""Each case is a topic, with the offset of the commit in the log."""

OWNERS = [
    # topic, member, since, until, kind, role, group
    ("owned", "a", at(5), None, "current", "partition", "g"),
    ("owned", "A", at(5), None, "target", "partition", "g"),
    ("owned", "A", at(5), None, "current", "task", "g"),
    ("owned", "A", at(5, 1), None, "current", "partition", "g"),
    ("owned by two", "c", at(5), at(21), "current", "partition", "g"),
    ("owned by two", "b", at(20), None, "current", "partition", "g"),
    ("by nobody", "a", at(31), None, "current", "partition", "g"),
    ("handed over", "a", at(5), at(40), "current", "partition", "g"),
    ("of another group", "a", at(5), None, "current", "partition", "other"),
]
REBALANCES = [(at(15), 1, at(18)), (at(25), 2, at(45)), (at(35, 1), 9, None), (at(48), 3, None)]
EXPECTED_REWINDS = [
    ("by nobody", 30, None, None, 2, True),
    ("handed over", 40, "a", None, 2, True),
    ("of another group", 50, None, None, 3, True),
    ("owned by two", 20, None, None, 1, False),
    ("owned", 10, None, "a", None, None),
]

REMOVED: dict[str, tuple[int, bool, int | None, str]] = {
    # time and offset in the log, whether it was past its expiry, the age of the commit
    "expired": (100, True, 5, "expired"),
    "young": (101, False, 5, "deleted"),
    "old": (102, False, SHORTEST_RETENTION_MS, "expired or deleted"),
    "no age": (103, False, None, "expired or deleted"),
    "with its group": (200, True, 5, "group deleted or expired"),
    "young with its group": (199, False, 5, "group deleted"),
    "behind its group": (301, False, 5, "deleted"),
    "with its topic": (DAY_MS, True, 5, "topic deleted"),
}
ENDS = [
    (202, 200, 3, "g"),
    (201, 199, 3, "g"),
    (150, 200, 3, "g"),
    (300, 301, 3, "g"),
    (900, 100, 3, "other"),
    (901, 101, 4, "g"),
]
"""Offset, time, record type and group of tombstones of groups and of what is not a group."""


def back(offset: int) -> dict[str, Any]:
    """A commit that goes back; the metadata of one names a member."""
    metadata = "a" if offset == REWOUND["handed over"] else "of an application"
    return {"at": at(offset), "before": 9, "after": 4, "log_offset_before": 1, "metadata": metadata}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sums")
    of_hour = {**GROUP, "run_id": "1", "hour_ms": 0, "partition": 0}
    rewinds = [{**of_hour, "topic": topic, "rewinds": [back(offset)]} for topic, offset in REWOUND.items()]
    removals = [
        {
            **of_hour,
            "topic": topic,
            "removals": [
                {"at": at(offset), "offset": 9, "past_expiry": expired, "age_ms": age, "log_offset_before": 1}
            ],
        }
        for topic, (offset, expired, age, _) in REMOVED.items()
    ]
    # Those of all hours together are another step, so that it shows which ones are read.
    whole = [
        {**row, "hour_ms": None, kind: [{**row[kind][0], "at": at(7)}]}
        for kind, rows in (("rewinds", rewinds), ("removals", removals))
        for row in rows
    ]
    current = ("topic", "member_id", "since", "until", "kind", "role", "group_id")
    owners = [{**GROUP, "partition": 0, **dict(zip(current, row, strict=True))} for row in OWNERS]
    rebalances = [
        {**GROUP, "group_id": group, "at": begun, "to_epoch": epoch, "finished": finished}
        for begun, epoch, finished in REBALANCES
        for group in ("g", "other")
    ]
    rebalances.append({**rebalances[-1], "at": at(49), "to_epoch": 8})
    ends = [
        {**GROUP, "group_id": group, "log_offset": offset, "timestamp_ms": time_ms, "record_type": kind}
        | {"is_tombstone": True}
        for offset, time_ms, kind, group in ENDS
    ]
    topic = {"cluster": CLUSTER, "topic": "with its topic", "topic_id": "1", "ended_by": "deleted", "until": at(DAY_MS)}
    topic_elsewhere = {**topic, "cluster": "other", "topic": "young", "until": at(101)}
    tables = {
        COMMIT_SUMMARIES: rewinds + removals + whole,
        HISTORY["assignments"]: owners,
        HISTORY["memberships"]: [{**GROUP, "member_id": name} for name in ("a", "a", "b")],
        HISTORY["rebalances"]: rebalances,
        GROUP_RECORDS: ends,
        TOPIC_HISTORY: [topic, topic_elsewhere],
    }
    write(made, tables)
    add_another_cluster(made)
    return made


BACK = ("topic", "log_offset", "committer", "owner", "rebalance_to", "in_rebalance")


def test_owner_and_rebalance_of_commits_that_went_back(spark: SparkSession, home: Path) -> None:
    assert of_both(spark, home, REWINDS, BACK, **VALUES) == EXPECTED_REWINDS


def causes(home: Path, text: str = REMOVALS, reach: TopicReach = EVERYWHEN) -> list[tuple[str, str]]:
    tables, schema = FolderReader(str(home)), REMOVALS_SCHEMA
    fold = removal_rows(topic_ends(tables, CLUSTER), reach, lines_about_removals(tables, CLUSTER), schema)
    batches = tables.folded(text, (), fold, schema, **VALUES)
    return sorted((row["topic"], row["cause"]) for batch in batches for row in batch.to_pylist())


def test_causes_of_removals(spark: SparkSession, home: Path) -> None:
    assert causes(home) == sorted((topic, cause) for topic, (*_, cause) in REMOVED.items())
    of_both(spark, home, REMOVALS, **VALUES)


def test_offsets_may_have_gone_with_a_topic_whose_deletion_is_not_shown(home: Path) -> None:
    unsure = {"young", "old", "no age", "behind its group"}
    expected = {
        (topic, f"{cause}, or removed with its topic" if topic in unsure else cause)
        for topic, (*_, cause) in REMOVED.items()
    }
    assert set(causes(home, reach=NO_REACH)) == expected


def test_a_tombstone_without_a_time_proves_neither_group_nor_topic(home: Path) -> None:
    end = GroupEnd("log", 0, 9, -1)
    row = dict.fromkeys(Summary._fields) | {"log_topic": "log", "log_partition": 0, "topic": "t", "partition": 0}
    row |= {"commits": 1, "first_partition": 0, "first_offset": 1, "last_partition": 0, "last_offset": 1}
    removal = {"at": {"partition": 0, "offset": 2, "timestamp_ms": None}, "offset": 5, "age_ms": None}
    summary = Summary(**(row | {"removals": [removal | {"past_expiry": None}]}))
    (sums,) = sums_of_group([summary], [end], {})
    assert isinstance(sums, PartitionCommits)
    assert [(each.at.timestamp_ms, each.how) for each in sums.removals] == [(-1, EXPIRED_OR_DELETED)]
    assert not shows_deletions(EVERYWHEN, -1)


def summary_of(group: str = "g", cluster: str = CLUSTER, hour_ms: int | None = None, **steps: Any) -> dict[str, Any]:
    """A row of ``commit_summaries`` with steps of some kinds, and none of the others."""
    none: dict[str, list[Any]] = {"rewinds": [], "removals": [], "pending": []}
    of = {"cluster": cluster, "group_id": group, "topic": "t", "partition": 0, "hour_ms": hour_ms}
    return {**GROUP, **of, **none, **steps}


NESTED_STEPS = ("group_id", "rewinds", "removals", "pending")
WENT_BACK = [{"at": at(3), "before": 9, "after": 4, "metadata": "m"}]
REMOVALS_OF = [{"at": at(4), "offset": 9, "past_expiry": True, "age_ms": 1}]
PENDING = [{"log_offset": 5, "outcome": "open"}]
SUMMED = [
    summary_of("back", rewinds=WENT_BACK),
    summary_of("removed", removals=REMOVALS_OF),
    summary_of("open", pending=PENDING),
    summary_of("back", hour_ms=0, rewinds=WENT_BACK * 2),
    summary_of("back", "other", rewinds=WENT_BACK),
]


def test_summaries_have_the_steps_of_all_hours_where_there_are_any(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {COMMIT_SUMMARIES: SUMMED})
    found = of_both(spark, tmp_path, SUMMARIES, NESTED_STEPS, cluster=CLUSTER)
    steps = [(name, *(each and len(each) for each in of_group)) for name, *of_group in found]
    assert steps == [("back", 1, None, None), ("open", None, None, 1), ("removed", None, 1, None)]


def test_rewinds_are_those_of_one_group(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, {COMMIT_SUMMARIES: [*SUMMED, summary_of("back too", rewinds=WENT_BACK), summary_of("back")]})
    found = of_both(spark, tmp_path, REWINDS_OF_GROUP, NESTED_STEPS, cluster=CLUSTER, group_id="back")
    assert [(name, len(rewinds), *others) for name, rewinds, *others in found] == [("back", 1, None, None)]
    rewinds = rewinds_of_group(FolderReader(str(tmp_path)), CLUSTER, "back")
    assert list(rewinds) == [PartitionRewind("t", 0, 9, 4, LogPosition(0, 3, 3))]


def test_ends_of_groups_are_their_tombstones_that_have_a_place(tmp_path: Path) -> None:
    end = {**GROUP, "log_offset": 1, "timestamp_ms": 2, "record_type": END_TYPES[0], "is_tombstone": True}
    others = ({"cluster": "other"}, {"is_tombstone": False}, {"record_type": -1, "log_offset": 7}, {"log_offset": None})
    write(tmp_path, {GROUP_RECORDS: [end, *({**end, **of} for of in others)]})
    assert list(FolderReader(str(tmp_path)).tuples(GROUP_ENDS_TEXT, **VALUES)) == [("g", "log", 0, 1, 2)]


LINES: list[tuple[EventKind, int, dict[str, Any]]] = [
    # kind, time, and what else the line says
    (EventKind.OFFSET_EXPIRED, 102, {"group_id": "g", "topic": "old", "partition": 0}),
    (EventKind.OFFSET_EXPIRED, 103, {"group_id": "other", "topic": "no age", "partition": 0}),
    (EventKind.CLEANED_UP, 190, {"log_partition": 0}),
    (EventKind.OFFSETS_DELETED, 300, {"log_partition": 0, "reason": "behind its group"}),
]


def test_lines_of_brokers_decide_what_tombstones_leave_open(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    shutil.copytree(home, place)
    rows = [{"cluster": CLUSTER, "kind": kind.value, "timestamp_ms": time_ms, **of} for kind, time_ms, of in LINES]
    rows.append({**rows[0], "cluster": "other", "topic": "no age", "timestamp_ms": 103})
    write(place, {BROKER_EVENTS: [{"file": "server.log", "line": n, **row} for n, row in enumerate(rows)]})
    told = {"old": "expired", "with its group": "group expired", "behind its group": "topic deleted"}
    assert dict(causes(place)) == {topic: cause for topic, (*_, cause) in REMOVED.items()} | told


MUTATIONS = [
    (REWINDS, "hour_ms IS NOT NULL AND", ""),
    (REWINDS, "min(a.member_id)", "max(a.member_id)"),
    (REWINDS, "a.group_id = b.group_id AND ", ""),
    (REWINDS, "a.topic = b.topic AND ", ""),
    (REWINDS, "AND a.kind = 'current'", ""),
    (REWINDS, "AND a.role = 'partition'", ""),
    (REWINDS, "AND a.since.partition = b.log_partition", ""),
    (REWINDS, "a.since.offset <= b.log_offset", "a.since.offset < b.log_offset"),
    (REWINDS, "a.until.offset > b.log_offset", "a.until.offset >= b.log_offset"),
    (REWINDS, "b.log_offset, TRUE)\n  GROUP", "b.log_offset, FALSE)\n  GROUP"),
    (REWINDS, "r.finished.offset >= b.log_offset", "r.finished.offset < b.log_offset"),
    (REWINDS, "b.log_offset, TRUE) AS in_rebalance", "b.log_offset, FALSE) AS in_rebalance"),
    (REWINDS, "r.at.offset DESC", "r.at.offset"),
    (REWINDS, "AND r.group_id = b.group_id", ""),
    (REWINDS, "AND r.at.partition = b.log_partition", ""),
    (REWINDS, "AND r.at.offset <= b.log_offset", ""),
    (REWINDS, "WHERE nth = 1", ""),
    (REWINDS, "LEFT JOIN owners", "JOIN owners"),
    (REMOVALS, "hour_ms IS NOT NULL AND", ""),
    (REMOVALS, "max(log_offset)", "min(log_offset)"),
    (REMOVALS, "AND record_type IN :types", ""),
    (REMOVALS, "e.timestamp_ms = r.timestamp_ms", "TRUE"),
    (REMOVALS, "e.group_id = r.group_id AND", ""),
    (REMOVALS, "FROM removed AS r LEFT JOIN", "FROM removed AS r JOIN"),
]


@pytest.mark.parametrize(("text", "part", "instead"), MUTATIONS, ids=[str(number) for number in range(len(MUTATIONS))])
def test_a_mutated_text_is_found(home: Path, text: str, part: str, instead: str) -> None:
    """Each part of the texts matters to one of the cases."""
    assert part in text
    mutated = text.replace(part, instead)
    if text is REMOVALS:
        assert causes(home, mutated) != causes(home)
    else:
        found = [tuple(row[name] for name in BACK) for row in FolderReader(str(home)).rows(mutated, **VALUES)]
        assert sorted(found, key=repr) != EXPECTED_REWINDS
