"""Answers from the tables: what is asked is filtered, sorted and cut off by Spark, and only that comes here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.group_history import GroupHistory
from coordinator_core.audit.findings.rows import FindingRow
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.rounds import Round, rounds
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import RebalanceRow
from jobs.pipeline import topics as topic_log
from jobs.pipeline.group_history import histories
from jobs.queries.from_tables.groups import StoredMoment
from jobs.queries.interface import AsOf, GroupsThen, RebalanceFilter
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES
from jobs.tables.row_types import reader

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Answers from the tables of one cluster."""

    tables: Tables
    cluster: str
    audit: AuditSettings

    def at(self, moment: AsOf, group_id: str | None = None) -> GroupsThen:
        """Folded by the workers, from the records of the groups asked for."""
        return StoredMoment(self.tables, self.cluster, moment, group_id)

    def history(self, group_id: str) -> GroupHistory | None:
        """Answer from the tables of history; read nothing for a group that has no state."""
        if self._of(GROUP_STATES.name, group_id).isEmpty():
            return None
        found = histories(self.tables, self.cluster, group_id, for_findings=False)
        return next(iter(found), None)

    def rebalances(self, wanted: RebalanceFilter) -> Sequence[RebalanceRow]:
        """From ``rebalances``."""
        rows = _since(self._of("rebalances", wanted.group_id), wanted.since_ms)
        if wanted.cause is not None:
            rows = rows.where(F.array_contains("causes.kind", wanted.cause))
        order = ["at.timestamp_ms", "at.partition", "at.offset"]
        if wanted.slowest is not None:
            slowest = F.coalesce("duration_min_ms", F.lit(0)).desc()
            return list(_rows(rows.orderBy(slowest, *order).limit(wanted.slowest), RebalanceRow))
        return list(_rows(rows.orderBy(*order), RebalanceRow))

    def group_of(self, partition: int, offset: int) -> str | None:
        """From ``rebalances``."""
        at = (F.col("at.partition") == partition) & (F.col("at.offset") == offset)
        row = self._of("rebalances", None).where(at).select("group_id").first()
        return None if row is None else str(row.group_id)

    def verdicts(self, group_id: str | None, since_ms: int) -> Iterable[TargetAuditRow]:
        """From ``target_audits``, as they were judged when they were replayed."""
        return _rows(_in_order(_since(self._of("target_audits", group_id), since_ms)), TargetAuditRow)

    def violations(self, group_id: str | None, since_ms: int) -> Iterable[Violation]:
        """From ``violations``."""
        return _rows(_in_order(_since(self._of("violations", group_id), since_ms), "rule", "detail"), Violation)

    def findings(self, group_id: str | None) -> Sequence[FindingRow]:
        """From ``findings``, with the thresholds that held when they were made."""
        rows = self._of("findings", group_id)
        return list(_rows(rows.orderBy(F.col("score").desc(), "group_id", "kind", "subject", "since_ms"), FindingRow))

    def rounds(self, group_id: str) -> list[Round]:
        """From the records of the group."""
        then = StoredMoment(self.tables, self.cluster, AsOf(), group_id)
        topics = topic_log.read(self.tables, self.cluster)
        found = [each for group, records in then.records() for each in rounds(records, group, topics, self.audit)]
        return sorted(found, key=lambda each: each.at.timestamp_ms)

    def _of(self, table: str, group_id: str | None) -> DataFrame:
        rows = self.tables.read(CATALOG[table]).where(F.col("cluster") == self.cluster)
        return rows if group_id is None else rows.where(F.col("group_id") == group_id)


def _since(rows: DataFrame, since_ms: int) -> DataFrame:
    return rows.where(F.col("at.timestamp_ms") >= since_ms)


def _in_order(rows: DataFrame, *then: str) -> DataFrame:
    return rows.orderBy("at.timestamp_ms", "at.partition", "at.offset", *then)


def _rows(found: DataFrame, of: type[Row]) -> Iterator[Row]:
    read = reader(of)
    return (read(row.asDict(recursive=True)) for row in found.toLocalIterator())
