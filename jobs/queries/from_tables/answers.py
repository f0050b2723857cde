"""Answers from the tables: what is asked is filtered by the reader of the tables, and only that comes here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from coordinator_core.errors import InputError
from coordinator_core.groups.group_type import GroupType
from coordinator_core.records import CONNECT_LOG, GROUP_LOG
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.queries.interface import (
    CURRENT,
    NO_ENDS,
    NO_LOG_OF_GROUPS,
    AllHistories,
    GroupsThen,
    OwnedBy,
    RebalanceFilter,
    by_time,
    violation_order,
)
from jobs.relations.brokers import NO_ZONE, of_other_clusters, older_copies, silent_lines, stored_not_loaded
from jobs.relations.moment import AsOf
from jobs.relations.replay import NOT_REPLAYED, has_replayed_all
from jobs.relations.unreadable import ignored_types
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import Row, TableReader
from jobs.tables.row_reader import reader

if TYPE_CHECKING:  # what a history consists of is imported once it is asked for: it is half of the core
    from coordinator_core.audit.finding_rows import FindingRow
    from coordinator_core.audit.findings.resets import OffsetReset
    from coordinator_core.audit.folds.group_history import GroupHistory
    from coordinator_core.audit.offsets.burrow import LagPoint
    from coordinator_core.audit.offsets.runs import GroupCommits
    from coordinator_core.audit.rows import TargetAuditRow
    from coordinator_core.audit.settings import AuditSettings
    from coordinator_core.audit.targets.rounds import Round
    from coordinator_core.groups.end_offsets import NewestEnds
    from coordinator_core.groups.violations import Violation
    from coordinator_core.history.knowledge import Knowledge
    from coordinator_core.history.rows import AssignmentRow, RebalanceRow
    from jobs.relations.news import News
    from jobs.sources.bounded_warnings import Warn
    from jobs.sources.end_offsets import EndOffsets

Kind = TypeVar("Kind")


@dataclass(slots=True)
class StoredAnswers:
    """Answers from the tables of one cluster. ``warn`` is called before the first answer for what the logs lack."""

    tables: TableReader
    cluster: str
    audit: AuditSettings
    warn: Warn | None = None
    _known: Knowledge | None = None

    @property
    def cluster_name(self) -> str:
        """The cluster of the tables that is asked about."""
        return self.cluster

    def at(self, moment: AsOf, group_id: str | None = None) -> GroupsThen:
        """Folded from the records of the groups asked for."""
        self.warn_once(of_history=False)
        return StoredMoment(self.tables, self.cluster, moment, group_id)

    def history(self, group_id: str) -> GroupHistory | None:
        """From the tables of history, of which nothing is read for a group that has no state."""
        from jobs.relations.groups import one_history

        self.warn_once(group_id)
        return one_history(self.tables, self.cluster, group_id)

    def resets(self, history: GroupHistory) -> list[OffsetReset]:
        """From ``commit_summaries``: only commits that went back are read."""
        from coordinator_core.audit.findings.resets import offset_resets
        from jobs.relations.commit_sums import rewinds_of_group

        return offset_resets(history, rewinds_of_group(self.tables, self.cluster, history.group_id))

    def commits(self, group_id: str) -> GroupCommits:
        """From ``offset_commits``, joined to runs before they come here."""
        from jobs.relations.commit_runs import stored_commits

        return stored_commits(self.tables, self.cluster, group_id)

    def lag(self, group_id: str | None, ends: EndOffsets | None) -> list[LagPoint]:
        """From ``lag_history``; with other end offsets from ``offset_commits``."""
        from jobs.relations.lag import lag_at, stored_lag

        if ends is not None:
            points = lag_at(self.tables, self.cluster, group_id, ends)
        elif self.tables.exists("lag_history"):
            points = stored_lag(self.tables, self.cluster, group_id)
        else:
            raise InputError(NO_ENDS)
        self.warn_once(of_history=False)
        return points

    def newest_ends(self, until_ms: int | None) -> NewestEnds:
        """From the snapshots that the tables have."""
        from jobs.relations.offsets import newest_ends

        return newest_ends(self.tables, self.cluster, until_ms)

    def rebalances(self, wanted: RebalanceFilter) -> Sequence[RebalanceRow]:
        """From ``rebalances``; of Connect groups that may have been converted from their history, which names that."""
        from coordinator_core.audit.folds.two_logs import told_rebalances
        from coordinator_core.history.rows import RebalanceRow

        converted = self._may_be_converted(wanted.group_id)
        stored = self._rows("rebalances", RebalanceRow, wanted.group_id, wanted.since_ms)
        rows = self._with_lines([row for row in stored if row.group_id not in converted], wanted.group_id)
        # Only what goes on is measured by the ends of the logs, which takes further questions to the tables.
        rows = self._so_far(rows) if any(row.is_open for row in rows) else rows
        for group_id in converted:
            history = self.history(group_id)
            rows += [] if history is None else told_rebalances(history)
        return wanted.choose(rows)

    def members(self, groups: Collection[str]) -> Mapping[str, str]:
        """From ``memberships``."""
        from coordinator_core.audit.folds.client_names import named

        rows = self.tables.rows(
            "SELECT member_id, instance_id, client_id, client_host FROM $memberships AS m "
            "WHERE cluster = :cluster AND group_id IN :groups ORDER BY m.joined.offset",
            cluster=self.cluster,
            groups=sorted(groups),
        )
        # In the order of joining, so that of a member that was there twice the last name stays.
        return {row["member_id"]: named(MemberName(**row)) for row in rows}

    def owned(self, wanted: OwnedBy) -> Sequence[AssignmentRow]:
        """From ``assignments``."""
        from coordinator_core.history.rows import AssignmentRow

        self.warn_once()
        rows = self.tables.rows(
            "SELECT * FROM $assignments WHERE cluster = :cluster AND kind = :kind "
            # Tasks name no topic: all intervals of these groups come, and ``has`` picks those of tasks that read it.
            "AND (topic = :name OR topic_id = :name OR connector = :name OR resource = :name OR group_id IN :groups)",
            cluster=self.cluster,
            kind=CURRENT,
            name=wanted.name,
            groups=[*wanted.subtopologies],
        )
        known = self.knowledge().lost.all_known(map(reader(AssignmentRow), rows))
        return [row for row in known if wanted.has(row)]

    def group_of(self, partition: int, offset: int) -> str | None:
        """From ``rebalances``."""
        self.warn_once()
        rows = self.tables.rows(
            "SELECT r.group_id FROM $rebalances AS r WHERE cluster = :cluster "
            "AND r.at.partition = :partition AND r.at.offset = :offset",
            cluster=self.cluster,
            partition=partition,
            offset=offset,
        )
        return next((row["group_id"] for row in rows), None)

    def verdicts(self, group_id: str | None, since_ms: int) -> Iterable[TargetAuditRow]:
        """From ``target_audits``, as they were judged when they were replayed."""
        from coordinator_core.audit.rows import TargetAuditRow

        return sorted(self._rows("target_audits", TargetAuditRow, group_id, since_ms), key=by_time)

    def violations(self, group_id: str | None, since_ms: int) -> Iterable[Violation]:
        """From ``violations``."""
        from coordinator_core.groups.violations import Violation

        return sorted(self._rows("violations", Violation, group_id, since_ms), key=violation_order)

    def findings(self, group_id: str | None, ends: NewestEnds | None = None) -> Sequence[FindingRow]:
        """From ``findings``, with the thresholds that held when they were made."""
        from coordinator_core.audit.finding_rows import FindingRow, listed

        return listed(self._rows("findings", FindingRow, group_id), group_id)

    def news(self, night: str | None) -> News:
        """From the nights that have ended."""
        from jobs.relations.news import StoredNews, last_end, night_id

        since = last_end(self.tables, None if night is None else night_id(night))
        return StoredNews(self.tables, self.cluster, since)

    def histories(self, ends: NewestEnds | None = None) -> AllHistories:
        """From the tables of each question."""
        every = RebalanceFilter()
        return AllHistories(
            self.rebalances(every),
            list(self.verdicts(None, every.since_ms)),
            list(self.violations(None, every.since_ms)),
            self.findings(None, ends),
        )

    def rounds(self, group_id: str) -> list[Round]:
        """From the records of the group."""
        from coordinator_core.audit.targets.rounds import in_order, rounds

        self.warn_once(group_id, of_shares=False)
        then = StoredMoment(self.tables, self.cluster, AsOf(), group_id)
        topics = then.topics()
        of_groups = (rounds(records, group, topics, self.audit) for group, records in then.records())
        return in_order(chain.from_iterable(of_groups))

    def _with_lines(self, rows: list[RebalanceRow], group_id: str | None) -> list[RebalanceRow]:
        """Return the rebalances with what brokers' application logs add."""
        from jobs.relations.brokers import has_lines, lines_of_groups, other_lines

        if not has_lines(self.tables):
            return rows
        from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
        from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
        from coordinator_core.history.lost_records import NOTHING_LOST
        from coordinator_core.history.rows import MembershipRow

        of_group: defaultdict[str, list[Any]] = defaultdict(list)
        for row in rows:
            of_group[row.group_id].append(row)
        for other, line in lines_of_groups(self.tables, self.cluster, None if group_id is None else [group_id]):
            of_group[other].append(line)
        for member in self._rows("memberships", MembershipRow, group_id):
            of_group[member.group_id].append(member)
        brokers = other_lines(self.tables, self.cluster)
        return [
            row
            for other, known in of_group.items()
            for row in GroupHistory.gather(other, 0, known, NO_TOPICS, NO_SHARE_LOGS, NOTHING_LOST, brokers).rebalances
        ]

    def _so_far(self, rows: Sequence[RebalanceRow]) -> list[RebalanceRow]:
        """Return the rebalances, those in progress with the time that they have lasted."""
        from coordinator_core.audit.folds.group_history import so_far
        from jobs.relations.logs import last_times

        times, lost = last_times(self.tables, self.cluster), self.knowledge().lost
        logs = [CONNECT_LOG if row.group_type == GroupType.CONNECT else GROUP_LOG for row in rows]
        return [so_far(row, times.get((log, row.at.partition), -1), lost) for row, log in zip(rows, logs, strict=True)]

    def _may_be_converted(self, group_id: str | None) -> list[str]:
        """Return the Connect groups that moved from one protocol to the other, or may have.

        They are in two logs, or one log ends them or begins them with a target at once, and nothing shows whether the
        other one, which may not have been given, continues them or was before.
        """
        from coordinator_core.audit.folds.two_logs import GROUP_DELETED

        rows = self.tables.rows(
            "SELECT group_id FROM $group_states WHERE cluster = :cluster AND log_topic IN :topics "
            "GROUP BY group_id HAVING count(DISTINCT log_topic) > 1 "
            "UNION SELECT group_id FROM $rebalances WHERE cluster = :cluster AND group_type = :connect "
            "AND (outcome = :deleted OR target.offset = at.offset + 1)",
            cluster=self.cluster,
            topics=GROUP_TOPICS,
            connect=GroupType.CONNECT,
            deleted=GROUP_DELETED,
        )
        return sorted(row["group_id"] for row in rows if group_id in (None, row["group_id"]))

    def missing(self, group_id: str | None = None, *, of_history: bool = True, of_shares: bool = True) -> Iterator[str]:
        """Yield in words what the logs lack for answers about a group (None: all), of all its past.

        ``of_history`` False: only what no moment says itself. ``of_shares``: the answer tells of share partitions.
        """
        if not has_replayed_all(self.tables, self.cluster):
            yield NOT_REPLAYED
        yield from ignored_types(self.tables, self.cluster)
        yield from older_copies(self.tables, self.cluster)
        yield from stored_not_loaded(self.tables, self.cluster)
        if of_history:
            if silent := silent_lines(self.tables, self.cluster):
                yield NO_ZONE.format(silent)
            yield from of_other_clusters(self.tables, self.cluster)
            known = self.knowledge()
            yield from known.reasons_with_topics(group_id)
            yield from known.about_history()
            yield from self.lacks_of_shares(group_id) if of_shares else ()

    def warn_once(self, group_id: str | None = None, *, of_history: bool = True, of_shares: bool = True) -> None:
        """Warn before the first answer of what the logs lack; the arguments are those of ``missing``.

        Raises InputError where no log of groups was taken in.
        """
        if not self.knowledge().given.partitions:
            raise InputError(f"{self.tables.location}: {NO_LOG_OF_GROUPS}")
        warn, self.warn = self.warn, None
        if warn is not None:
            for reason in self.missing(group_id, of_history=of_history, of_shares=of_shares):
                warn(reason)

    def knowledge(self) -> Knowledge:
        """From the ranges that were read, and from the records that could not be decoded."""
        if self._known is None:
            from jobs.relations.knowledge import stored_knowledge

            self._known = stored_knowledge(self.tables, self.cluster)
        return self._known

    def lacks_of_shares(self, group_id: str | None) -> Sequence[str]:
        """From what was taken in of the log, where share partitions are initialized."""
        from jobs.relations.knowledge import missing_of_shares

        return missing_of_shares(self.knowledge(), self.tables, self.cluster, group_id)

    def _rows(self, table: str, of: type[Kind], group_id: str | None, since_ms: int | None = None) -> Iterator[Kind]:
        """Return the rows of a table about one group or all, as the core has them."""
        self.warn_once(group_id)
        wanted = "cluster = :cluster"
        if group_id is not None:
            wanted += " AND group_id = :group_id"
        if since_ms is not None:
            wanted += " AND t.at.timestamp_ms >= :since_ms"
        given: Row = {"cluster": self.cluster, "group_id": group_id, "since_ms": since_ms}
        read = reader(of)
        rows = self.tables.rows(f"SELECT * FROM ${table} AS t WHERE {wanted}", **given)
        return self.knowledge().lost.all_known(read(row) for row in rows)


class MemberName(NamedTuple):
    """What names the client behind a member."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    client_host: str | None
