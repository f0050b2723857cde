"""One group of a log that is still written: its folds, its newest rows, and what was reported of it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.of_cluster import NO_SIGNS, ClusterSigns
from coordinator_core.audit.folds.client_names import OfClient, named
from coordinator_core.audit.folds.group_folds import GroupFolds
from coordinator_core.audit.folds.group_history import GatheredRow
from coordinator_core.audit.folds.tallies import GroupTallies
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.rows import MembershipRow, RebalanceRow
from jobs.watch.events import GroupKey, RebalanceBegan, RebalanceEnded, Reported
from jobs.watch.new_rows import LogPlace

MOST_ROWS: Final = 1_000
"""So many rows are kept of any group."""
MOST_REBALANCES: Final = 12
"""Of a large group as many rows are kept as this many rebalances make in which all of its work moves."""
SLACK: Final = 1.25
"""Rows are dropped when there are this many times as many: seldom, and many at once."""


@dataclass(slots=True)
class KeptRows:
    """Rows in the order in which they became final, and the number of the record that made them so.

    A row becomes final when what it tells is over. So the oldest rows are what was over first, and what is kept is
    whole from some record on: rows that one record made final are kept or dropped together. ``size`` is their number,
    ``fed`` that of all records that made rows final, also of dropped ones.
    """

    limit: int = MOST_ROWS
    size: int = 0
    fed: int = 0
    _parts: deque[tuple[int, Sequence[AuditedRow]]] = field(default_factory=deque)

    def __iter__(self) -> Iterator[AuditedRow]:
        for _, rows in self._parts:
            yield from rows

    def add(self, rows: Sequence[AuditedRow]) -> None:
        """Keep the rows that a record made final."""
        self.fed += 1
        self._parts.append((self.fed, rows))
        self.size += len(rows)

    @property
    def is_full(self) -> bool:
        """Whether rows are to be dropped: call ``drop_oldest``."""
        return self.size > self.limit * SLACK

    def drop_oldest(self, open_rows: int) -> None:
        """Drop the oldest rows of a group that has so many open rows now."""
        self.limit = max(MOST_ROWS, MOST_REBALANCES * open_rows)
        while self.size > self.limit and len(self._parts) > 1:
            self.size -= len(self._parts.popleft()[1])

    @property
    def first(self) -> int:
        """The number of the first record whose rows are kept."""
        return self._parts[0][0] if self._parts else self.fed + 1

    def since(self, number: int) -> list[tuple[int, Sequence[AuditedRow]]]:
        """Return the rows of records behind that number, by the numbers of their records."""
        batches = []
        for part in reversed(self._parts):
            if part[0] <= number:
                break
            batches.append(part)
        return batches[::-1]

    def restore(self, parts: Iterable[tuple[int, Sequence[AuditedRow]]]) -> None:
        """Take rows that were stored, in their order."""
        for number, rows in parts:
            self._parts.append((number, rows))
            self.size += len(rows)
            self.fed = number


MOST_VERDICTS: Final = 16
"""So many verdicts wait for the end of their rebalance."""


@dataclass(slots=True)
class FollowedGroup:
    """A group and its folds. ``findings`` are those of the last look, ``signs`` what that shows of the cluster.

    ``ended`` are rebalances that are over and not reported yet. ``stored`` is the number of the last record whose rows
    are in the state file, ``is_changed`` whether anything came since, ``fed`` the number of its records that this watch
    has read.
    """

    key: GroupKey
    place: LogPlace
    folds: GroupFolds
    kept: KeptRows = field(default_factory=KeptRows)
    tallies: GroupTallies = field(default_factory=GroupTallies)
    reported: Reported = field(default_factory=Reported)
    findings: list[FindingRow] = field(default_factory=list)
    signs: ClusterSigns = NO_SIGNS
    ended: list[RebalanceRow] = field(default_factory=list)
    verdicts: deque[TargetAuditRow] = field(default_factory=lambda: deque(maxlen=MOST_VERDICTS))
    stored: int = 0
    fed: int = 0
    is_changed: bool = True

    @property
    def group_id(self) -> str:
        """The id of the group."""
        return self.key[1]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the group: no member, no epoch, and no offset."""
        commits = self.folds.commits.memory
        has_offsets = commits.pending or any(partition.offset is not None for partition in commits.partitions)
        return self.folds.audit.group.state is None and not has_offsets

    def keep(self, final: Sequence[AuditedRow]) -> None:
        """Take the rows, if any, that became final with what the folds were fed."""
        self.is_changed = True
        if not final:
            return
        self.kept.add(final)
        for row in final:
            self.tallies.note(row)
            if isinstance(row, RebalanceRow):
                self.ended.append(row)
            elif isinstance(row, TargetAuditRow):
                self.verdicts.append(row)
        if self.kept.is_full:
            self.kept.drop_oldest(len(self.folds.audit.open_rows()))

    def rebalances(self, *, is_settled: bool) -> Iterator[RebalanceBegan | RebalanceEnded]:
        """Yield the group's rebalances that are not reported yet, in the order of the log; they count as reported then.

        The work does not grow with those that were reported before. ``is_settled``: the last operation is whole, and
        what ended with it is over.
        """
        ended, self.ended = self.ended, []
        final = [(row, True) for row in ended]
        so_far = [(row, is_settled and row.finished is not None) for row in self.folds.audit.open_rebalances()]
        for row, is_over in sorted((*final, *so_far), key=lambda each: each[0].at.offset):
            event = RebalanceBegan(self.key, row)
            if row.at.offset > self.reported.began:
                self.reported.note(event)
                yield event
            if is_over and row.at.offset > self.reported.ended:
                over = RebalanceEnded(
                    self.key,
                    row._replace(is_open=False),
                    next((verdict for verdict in self.verdicts if verdict.at == row.target), None),
                )
                self.reported.note(over)
                yield over

    def show(self, rows: list[FindingRow], signs: ClusterSigns) -> bool:
        """Take the findings of a look, and its signs of the cluster; return whether what is said of that changes."""
        storms = [[row for row in each if row.kind == FindingKind.REBALANCE_STORM] for each in (rows, self.findings)]
        is_other = signs != self.signs or storms[0] != storms[1]
        self.findings, self.signs = rows, signs
        return is_other

    def members(self) -> dict[str, str]:
        """Return the names of the clients behind its members, with their ids, as far as they are kept; by member id."""
        gone = (row for row in self.kept if isinstance(row, MembershipRow))
        return {row.member_id: named(row) for row in chain[OfClient](gone, self.folds.audit.open_memberships())}

    def rows(self, topics: TopicHistory | None) -> Iterator[GatheredRow]:
        """Yield what is known of the group: the newest rows, what is open, and its commits."""
        memory = self.folds.commits.memory
        if topics is not None:
            gone = {partition.topic for partition in memory.partitions if partition.removals}
            for topic, deleted_ms in topics.deletions(sorted(gone)):
                self.folds.commits.topic_deleted(topic, deleted_ms)
        return chain[GatheredRow](self.kept, self.folds.open_rows())
