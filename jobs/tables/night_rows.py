"""What each night found, for the trend between nights, and how it is read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind
from jobs.formatting import milliseconds
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

UNSTABLE: Final = frozenset(
    (
        FindingKind.REBALANCE_STORM,
        FindingKind.NEVER_CONVERGES,
        FindingKind.NOT_READY,
        FindingKind.FLAPPING_MEMBER,
        FindingKind.STATIC_MEMBER_FENCED,
        FindingKind.ASSIGNOR_FAILED,
    )
)
"""Findings that say that a group does not run stably."""

LAGGING: Final = ("WARN", "STOP", "STALL", "REWIND")
"""Burrow's statuses of a partition whose consumer does not keep up."""


ID: Final = "%Y%m%dT%H%M%S.%fZ"
"""The form of the id of a run: the time at which it began."""


class NightRow(NamedTuple):
    """What one night found in one cluster, at the end of the log. Null: unknown, as the night did not count it."""

    night: Annotated[str, "id of the nightly run; sorts by time"]
    ended_ms: Annotated[int, "when it was counted"]
    groups: Annotated[int | None, "groups that were there"]
    rebalances: Annotated[int | None, "rebalances in the log so far"]
    new_rebalances: Annotated[int | None, "rebalances since the night before; null: it is the first that counted"]
    findings: Annotated[int | None, "findings"]
    violations: Annotated[int | None, "violations in the log so far"]
    new_violations: Annotated[int | None, "violations since the night before; null: it is the first that counted"]
    wrong_targets: Annotated[int | None, "targets so far with the verdict divergent or invalid"]
    unstable: Annotated[int | None, "groups that do not run stably, by their findings"]
    total_lag: Annotated[int | None, "sum of the known lag at the last snapshots"]
    max_lag: Annotated[int | None, "the highest of these; null: none is known"]
    lagging: Annotated[int | None, "partitions that were WARN, STOP, STALL or REWIND at their last snapshot"]


def stored_nights(tables: TableReader, cluster: str) -> list[NightRow]:
    """Return the nights of a cluster in order of time.

    A night from before the table ``nights`` existed has no counts: they are None.
    """
    counted: list[Mapping[str, object]] = []
    first = None
    if tables.exists("nights"):
        counted += tables.rows("SELECT * FROM $nights WHERE cluster = :cluster", cluster=cluster)
        (of_all,) = tables.rows("SELECT min(night) AS first FROM $nights")
        first = of_all["first"]
    rows = sorted(map(reader(NightRow), counted))
    earlier: list[NightRow] = []
    if tables.exists("nightly_steps"):
        nights = {row["night"] for row in tables.rows("SELECT DISTINCT night FROM $nightly_steps")}
        earlier = [unknown_night(night) for night in sorted(nights) if first is None or night < first]
    return [*earlier, *_with_new(rows)]


def unknown_night(night: str) -> NightRow:
    """Return the row of a night that counted nothing."""
    began = datetime.strptime(night, ID).replace(tzinfo=UTC)
    return NightRow(night, milliseconds(began), *[None] * (len(NightRow._fields) - 2))


def _with_new(rows: list[NightRow]) -> list[NightRow]:
    """Set what is new since the night before, which is not stored: a night may be counted again."""
    later = [
        row._replace(
            new_rebalances=_difference(row.rebalances, before.rebalances),
            new_violations=_difference(row.violations, before.violations),
        )
        for before, row in pairwise(rows)
    ]
    return [*rows[:1], *later]


def _difference(now: int | None, before: int | None) -> int | None:
    """Return how many more there are; None if it is unknown, or if the history was made again and has fewer."""
    return None if now is None or before is None or now < before else now - before
