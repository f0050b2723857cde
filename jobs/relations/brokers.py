"""Lines of brokers' application logs from the tables; ``queries.from_logs.brokers`` reads the same from files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from jobs.tables.reader import TableReader
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
    if not has_lines(tables):
        return
    among = "group_id IS NOT NULL" if groups is None else "group_id IN :groups"
    read = reader(BrokerEvent)
    for row in tables.rows(
        f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND {among} ORDER BY group_id",
        cluster=cluster,
        groups=groups,
    ):
        yield row["group_id"], read(row)


def other_lines(tables: TableReader, cluster: str) -> tuple[BrokerEvent, ...]:
    """Return the lines that name no group."""
    if not has_lines(tables):
        return ()
    rows = tables.rows(
        f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND group_id IS NULL", cluster=cluster
    )
    return tuple(map(reader(BrokerEvent), rows))


def silent_lines(tables: TableReader, cluster: str) -> int:
    """Return the number of lines whose time is not known, as their zone is not."""
    if not has_lines(tables):
        return 0
    row: Any = next(
        tables.rows(
            f"SELECT count(*) AS lines FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND timestamp_ms IS NULL",
            cluster=cluster,
        )
    )
    return int(row["lines"])


def of_other_clusters(tables: TableReader, cluster: str) -> Iterator[str]:
    """Yield in words which files are of another cluster."""
    if not has_lines(tables):
        return
    for row in tables.rows(
        f"SELECT file, max(members_not_known) AS members FROM ${TABLE} WHERE cluster = :cluster "
        "AND members_not_known IS NOT NULL GROUP BY file ORDER BY file",
        cluster=cluster,
    ):
        yield OTHER_CLUSTER.format(row["file"], row["members"])


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
    if has_lines(tables):
        read = reader(BrokerEvent)
        for row in tables.rows(
            f"SELECT * FROM ${TABLE} WHERE cluster = :cluster AND {USED} AND kind IN :kinds",
            cluster=cluster,
            kinds=ABOUT_REMOVALS,
        ):
            by_group[row["group_id"]].append(read(row))
    return dict(by_group)
