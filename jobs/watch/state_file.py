"""The file from which a watch goes on: how far it read, the folds and rows of each group, and what was printed since.

It is a database of SQLite. ``save`` writes all that changed in one transaction, so that a watch that is killed
leaves what the last one wrote. What is printed between two of them is noted line by line: before a line is printed, and
after it. A watch that goes on reads the records since the last save again, and does not print their
lines again. If it was killed between the two notes of a line, it is not known whether the line was printed: it is
printed again, and says so.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from coordinator_core.audit.folds.commit_times import CommitCountFold
from coordinator_core.audit.folds.commits import CommitFold, CommitMemory
from coordinator_core.audit.folds.group_folds import GroupFolds, RecordSizeFold, SizeMemory
from coordinator_core.audit.folds.share_deliveries import DeliverySum
from coordinator_core.audit.folds.tallies import GroupTallies
from coordinator_core.audit.group_audit import GroupAudit, ShareAudit
from coordinator_core.audit.offsets.burrow import TimedCommit
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.errors import InputError, StateFormatError
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage, Hole
from coordinator_core.history.lost_records import UnreadableOffsets
from coordinator_core.history.rows import (
    AssignmentRow,
    GroupEpochRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
)
from coordinator_core.records import Family
from coordinator_core.state_json import VERSION, StateForm
from jobs.sources.files import FAMILIES
from jobs.watch.events import FindingEvent, GroupKey, LagChanged, RebalanceBegan, Reported, ReportedFinding, WatchEvent
from jobs.watch.followed_group import FollowedGroup
from jobs.watch.followed_groups import MOST_RANGES, FollowedGroups
from jobs.watch.followed_log import FollowedLog, LastRow, Reached
from jobs.watch.followed_share_state import FollowedShareState
from jobs.watch.live_topics import TopicList
from jobs.watch.new_rows import LogPlace

FORM: Final = f"6.{VERSION}"
"""The form of the file: that of its tables, and that of stored state."""

OF_PLACE: Final = frozenset(
    (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY)
)
"""Codes of errors that say nothing of what is in the file."""

BUSY_S: Final = 0.5
"""How long another process that has the file open is waited for."""

TABLES: Final = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE logs (topic TEXT, partition INTEGER, state TEXT NOT NULL, PRIMARY KEY (topic, partition));
CREATE TABLE groups (family TEXT, group_id TEXT, state TEXT NOT NULL, PRIMARY KEY (family, group_id));
CREATE TABLE shares (group_id TEXT PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE rows (
  family TEXT, group_id TEXT, number INTEGER, state TEXT NOT NULL, PRIMARY KEY (family, group_id, number)
);
CREATE TABLE topics (number INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT NOT NULL, is_printed INTEGER NOT NULL);
"""


@dataclass(slots=True)
class StoredReports:
    """What was reported of a group or of the cluster."""

    began: int
    ended: int
    lag: str | None
    findings: list[ReportedFinding]

    @classmethod
    def of(cls, reported: Reported) -> "StoredReports":
        """Return the form in which it is stored."""
        return cls(reported.began, reported.ended, reported.lag, list(reported.findings.values()))

    def reported(self) -> Reported:
        """Return it as a watch has it."""
        findings = {(finding.kind, finding.subject): finding for finding in self.findings}
        return Reported(self.began, self.ended, findings, self.lag)


@dataclass(slots=True)
class StoredGroup:
    """A group without its rows; ``audit`` is what ``GroupAudit.state`` gave, ``window`` are its last commits."""

    topic: str
    partition: int
    audit: str
    commits: CommitMemory
    counts: CommitCountFold | None
    sizes: SizeMemory
    tallies: GroupTallies
    verdicts: list[TargetAuditRow]
    told: StoredReports
    window: list[tuple[TopicPartition, list[TimedCommit]]]


@dataclass(slots=True)
class StoredShareState:
    """The share state of a group; ``audit`` is what ``ShareAudit.state`` gave."""

    audit: str
    sums: list[DeliverySum]
    violations: list[Violation]


@dataclass(slots=True)
class StoredLog:
    """How far a log partition was read."""

    from_start: bool
    last: LastRow
    last_ms: int
    lost: list[tuple[int, int]]
    unreadable: UnreadableOffsets
    hole: Hole | None
    ranges: list[tuple[int, int]]


@dataclass(slots=True)
class StoredRows:
    """Rows that one record made final."""

    epochs: list[GroupEpochRow] = field(default_factory=list)
    rebalances: list[RebalanceRow] = field(default_factory=list)
    memberships: list[MembershipRow] = field(default_factory=list)
    assignments: list[AssignmentRow] = field(default_factory=list)
    initializations: list[ShareInitializationRow] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    targets: list[TargetAuditRow] = field(default_factory=list)

    def lists(self) -> dict[type, list[Any]]:
        """Return the lists by the type of their rows."""
        return {kind: getattr(self, name) for kind, name in _LISTS.items()}


_LISTS: Final = {get_args(hint)[0]: name for name, hint in get_type_hints(StoredRows).items()}
GROUP: Final = StateForm(StoredGroup, "group of a watch")
SHARE: Final = StateForm(StoredShareState, "share state of a watch")
LOG: Final = StateForm(StoredLog, "log partition of a watch")
ROWS: Final = StateForm(StoredRows, "rows of a watch")
TOPICS: Final = StateForm(TopicList, "topics of a watch")
REPORTS: Final = StateForm(StoredReports, "report of a watch")
OTHERS: Final = "told "
"""How the names begin under which ``about`` has what was reported of others than the stored groups."""


class StateFile:
    """The state of one watch; no other process can use the file meanwhile."""

    def __init__(self, file: Path, cluster: str) -> None:
        """Open or make the file; ``cluster`` identifies the cluster that is watched, empty for a folder.

        Raises:
            InputError: it is something else, of another release or cluster, or another watch uses it.
        """
        self._file = file
        self._doubtful: dict[str, str] = {}
        try:
            # Otherwise Python would begin transactions of its own, and the note of a line would wait for the next save.
            self._database = sqlite3.connect(file, BUSY_S, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(error) from error
        try:
            with self._guarded():
                self._open(cluster)
        except InputError:
            self.close()
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise InputError for what a damaged file, another one, or its place gives."""
        try:
            yield
        except (sqlite3.Error, StateFormatError, ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise self._refusal(error) from error

    @property
    def is_new(self) -> bool:
        """Whether nothing was saved yet."""
        with self._guarded():
            return self._value("saved") is None

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _open(self, cluster: str) -> None:
        run = self._database.execute
        # Two watches with one file would each take the other's lines for its own.
        run("PRAGMA locking_mode = EXCLUSIVE")
        # What is written survives the end of this process; a loss of power may take the newest, but leaves it whole.
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN EXCLUSIVE")
        if not run("SELECT 1 FROM sqlite_master").fetchone():
            for statement in filter(str.strip, TABLES.split(";")):
                run(statement)
            run("INSERT INTO about VALUES ('form', ?), ('cluster', ?)", (FORM, cluster))
        run("COMMIT")
        form, of = self._value("form"), self._value("cluster")
        if form != FORM:
            raise InputError(
                f"{self._file}: the state of a watch in form {form}, this release has {FORM}: remove the file to "
                "begin again with what happens from now on"
            )
        if of != cluster:
            raise InputError(
                f"{self._file}: the state of a watch of cluster {of or 'in a folder'}, not of "
                f"{cluster or 'one in a folder'}: use another file"
            )

    def _value(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _refusal(self, error: Exception) -> InputError:
        if "locked" in str(error):
            return InputError(f"{self._file}: another watch uses it")
        # The low byte of a code is its cause.
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in OF_PLACE:
            return InputError(f"{self._file}: cannot be read or written: {error}")
        return InputError(f"{self._file}: not the state of a watch: {error}")

    # --- lines -------------------------------------------------------------------------------------------------------

    def begin_line(self, event: WatchEvent) -> int:
        """Note that an event is about to be printed; return the number for ``end_line``.

        Raises:
            InputError: the file cannot be written; so does ``end_line``.
        """
        with self._guarded():
            cursor = self._database.execute("INSERT INTO lines (line, is_printed) VALUES (?, 0)", (_line(event),))
            return int(cursor.lastrowid or 0)

    def end_line(self, number: int) -> None:
        """Note that it was printed."""
        with self._guarded():
            self._database.execute("UPDATE lines SET is_printed = 1 WHERE number = ?", (number,))

    def is_doubtful(self, event: WatchEvent) -> bool:
        """Whether the event may have been printed before, by a watch that was killed meanwhile; asked once."""
        return self._doubtful.pop(_identity(_line(event)), None) is not None

    # --- groups ------------------------------------------------------------------------------------------------------

    def save(self, groups: FollowedGroups) -> None:
        """Store all that changed since the last call, in one transaction. All events were printed.

        Raises:
            InputError: the file cannot be written, or is damaged.
        """
        with self._guarded():
            self._save(groups)

    def _save(self, groups: FollowedGroups) -> None:
        run = self._database.execute
        run("BEGIN IMMEDIATE")
        for log in groups.logs.values():
            run("INSERT OR REPLACE INTO logs VALUES (?, ?, ?)", (*_place(log.place), _encoded_log(log, groups)))
        for group in groups.groups.values():
            if group.is_changed:
                in_this_log = group.key[0] is Family.GROUP
                self._save_group(group, groups.lags.window(group.group_id) if in_this_log else [])
        for family, group_id in run("SELECT family, group_id FROM groups").fetchall():
            if (Family(family), group_id) not in groups.groups:
                for table in ("groups", "rows"):
                    run(f"DELETE FROM {table} WHERE family = ? AND group_id = ?", (family, group_id))
        for (group_id,) in run("SELECT group_id FROM shares").fetchall():
            if group_id not in groups.shares:
                run("DELETE FROM shares WHERE group_id = ?", (group_id,))
        for group_id, share in groups.shares.items():
            if share.is_changed:
                state = StoredShareState(share.audit.state(), list(share.sums.values()), share.violations)
                run("INSERT OR REPLACE INTO shares VALUES (?, ?)", (group_id, SHARE.encode(state)))
                share.is_changed = False
        if groups.live_topics is not None:
            (stored,) = run("SELECT count(*) FROM topics").fetchone()
            for number, listed in enumerate(groups.live_topics.lists[stored:], stored):
                run("INSERT INTO topics VALUES (?, ?)", (number, TOPICS.encode(listed)))
        # One is gone here once the group has a row of its own.
        run("DELETE FROM about WHERE name LIKE 'told %'")
        for (family, group_id), reported in groups.reported.items():
            name = OTHERS + json.dumps([family.value, group_id])
            run("INSERT INTO about VALUES (?, ?)", (name, REPORTS.encode(StoredReports.of(reported))))
        # What was printed is in the saved reports now. Doubtful lines stay until their event comes again.
        run("DELETE FROM lines")
        for line in self._doubtful.values():
            run("INSERT INTO lines (line, is_printed) VALUES (?, 0)", (line,))
        run("INSERT OR REPLACE INTO about VALUES ('saved', '1')")
        run("COMMIT")

    def _save_group(self, group: FollowedGroup, window: list[tuple[TopicPartition, list[TimedCommit]]]) -> None:
        run, name = self._database.execute, (group.key[0].value, group.group_id)
        state = StoredGroup(
            *_place(group.place),
            group.folds.audit.state(),
            group.folds.commits.memory,
            group.folds.counts,
            group.folds.sizes.memory,
            group.tallies,
            list(group.verdicts),
            StoredReports.of(group.reported),
            window,
        )
        run("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (*name, GROUP.encode(state)))
        # Also what a group of this name had that was forgotten meanwhile.
        gone = "DELETE FROM rows WHERE family = ? AND group_id = ? AND (number < ? OR number > ?)"
        run(gone, (*name, group.kept.first, group.stored))
        for number, rows in group.kept.since(group.stored):
            run("INSERT INTO rows VALUES (?, ?, ?, ?)", (*name, number, _encoded_rows(rows)))
        group.stored, group.is_changed = group.kept.fed, False

    def load(self, groups: FollowedGroups) -> None:
        """Give the groups what was saved; topics must be known. Raises InputError if the file is damaged."""
        with self._guarded():
            self._load(groups)

    def reached(self) -> dict[LogPlace, Reached]:
        """Return how far each partition was read."""
        with self._guarded():
            return {place: Reached(log.last, log.from_start) for place, log in self._logs()}

    def _logs(self) -> Iterator[tuple[LogPlace, StoredLog]]:
        for topic, partition, state in self._database.execute("SELECT topic, partition, state FROM logs"):
            yield LogPlace(topic, FAMILIES[topic], partition), LOG.decode(state)

    def _load(self, groups: FollowedGroups) -> None:
        for place, log in self._logs():
            # Its history is not stored: a watch reads the metadata log from its beginning again.
            if place.family is Family.METADATA:
                continue
            followed = groups.log(place, from_start=log.from_start)
            followed.last, followed.last_ms, followed.lost = log.last, log.last_ms, log.lost
            followed.folds.unreadable, followed.folds.hole = log.unreadable, log.hole
            coverage = groups.coverage[place.family]
            coverage.restore(place.partition, log.ranges)
        run = self._database.execute
        if groups.live_topics is not None:
            for (state,) in run("SELECT state FROM topics ORDER BY number"):
                groups.live_topics.put(TOPICS.decode(state))
            # Before the groups: their audits are resumed with the topics that hold.
            groups.use_live_topics()
        for family, group_id, state in run("SELECT family, group_id, state FROM groups"):
            stored = GROUP.decode(state)
            groups.restore(self._group((Family(family), group_id), stored, groups))
            for partition, commits in stored.window:
                for commit in commits:
                    groups.lags.take(group_id, partition, commit)
        for group_id, state in run("SELECT group_id, state FROM shares"):
            share = SHARE.decode(state)
            audit = ShareAudit.resume(share.audit, groups.topics, groups.coverage[Family.SHARE])
            sums = {(delivery.topic_id, delivery.partition): delivery for delivery in share.sums}
            groups.shares[group_id] = FollowedShareState(audit, sums, share.violations, is_changed=False)
        for name, value in run("SELECT name, value FROM about WHERE name LIKE 'told %'"):
            family, group_id = json.loads(name.removeprefix(OTHERS))
            groups.reported[Family(family), group_id] = REPORTS.decode(value).reported()
        # Behind the groups: what was printed after the save counts as reported beside what was saved with them.
        for line, is_printed in run("SELECT line, is_printed FROM lines ORDER BY number"):
            if is_printed:
                _note(groups, json.loads(line))
            else:
                self._doubtful[_identity(line)] = line

    def _group(self, key: GroupKey, stored: StoredGroup, groups: FollowedGroups) -> FollowedGroup:
        family, group_id = key
        place = LogPlace(stored.topic, family, stored.partition)
        group = FollowedGroup(
            key,
            place,
            GroupFolds(
                GroupAudit.resume(stored.audit, groups.topics, groups.coverage[family], groups.settings),
                RecordSizeFold(family, stored.sizes),
                CommitFold(stored.commits),
                stored.counts,
            ),
            tallies=stored.tallies,
            reported=stored.told.reported(),
            is_changed=False,
        )
        group.verdicts.extend(stored.verdicts)
        stored_rows = self._database.execute(
            "SELECT number, state FROM rows WHERE family = ? AND group_id = ? ORDER BY number", (family.value, group_id)
        )
        group.kept.restore(
            (number, [row for rows in ROWS.decode(state).lists().values() for row in rows])
            for number, state in stored_rows
        )
        group.stored = group.kept.fed
        return group


def _place(place: LogPlace) -> tuple[str, int]:
    return place.topic, place.partition


def _encoded_log(log: FollowedLog, groups: FollowedGroups) -> str:
    coverage: Coverage = groups.coverage[log.place.family]
    ranges = coverage.newest_ranges(log.place.partition, MOST_RANGES)
    unreadable, hole = log.folds.unreadable, log.folds.hole
    return LOG.encode(StoredLog(log.from_start, log.last, log.last_ms, log.lost, unreadable, hole, ranges))


def _encoded_rows(rows: Any) -> str:
    stored = StoredRows()
    lists = stored.lists()
    for row in rows:
        lists[type(row)].append(row)
    return ROWS.encode(stored)


def _line(event: WatchEvent) -> str:
    """Return what identifies an event: of a finding its kind, its subject and what happened, and then what is kept."""
    of: list[object]
    match event:
        case FindingEvent():
            known = ReportedFinding.of(event.row)
            of = ["finding", known.kind, known.subject, event.change, *known[2:]]
        case LagChanged():
            of = ["lag", event.row.status]
        case _:
            of = ["began" if isinstance(event, RebalanceBegan) else "ended", event.row.at.offset]
    return json.dumps([event.key[0].value, event.key[1], *of])


def _identity(line: str) -> str:
    """Return what a line has in common with the same event of a later look."""
    parts = json.loads(line)
    # Value and detail of a finding may differ when it is made again; kind, subject and change do not.
    return json.dumps(parts[:6] if parts[2] == "finding" else parts)


def _note(groups: FollowedGroups, line: list[Any]) -> None:
    """Take in that a line was printed after the last save."""
    key = Family(line[0]), line[1]
    reported = groups.groups[key].reported if key in groups.groups else groups.reported.setdefault(key, Reported())
    match line[2:]:
        case ["began", offset]:
            reported.began = max(reported.began, offset)
        case ["ended", offset]:
            reported.ended = max(reported.ended, offset)
        case ["finding", kind, subject, _, *kept]:
            reported.findings[kind, subject] = ReportedFinding(kind, subject, *kept)
        case ["lag", status]:
            reported.lag = status
