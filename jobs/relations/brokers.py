"""Lines of brokers' application logs from the tables; ``queries.from_logs.brokers`` reads the same from files."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from coordinator_core.audit.folds.witness import line_order
from coordinator_core.broker_log.all_files import OF_EPOCH, failed_loads, later_lines
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.records import GROUP_LOG
from jobs.tables.reader import TableReader, known_rows
from jobs.tables.row_reader import reader

TABLE: Final = "broker_events"
OTHER_CLUSTER: Final = (
    "the lines of {} are not used: it names {} members of these groups, and the log has none of them. It is of another "
    "cluster, or of a time that the log does not have"
)
NO_ZONE: Final = "the time of {} lines of broker logs is not known: give their zone with --broker-log-zone"

USED: Final = "members_not_known IS NULL"
"""Lines of a file of another cluster are not used."""


def has_lines(tables: TableReader) -> bool:
    """Return whether lines were ever taken in."""
    return tables.exists(TABLE)


def lines_of_groups(
    tables: TableReader, cluster: str, groups: Sequence[str] | None = None
) -> Iterator[tuple[str, BrokerEvent]]:
    """Yield the lines that name one of these groups (None: any), by group id."""
    among = "group_id IS NOT NULL" if groups is None else "group_id IN :groups"
    read = reader(BrokerEvent)
    for row in known_rows(
        tables,
        f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND {among} ORDER BY group_id",
        cluster=cluster,
        groups=groups,
    ):
        yield row["group_id"], read(row)


def other_lines(tables: TableReader, cluster: str) -> tuple[BrokerEvent, ...]:
    """Return the lines that name no group."""
    sql = f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND group_id IS NULL"
    return tuple(map(reader(BrokerEvent), known_rows(tables, sql, cluster=cluster)))


def silent_lines(tables: TableReader, cluster: str) -> int:
    """Return the number of lines whose time is not known, as their zone is not."""
    sql = f"SELECT count(*) AS lines FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND timestamp_ms IS NULL"
    return sum(int(row["lines"]) for row in known_rows(tables, sql, cluster=cluster))


def of_other_clusters(tables: TableReader, cluster: str) -> Iterator[str]:
    """Yield in words which files are of another cluster."""
    for row in known_rows(
        tables,
        f"SELECT file, max(members_not_known) AS members FROM ${TABLE} WHERE cluster = :cluster "
        "AND members_not_known IS NOT NULL GROUP BY file ORDER BY file",
        cluster=cluster,
    ):
        yield OTHER_CLUSTER.format(row["file"], row["members"])


def copy_is_older(line: BrokerEvent, last_ms: Mapping[int, int]) -> str:
    """Return in words that a log partition goes on behind the end of its copy; ``line`` says so."""
    partition = -1 if line.log_partition is None else line.log_partition
    return (
        f"{GROUP_LOG}-{partition} ends at {utc(last_ms[partition])}, and its coordinator went on: {line.place} names "
        f"epoch {line.epoch} of group {line.group_id} at {utc(line.timestamp_ms or 0)}. The copy is older than the "
        "broker's log: what its groups are since then is not known"
    )


def older_copies(tables: TableReader, cluster: str) -> Iterator[str]:
    """Yield in words which log partitions go on behind the end of what was taken in, as brokers' logs say."""
    if not has_lines(tables):
        return
    last_ms = _last_ms(tables, cluster)
    read = reader(BrokerEvent)
    later = [
        read(row)
        for row in tables.rows(
            f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND kind IN :kinds "
            "AND timestamp_ms > :since_ms",
            cluster=cluster,
            kinds=sorted(map(str, OF_EPOCH)),
            # A line from before the earliest end of all copies proves nothing: one bound spares a join.
            since_ms=min(last_ms.values(), default=0),
        )
    ]
    epochs = {
        row["group_id"]: row["epoch"]
        for row in tables.rows(
            "SELECT group_id, epoch FROM $group_epochs WHERE cluster = :cluster AND is_open AND group_id IN :groups",
            cluster=cluster,
            groups=sorted({line.group_id for line in later if line.group_id is not None}),
        )
    }
    for line in later_lines(later, last_ms, epochs).values():
        yield copy_is_older(line, last_ms)


def not_loaded(lines: Iterable[BrokerEvent], last_ms: Mapping[int, int]) -> Iterator[str]:
    """Yield in words which log partitions have no coordinator, from lines in any order; see ``failed_loads``."""
    for partition, failed in failed_loads(sorted(lines, key=line_order), last_ms).items():
        since = "" if failed.first.timestamp_ms is None else f" since {utc(failed.first.timestamp_ms)}"
        yield (
            f"{GROUP_LOG}-{partition} has no coordinator{since}: it could not be loaded ({failed.first.place}); its "
            "groups are as the log has them, and serve no client"
        )


def stored_not_loaded(tables: TableReader, cluster: str) -> Iterator[str]:
    """Return in words which log partitions have no coordinator, as lines in the tables say."""
    lines = [line for line in other_lines(tables, cluster) if line.kind in ABOUT_LOADS]
    return not_loaded(lines, _last_ms(tables, cluster) if lines else {})


def _last_ms(tables: TableReader, cluster: str) -> dict[int, int]:
    """Return the time of the last record of each log partition of groups (ms)."""
    rows = tables.rows(
        "SELECT log_partition, max(last_ms) AS last_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic = :topic AND last_ms IS NOT NULL GROUP BY log_partition",
        cluster=cluster,
        topic=GROUP_LOG,
    )
    return {row["log_partition"]: row["last_ms"] for row in rows}


ABOUT_LOADS: Final = (EventKind.COORDINATOR_FAILED, EventKind.COORDINATOR_LOADED, EventKind.COORDINATOR_UNLOADED)
ABOUT_REMOVALS: Final = tuple(
    kind.value
    for kind in (
        EventKind.OFFSET_EXPIRED,
        EventKind.CLEANED_UP,
        EventKind.OFFSETS_DELETED,
        EventKind.OFFSETS_REMOVED,
        EventKind.GROUP_DELETED,
    )
)
"""The kinds of lines that say why offsets were removed."""


def lines_about_removals(tables: TableReader, cluster: str) -> dict[str | None, list[BrokerEvent]]:
    """Return the lines that say why offsets were removed, by the group that they name (None: they name none)."""
    by_group: defaultdict[str | None, list[BrokerEvent]] = defaultdict(list)
    read = reader(BrokerEvent)
    sql = f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND kind IN :kinds"
    for row in known_rows(tables, sql, cluster=cluster, kinds=ABOUT_REMOVALS):
        by_group[row["group_id"]].append(read(row))
    return dict(by_group)
