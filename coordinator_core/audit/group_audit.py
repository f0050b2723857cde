"""All that one pass over a group's records produces: its history, broken rules, and verdicts on its targets; and what
one over its share state does, which is in a log of its own.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from typing import Final, TypeVar, cast

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.rules.known_facts import KnownFacts
from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.rules.share_state import judge_share_state
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.audit_state import TargetAuditState
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.share.state_log import ShareStateRecord
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage, Hole, ReadableCoverage
from coordinator_core.history.grounds import unreadable_record
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.rows import AssignmentRow, HistoryRow, RebalanceRow, SharePartitionRow
from coordinator_core.history.share_partitions import OpenShareHistory, SharePartitionFold
from coordinator_core.records import AnyRecord, Family, LogPosition, RecordType
from coordinator_core.state_json import StateForm

T = TypeVar("T", bound=tuple[object, ...])

DIGEST_BYTES: Final = 8
OF_RESOURCE: Final = AssignmentRow._fields.index("resource") + 1
"""How many columns name what a member has of one topic, subtopology or connector; they are the first ones."""

_text: Final = json.JSONEncoder(separators=(",", ":")).encode


def changed(rows: Iterable[T], known: bytes) -> tuple[list[T], bytes]:
    """Return the rows of which not all columns are ``known``, and digests of all rows, which the next run knows.

    Few records leave most of a group's rows as they are. What a member has of one topic is compared as a whole, as it
    has few columns that differ; each other row by itself.
    """
    before = {known[at : at + DIGEST_BYTES] for at in range(0, len(known), DIGEST_BYTES)}
    now = list[bytes]()
    new = list[T]()
    for _, some in groupby(rows, _together):
        part = [*some]
        # As text, a value is the same whether it was made by this run or read from a state.
        digest = blake2b(_text(part).encode(), digest_size=DIGEST_BYTES).digest()
        now.append(digest)
        if digest not in before:
            new += part
    return new, b"".join(sorted(now))


def _together(row: tuple[object, ...]) -> tuple[object, ...]:
    """Return the same for rows that are compared as a whole."""
    return row[:OF_RESOURCE] if isinstance(row, AssignmentRow) else row


@dataclass(slots=True)
class AuditedState:
    """All that is kept of one group from one run to the next; ``targets`` is None where targets are not judged.

    ``hole`` is the last place of its log of which nothing is known, but for what compaction removed. ``known_rows`` are
    digests of the open rows of its history that ``changed_rows`` last was about.
    """

    group: Group
    history: OpenHistory
    rules: KnownFacts
    targets: TargetAuditState | None
    hole: Hole | None = None
    known_rows: bytes = b""


STATE_FORM: Final = StateForm(AuditedState, "state of a group's audit")


class GroupAudit:
    """One group, changed record by record, and the folds that follow it: history, rules, and the audit of its
    targets.
    """

    __slots__ = ("_coverage", "_group", "_history", "_known_rows", "_rules", "_targets")

    def __init__(
        self,
        history: GroupFold,
        rules: RuleFold,
        targets: TargetAuditor | None,
        coverage: ReadableCoverage,
        known_rows: bytes = b"",
    ) -> None:
        """All of them read the same group, and the same ``coverage``; ``known_rows``: see ``AuditedState``."""
        self._coverage = coverage
        self._group = history.group
        self._history = history
        self._known_rows = known_rows
        self._rules = rules
        self._targets = targets

    @classmethod
    def begin(
        cls,
        group_id: str,
        family: Family,
        topics: TopicHistory | None,
        coverage: Coverage,
        settings: AuditSettings | None,
        *,
        from_start: bool,
    ) -> "GroupAudit":
        """Return the folds of a group before its first record; without ``settings`` its targets are not judged."""
        group = Group(group_id, from_start=from_start, family=family)
        readable = ReadableCoverage(coverage)
        targets = None
        if settings is not None:
            targets = TargetAuditor(group, None, topics, settings, readable)
        known = settings or AuditSettings()
        rules = RuleFold(group, None, readable, topics, known)
        return cls(GroupFold(group, None, topics, readable, known.metadata_age_ms), rules, targets, readable)

    @classmethod
    def resume(
        cls, text: str, topics: TopicHistory | None, coverage: Coverage, settings: AuditSettings
    ) -> "GroupAudit":
        """Continue from what ``state`` returned; raises StateFormatError if it is of another version."""
        stored = STATE_FORM.decode(text)
        group, targets = stored.group, stored.targets
        readable = ReadableCoverage(coverage, stored.hole)
        return cls(
            GroupFold(group, stored.history, topics, readable, settings.metadata_age_ms),
            RuleFold(group, stored.rules, readable, topics, settings),
            None if targets is None else TargetAuditor(group, targets, topics, settings, readable),
            readable,
            stored.known_rows,
        )

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[AuditedRow]:
        """Take in the group's next record, in offset order; return the rows that it makes final. Raises nothing."""
        history, rules, targets = self._history, self._rules, self._targets
        # Offset commits change neither members nor epochs: only history and the rules of committers look at them.
        if record.type <= RecordType.OFFSET_COMMIT:
            history.note_commit(record)
            return [*rules.on_commit(record)]
        # Both folds look at the group before the record and after it; it is applied once, in between.
        known, had = history.before(record), rules.before(record)
        seen = self._group.apply(record)
        rows: list[AuditedRow] = [
            *history.after(record, known, leader_epoch),
            *rules.after(record, had, seen, leader_epoch),
        ]
        if targets is not None:
            rows += targets.after(record, leader_epoch)
        return rows

    def lose(self, hole: Hole) -> list[HistoryRow]:
        """Take in that something of the group may be missing here, which compaction did not remove: offsets that are
        lost, or a record whose key does not tell of which group it is. Return the rows that are final by it.
        """
        self._coverage.lose(hole)
        self._group.from_start = False
        return self._history.lose(hole.at, hole.what)

    def lose_record(self, at: LogPosition, *, is_commit: bool) -> list[HistoryRow]:
        """Take in a record of the group that cannot be decoded, as ``lose`` does; a commit says nothing of members."""
        if not is_commit:
            return self.lose(Hole(at, unreadable_record(at.offset)))
        self._history.lose_commit()
        return []

    @property
    def group(self) -> Group:
        """The group as of the last record."""
        return self._group

    def open_rebalances(self) -> list[RebalanceRow]:
        """Return those of the open rows that are rebalances, without making the others."""
        return list(self._history.open_rebalances())

    def open_memberships(self) -> Collection[OpenMembership]:
        """Return the members that the group has, and those that left within the last operation."""
        return self._history.open_memberships()

    def open_rows(self) -> list[AuditedRow]:
        """Return the rows of everything still open after the last record; later rows with the same keys replace
        them.
        """
        return [*self._history.open_rows(), *self._rules.open_rows()]

    def changed_rows(self) -> list[AuditedRow]:
        """Return the open rows without those of history that an earlier run, of which this one has the state, returned
        here. Violations are all among them.
        """
        rows, self._known_rows = changed(self._history.open_rows(), self._known_rows)
        return [*rows, *self._rules.open_rows()]

    def state(self) -> str:
        """Return what a later run needs to continue, as one JSON text."""
        targets = None if self._targets is None else self._targets.memory
        history, facts = self._history.open_history, self._rules.facts
        return STATE_FORM.encode(
            AuditedState(self._group, history, facts, targets, self._coverage.hole, self._known_rows)
        )


@dataclass(slots=True)
class AuditedShareState:
    """All that is kept of a group's share state from one run to the next; ``known_rows``: see ``AuditedState``."""

    history: OpenShareHistory
    known_rows: bytes = b""


SHARE_STATE_FORM: Final = StateForm(AuditedShareState, "state of share partitions")


class ShareAudit:
    """The share partitions of one group, changed record by record, as ``GroupAudit`` is for a group.

    The records may come partition by partition of the log: all records of a share partition lie in one of them.
    """

    __slots__ = ("_fold", "_known_rows")

    def __init__(self, fold: SharePartitionFold, known_rows: bytes = b"") -> None:
        self._fold = fold
        self._known_rows = known_rows

    @classmethod
    def begin(cls, group_id: str, topics: TopicHistory | None, coverage: Coverage) -> "ShareAudit":
        """The fold of a group of whose share state nothing was read before."""
        return cls(SharePartitionFold(OpenShareHistory(group_id), topics, coverage))

    @classmethod
    def resume(cls, text: str, topics: TopicHistory | None, coverage: Coverage) -> "ShareAudit":
        """Continue from what ``state`` returned; raises StateFormatError if it is of another version."""
        stored = SHARE_STATE_FORM.decode(text)
        return cls(SharePartitionFold(stored.history, topics, coverage), stored.known_rows)

    def feed(self, record: AnyRecord, leader_epoch: int | None = None) -> list[SharePartitionRow | Violation]:
        """The rows that this record makes final; raises nothing. Feed each once, in offset order."""
        of_share_state = cast(ShareStateRecord, record)
        violations = judge_share_state(self._fold.known_before(of_share_state), of_share_state)
        return [*self._fold.feed(of_share_state), *violations]

    def open_rows(self) -> list[SharePartitionRow]:
        """Rows of what lasts as of the last record: a later run replaces them by their keys."""
        return list(self._fold.open_rows())

    def changed_rows(self) -> list[SharePartitionRow]:
        """Return the open rows without those that an earlier run, of which this one has the state, returned here."""
        rows, self._known_rows = changed(self._fold.open_rows(), self._known_rows)
        return rows

    def state(self) -> str:
        """Return what a later run needs to continue, as one JSON text."""
        return SHARE_STATE_FORM.encode(AuditedShareState(self._fold.open_history, self._known_rows))
