"""Take brokers' application logs into the tables, each line once, and find the zone and the record of each.

The zone follows from lines whose record is known, so it is found once the records of the night are replayed. A record
may come nights after its line: lines without one are looked at again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.audit.folds.witness import OF_MEMBER
from coordinator_core.broker_log.all_files import ANCHORS, NAMING, OF_EPOCH, Epoch, of_other_clusters, with_zones
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.history.rows import GroupEpochRow, MembershipRow
from jobs.pipeline import runs
from jobs.relations.brokers import USED
from jobs.sources.bounded_warnings import Warn
from jobs.sources.broker_logs import Zone, read_broker_logs
from jobs.tables.delta import Tables
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader
from jobs.tables.snapshots import BROKER_EVENTS
from jobs.tables.table import few

AT_ONCE: Final = 50_000
"""Lines that are held in memory, and written, at a time."""
BOUND: Final = sorted({*map(str, OF_MEMBER), *map(str, OF_EPOCH)})
"""Kinds of lines that belong to a record."""
NO_RECORD: Final = "record IS NULL"


def take(tables: Tables, paths: Iterable[str], cluster: str, warn: Warn, zone: Zone | None = None) -> int:
    """Take in the lines of these files that the tables do not have yet. Return the number of lines that were read.

    Raises:
        InputError: a path does not exist, or cannot be read.
    """
    tables.create(BROKER_EVENTS)
    run_id = runs.new_run_id()
    events, count = read_broker_logs(paths, warn, zone), 0
    while some := list(islice(events, AT_ONCE)):
        # The file that is being written ends elsewhere each night: its newest end replaces the one before.
        rows = {(row := _row(event, _digest(event), cluster, run_id))["digest"]: row for event in some}
        update = {"line": "s.line", "written": "s.written", "local_ms": "s.local_ms", "timestamp_ms": "s.timestamp_ms"}
        of_end = f"s.kind = '{EventKind.FILE_ENDS}'"
        tables.merge(BROKER_EVENTS, few(BROKER_EVENTS, rows.values()), update, when=of_end, insert=True)
        count += len(some)
    return count


def _digest(event: BrokerEvent) -> str:
    content = (event.broker_id, event.written, event.kind, event.group_id, event.member_id, event.text)
    # A file that grows has one end, which moves: its time is no part of what tells it.
    if event.kind in (EventKind.FILE_BEGINS, EventKind.FILE_ENDS):
        content = (event.broker_id, event.file, event.kind, None, None, "")
    return blake2b(repr(content).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def _row(
    event: BrokerEvent, digest: str, cluster: str, run_id: str = "", unknown: int | None = None
) -> dict[str, object]:
    record = None if event.record is None else event.record._asdict()
    own = {"cluster": cluster, "run_id": run_id, "digest": digest, "members_not_known": unknown}
    return {**own, **event._asdict(), "record": record}


def settle(tables: Tables, cluster: str) -> int:
    """Find the times and the records of lines that have none yet. Return the number of lines that got one."""
    if not tables.exists(BROKER_EVENTS):
        return 0
    # First, as both steps below leave out the lines of other clusters (``USED``).
    _update(tables, [*_of_other_clusters(tables.engine(), cluster)], "members_not_known")
    changed = [_row(event, digest, cluster) for digest, event in _timed(tables.engine(), cluster)]
    _update(tables, changed, "timestamp_ms")
    bound = [_row(event, digest, cluster) for digest, event in _bound(tables.engine(), cluster)]
    _update(tables, bound, "record")
    return len(changed) + len(bound)


def _update(tables: Tables, rows: list[dict[str, object]], column: str) -> None:
    for begin in range(0, len(rows), AT_ONCE):
        some = rows[begin : begin + AT_ONCE]
        tables.merge(BROKER_EVENTS, few(BROKER_EVENTS, some), {column: f"s.{column}"})


def _of_other_clusters(tables: TableReader, cluster: str) -> Iterator[dict[str, object]]:
    """Yield the lines of files that are of another cluster, as is known now, and of those that are not after all."""
    fitting = "SELECT file FROM $broker_events WHERE cluster = :cluster AND record IS NOT NULL AND kind IN :departed"
    events = tables.rows(
        "SELECT * FROM $broker_events WHERE cluster = :cluster AND kind IN :kinds AND group_id IS NOT NULL "
        f"AND file NOT IN ({fitting})",
        cluster=cluster,
        kinds=sorted(map(str, NAMING)),
        departed=sorted(map(str, OF_MEMBER)),
    )
    named = list(map(reader(BrokerEvent), events))
    members: defaultdict[str, set[str]] = defaultdict(set)
    for row in tables.rows(
        "SELECT DISTINCT group_id, member_id FROM $memberships WHERE cluster = :cluster AND group_id IN :groups",
        cluster=cluster,
        groups=sorted({event.group_id for event in named if event.group_id is not None}),
    ):
        members[row["group_id"]].add(row["member_id"])
    refused = dict(of_other_clusters(named, members))
    read = reader(BrokerEvent)
    for row in tables.rows(
        "SELECT * FROM $broker_events WHERE cluster = :cluster AND (file IN :files OR members_not_known IS NOT NULL)",
        cluster=cluster,
        files=sorted(refused),
    ):
        if row["members_not_known"] != refused.get(row["file"]):
            yield _row(read(row), row["digest"], cluster, unknown=refused.get(row["file"]))


def _timed(tables: TableReader, cluster: str) -> Iterator[tuple[str, BrokerEvent]]:
    """Yield the lines whose time is known now, and was not before, by digest."""
    rows = list(
        tables.rows(
            f"SELECT * FROM $broker_events WHERE cluster = :cluster AND {USED} AND timestamp_ms IS NULL",
            cluster=cluster,
        )
    )
    if not rows:
        return
    written: defaultdict[Epoch, list[int]] = defaultdict(list)
    for row in tables.rows(
        "SELECT DISTINCT g.group_id AS group_id, g.epoch AS epoch, g.opened.timestamp_ms AS at_ms "
        "FROM $group_epochs AS g JOIN $broker_events AS e "
        "ON g.cluster = e.cluster AND g.group_id = e.group_id AND g.epoch = e.epoch "
        "WHERE g.cluster = :cluster AND e.kind IN :kinds",
        cluster=cluster,
        kinds=sorted(map(str, ANCHORS)),
    ):
        written[row["group_id"], row["epoch"]].append(row["at_ms"])
    read = reader(BrokerEvent)
    events = with_zones(map(read, rows), written)
    for row, event in zip(rows, events, strict=True):
        if event.timestamp_ms is not None:
            yield row["digest"], event


def _bound(tables: TableReader, cluster: str) -> Iterator[tuple[str, BrokerEvent]]:
    """Yield the lines whose record is known now, and was not before, by digest."""
    rows = list(
        tables.rows(
            f"SELECT * FROM $broker_events WHERE cluster = :cluster AND {USED} AND {NO_RECORD} AND kind IN :kinds "
            "AND group_id IS NOT NULL",
            cluster=cluster,
            kinds=BOUND,
        )
    )
    of_group: defaultdict[str, dict[BrokerEvent, str]] = defaultdict(dict)
    read = reader(BrokerEvent)
    for row in rows:
        of_group[row["group_id"]][read(row)] = row["digest"]
    groups = sorted(of_group)
    known: defaultdict[str, list[Any]] = defaultdict(list)
    for table, row_type in (("group_epochs", GroupEpochRow), ("memberships", MembershipRow)):
        as_row = reader(row_type)
        for row in tables.rows(
            f"SELECT * FROM ${table} WHERE cluster = :cluster AND group_id IN :groups", cluster=cluster, groups=groups
        ):
            known[row["group_id"]].append(as_row(row))
    for group_id, events in of_group.items():
        history = GroupHistory.gather(group_id, 0, [*known[group_id], *events], NO_TOPICS, NO_SHARE_LOGS)
        for event in history.events:
            if event.record is not None:
                yield events[event._replace(record=None)], event
