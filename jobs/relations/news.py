"""What is new in the tables since a night: findings by the nights that ``known_findings`` names, records by the runs
that brought them, and nights that lacked records which a later one has.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.errors import UsageError
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.violations import Violation
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, LogPosition
from jobs.formatting import parse_time
from jobs.tables.night_rows import ID
from jobs.tables.reader import Row, TableReader, known_rows

STEPS: Final = "SELECT night, ended, started_at, seconds FROM $nightly_steps WHERE night < :before"
CHANGED: Final = """
SELECT group_id, kind, subject, since_ms FROM $known_findings WHERE cluster = :cluster AND changed_in > :since
"""
FOUND: Final = CHANGED.replace("changed_in", "found_in")
ADDED: Final = """
SELECT log_topic, log_partition, first_offset, last_offset FROM $log_ranges
WHERE cluster = :cluster AND run_id > :since AND log_topic IN :logs
"""
OF_CONNECT: Final = """
SELECT DISTINCT group_id FROM $group_states WHERE cluster = :cluster AND log_topic = :log
"""
PRESENT: Final = """
SELECT group_id, group_type, epoch FROM $group_epochs WHERE cluster = :cluster AND is_open
"""
NO_NIGHT: Final = ""
"""Before all nights."""

Range = tuple[int, int]


class News:
    """Whether something is new, or goes on: of logs that nothing was known of before, all is new."""

    def has_finding(self, row: FindingRow) -> bool:
        """Return whether the finding is new, has grown, or goes on."""
        return True

    def is_first_seen(self, row: FindingRow) -> bool:
        """Return whether the finding was not there before."""
        return True

    def has_violation(self, row: Violation) -> bool:
        """Return whether the record that breaks the rule is new."""
        return True

    def has_verdict(self, row: TargetAuditRow) -> bool:
        """Return whether the target is new, or still in force."""
        return True


class StoredNews(News):
    """What the tables have of a cluster that they had not at a time, which is given as the id of a run (``since``)."""

    def __init__(self, tables: TableReader, cluster: str, since: str) -> None:
        self._tables, self._cluster, self._since = tables, cluster, since
        self._keys: dict[str, set[tuple[str | None, str, str | None, int]]] = {}
        self._ranges: Mapping[tuple[str, int], Sequence[Range]] | None = None
        self._present: set[tuple[str, str, int]] | None = None
        self._of_connect: set[str] | None = None

    def has_finding(self, row: FindingRow) -> bool:
        """Return whether the finding is new, has grown, or goes on."""
        return row.is_open or self._is_among(CHANGED, row)

    def is_first_seen(self, row: FindingRow) -> bool:
        """Return whether no earlier night had the finding."""
        return self._is_among(FOUND, row)

    def has_violation(self, row: Violation) -> bool:
        """Return whether the record that breaks the rule is new."""
        if self._of_connect is None:
            rows = self._tables.rows(OF_CONNECT, cluster=self._cluster, log=CONNECT_LOG)
            self._of_connect = {row["group_id"] for row in rows}
        # A violation does not say of which log its position is, and a group of workers may have records in both.
        logs = (GROUP_LOG, CONNECT_LOG) if row.group_id in self._of_connect else (GROUP_LOG,)
        return any(self._has(log, row.at) for log in ((SHARE_LOG,) if row.rule.in_share_state else logs))

    def has_verdict(self, row: TargetAuditRow) -> bool:
        """Return whether the target is new, or still in force."""
        if self._present is None:
            rows = self._tables.rows(PRESENT, cluster=self._cluster)
            self._present = {(row["group_id"], row["group_type"], row["epoch"]) for row in rows}
        log = CONNECT_LOG if row.group_type == GroupType.CONNECT else GROUP_LOG
        return (row.group_id, row.group_type, row.epoch) in self._present or self._has(log, row.at)

    def _is_among(self, question: str, row: FindingRow) -> bool:
        if not self._tables.exists("known_findings"):
            return True
        if question not in self._keys:
            rows = self._tables.rows(question, cluster=self._cluster, since=self._since)
            self._keys[question] = {(row["group_id"], row["kind"], row["subject"], row["since_ms"]) for row in rows}
        return (row.group_id, row.kind, row.subject, row.since_ms) in self._keys[question]

    def _has(self, log: str, at: LogPosition) -> bool:
        if self._ranges is None:
            ranges: dict[tuple[str, int], list[Range]] = defaultdict(list)
            logs = [GROUP_LOG, CONNECT_LOG, SHARE_LOG]
            for row in self._tables.rows(ADDED, cluster=self._cluster, since=self._since, logs=logs):
                ranges[row["log_topic"], row["log_partition"]].append((row["first_offset"], row["last_offset"]))
            self._ranges = ranges
        return any(first <= at.offset <= last for first, last in self._ranges.get((log, at.partition), ()))


def night_id(text: str) -> str:
    """Return the id of a night, which is given as such or as a time. Raise UsageError if it is neither."""
    try:
        datetime.strptime(text, ID)
    except ValueError:
        time_ms = parse_time(text)
    else:
        return text
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime(ID)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"invalid night {text!r}: no calendar has that time") from None


class _Night(NamedTuple):
    night: str
    ended_at: datetime
    has_failed: bool


def last_end(tables: TableReader, night: str | None = None) -> str:
    """Return when the last night before a night ended of which no step failed, as the id of a run; before all nights if
    there is none.

    ``night`` None: the newest night that has ended. A night that was killed or failed may have shown nobody what was
    new: it is for the next one.
    """
    if not tables.exists("nightly_steps"):
        return NO_NIGHT
    if night is None:
        (newest,) = tables.rows("SELECT max(night) AS night FROM $nightly_steps")
        night = newest["night"] or NO_NIGHT
    ends: dict[str, _Night] = {}
    for row in tables.rows(STEPS, before=night):
        ended_at = row["started_at"] + timedelta(seconds=row["seconds"])
        known = ends.get(row["night"], _Night(row["night"], ended_at, has_failed=False))
        has_failed = known.has_failed or row["ended"] == "failed"
        ends[row["night"]] = _Night(row["night"], max(known.ended_at, ended_at), has_failed)
    good = [each for each in ends.values() if not each.has_failed]
    return max(good).ended_at.strftime(ID) if good else NO_NIGHT


READ: Final = """
SELECT run_id, log_topic, log_partition, min(first_offset) AS first_offset, max(last_offset) AS last_offset,
  min(first_ms) AS first_ms, max(last_ms) AS last_ms
FROM $log_ranges WHERE cluster = :cluster GROUP BY run_id, log_topic, log_partition
"""
"""What each run has added of a log partition."""


def late_records(tables: TableReader, cluster: str, nights: Sequence[str]) -> dict[str, list[str]]:
    """Return by night the log partitions of which it lacked records that a later one has.

    They lie before the last offset that the night had read; of a partition of which it had nothing, they are older than
    its newest record. ``nights`` are ids in order of time; a night without such records is left out.
    """
    rows = list(known_rows(tables, READ, cluster=cluster))
    found = {night: _late(rows, until) for night, until in pairwise(nights)}
    return {night: late for night, late in found.items() if late}


def _late(rows: Sequence[Row], until: str) -> list[str]:
    """Return the log partitions of which runs from ``until`` on have records from before what earlier runs have."""
    last: dict[tuple[str, int], int] = {}
    newest_ms = -1
    for row in rows:
        if row["run_id"] < until:
            place = row["log_topic"], row["log_partition"]
            last[place] = max(row["last_offset"], last.get(place, -1))
            newest_ms = max(newest_ms, row["last_ms"] or -1)
    late = set()
    for row in rows:
        place = row["log_topic"], row["log_partition"]
        if row["run_id"] >= until and (
            row["first_offset"] <= last[place]
            if place in last
            else row["first_ms"] is not None and row["first_ms"] <= newest_ms
        ):
            late.add(place)
    return [f"{topic}-{partition}" for topic, partition in sorted(late)]
