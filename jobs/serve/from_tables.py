"""Answers of the page from the tables: each is a query of the rows that it shows, and nothing else is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from coordinator_core.audit.finding_rows import FindingRow, listed, urgency
from coordinator_core.audit.folds.commit_counts import HOUR_MS, CommitCount, coarsened, fitting_length
from coordinator_core.errors import InputError
from coordinator_core.records import Family
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.groups import report_histories
from jobs.relations.logs import topics_at_end
from jobs.relations.up_to_date import newest_run_in
from jobs.report.build import BUCKETS_MS, MOST_BUCKETS, MOST_FINDINGS, MOST_NIGHTS, bands_of, reported_features
from jobs.report.data import FORMAT, Bucket, Count, GroupDetail, Report
from jobs.report.group_page import detail
from jobs.report.stored import stored_checks, stored_coverage, stored_ends
from jobs.serve.from_logs import MOST_FOUND
from jobs.serve.group_settings import settings_at
from jobs.serve.group_times import FOREVER_MS, OFFSETS, newest
from jobs.serve.offsets import offsets_at
from jobs.serve.served_rows import FoundRow, GroupAt, GroupsPage, ServedOffset, ServedSettings
from jobs.serve.site import GroupsAsked
from jobs.settings import Settings
from jobs.sources.files import FAMILIES
from jobs.tables.night_rows import stored_nights
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader
from jobs.versions import software_version

REFRESH_S: Final = 60.0
"""The tables are opened again after so long: a night may have filled them further."""
WAIT_S: Final = 20.0
"""A question waits at most so long for the one before."""

COUNTED: Final = """
SELECT group_id, count(*) AS findings FROM $findings
WHERE cluster = :cluster AND group_id IS NOT NULL GROUP BY group_id
"""
KNOWN: Final = """
SELECT DISTINCT group_id FROM $group_states WHERE cluster = :cluster
UNION SELECT DISTINCT group_id FROM $commit_summaries WHERE cluster = :cluster AND hour_ms IS NULL
"""
CHANGED: Final = """
k.group_id IN (
  SELECT e.group_id FROM $group_epochs AS e WHERE e.cluster = :cluster
    AND e.opened.timestamp_ms > :first_ms AND e.opened.timestamp_ms <= :last_ms
  UNION SELECT m.group_id FROM $memberships AS m WHERE m.cluster = :cluster
    AND (m.joined.timestamp_ms > :first_ms AND m.joined.timestamp_ms <= :last_ms
      OR m.left.timestamp_ms > :first_ms AND m.left.timestamp_ms <= :last_ms))
"""
NEWEST: Final = """
SELECT group_id, group_type, epoch, opened_ms, log_offset, ended_ms FROM (
  SELECT e.group_id, e.group_type, e.epoch, e.opened.timestamp_ms AS opened_ms, e.opened.offset AS log_offset,
    e.ended.timestamp_ms AS ended_ms, row_number() OVER (
      PARTITION BY e.group_id ORDER BY e.opened.timestamp_ms DESC, e.opened.offset DESC) AS nth
  FROM $group_epochs AS e WHERE e.cluster = :cluster AND {among}
) AS numbered WHERE nth = 1
"""
AMONG: Final = "e.group_id IN :groups AND e.group_id >= :low AND e.group_id <= :high"
"""Rows of a group lie together in each file: of a range of ids few pages of a file are read, of a list all of them."""
EPOCHS: Final = NEWEST.format(
    among=f"{AMONG} AND e.opened.timestamp_ms <= :at_ms "
    "AND (e.ended.timestamp_ms IS NULL OR e.ended.timestamp_ms > :at_ms)"
)
MEMBERS: Final = """
SELECT m.group_id AS group_id, count(*) AS members FROM $memberships AS m WHERE m.cluster = :cluster
AND m.group_id IN :groups AND m.group_id >= :low AND m.group_id <= :high AND m.joined.timestamp_ms <= :at_ms
AND (m.left.timestamp_ms IS NULL OR m.left.timestamp_ms > :at_ms) GROUP BY m.group_id
"""
REBALANCES: Final = """
SELECT r.group_id AS group_id,
  CAST(sum(CASE WHEN r.at.timestamp_ms <= :at_ms THEN 1 ELSE 0 END) AS BIGINT) AS rebalances,
  max(CASE WHEN r.began_before_ms <= :at_ms AND (r.finished.timestamp_ms > :at_ms
    OR r.finished.timestamp_ms IS NULL AND (r.outcome = 'open' OR r.at.timestamp_ms > :at_ms))
    THEN r.to_epoch END) AS rebalancing_to
FROM $rebalances AS r WHERE r.cluster = :cluster AND r.group_id IN :groups
AND r.group_id >= :low AND r.group_id <= :high GROUP BY r.group_id
"""
OUTCOMES: Final = """
SELECT r.at.timestamp_ms - r.at.timestamp_ms % :length AS since_ms, r.outcome AS outcome, count(*) AS rebalances
FROM $rebalances AS r WHERE r.cluster = :cluster GROUP BY r.at.timestamp_ms - r.at.timestamp_ms % :length, r.outcome
"""
COMMITS: Final = """
SELECT hour_ms, CAST(sum(written) AS BIGINT) AS records FROM $commit_summaries
WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0 GROUP BY hour_ms
"""
TYPES: Final = f"""
SELECT coalesce(t.group_type, '{OFFSETS}') AS name, count(*) AS groups FROM ({KNOWN}) AS k
LEFT JOIN ({NEWEST.format(among="TRUE")}) AS t ON k.group_id = t.group_id
GROUP BY coalesce(t.group_type, '{OFFSETS}')
"""
FOUND: Final = {
    "group": f"SELECT group_id AS name, group_id, CAST(NULL AS BIGINT) AS at_ms FROM ({KNOWN}) AS k "
    "WHERE instr(lower(group_id), :find) > 0",
    "member": "SELECT m.member_id AS name, m.group_id AS group_id, max(m.joined.timestamp_ms) AS at_ms "
    "FROM $memberships AS m WHERE m.cluster = :cluster AND (instr(lower(m.member_id), :find) > 0 "
    "OR instr(lower(m.client_id), :find) > 0) GROUP BY m.member_id, m.group_id",
    "host": "SELECT m.client_host AS name, m.group_id AS group_id, max(m.joined.timestamp_ms) AS at_ms "
    "FROM $memberships AS m WHERE m.cluster = :cluster AND instr(lower(m.client_host), :find) > 0 "
    "GROUP BY m.client_host, m.group_id",
    "topic": "SELECT DISTINCT topic AS name, group_id, CAST(NULL AS BIGINT) AS at_ms FROM $commit_summaries "
    "WHERE cluster = :cluster AND hour_ms IS NULL AND instr(lower(topic), :find) > 0 "
    "UNION SELECT DISTINCT topic AS name, group_id, CAST(NULL AS BIGINT) AS at_ms FROM $assignments "
    "WHERE cluster = :cluster AND instr(lower(topic), :find) > 0",
}


class ServedTables:
    """Answers from the tables of one cluster. ``open_reader`` opens them as they are now."""

    def __init__(self, open_reader: Callable[[], TableReader], settings: Settings) -> None:
        self._open, self._settings, self._cluster = open_reader, settings, settings.cluster
        self._lock = Lock()
        self._tables = open_reader()
        self._newest = newest_run_in(self._tables, self._cluster, "runs")
        self._report: Report | None = None
        self._opened_s = time.monotonic()

    def overview(self) -> Report:
        """Return the report without its groups: what is found, when rebalances were, what was read."""
        with self._reader() as tables:
            if self._report is None:
                self._report = self._made(tables)
            return self._report

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        """Return groups at a moment, by id."""
        with self._reader() as tables:
            ids, findings, seen = self._chosen(tables, asked)
            at_ms = FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms
            rows = self._at(tables, ids, findings, at_ms)
            than = () if asked.than_ms is None else self._at(tables, ids, findings, asked.than_ms)
            return GroupsPage(rows, than, asked.first, seen)

    def group(self, group_id: str, since_ms: int | None, until_ms: int | None) -> GroupDetail | None:
        """Return one group; of a window, what lies in it."""
        with self._reader() as tables:
            history = next(report_histories(tables, self._cluster, [group_id]), None)
            if history is None:
                return None
            ends = stored_ends(tables, self._cluster)
            return detail(history, self._settings.findings, ends, since_ms, until_ms)

    def offsets(self, group_id: str, at_ms: int | None) -> Sequence[ServedOffset]:
        """Return committed offsets; the records of the group alone are folded."""
        with self._reader() as tables:
            return offsets_at(StoredAnswers(tables, self._cluster, self._settings.audit), group_id, at_ms)

    def settings(self, group_id: str, at_ms: int | None) -> ServedSettings:
        """Return settings; the metadata log and the snapshots are folded."""
        with self._reader() as tables:
            return settings_at(StoredAnswers(tables, self._cluster, self._settings.audit), group_id, at_ms)

    def search(self, text: str) -> Sequence[FoundRow]:
        """Return where a text occurs, the newest of each kind."""
        with self._reader() as tables:
            found = [
                FoundRow(kind, row["name"], row["group_id"], row["at_ms"])
                for kind, sql in FOUND.items()
                for row in tables.rows(
                    f"SELECT * FROM ({sql}) AS f ORDER BY at_ms DESC, name, group_id LIMIT {MOST_FOUND}",
                    cluster=self._cluster,
                    find=text.lower(),
                )
            ]
            return newest(found, MOST_FOUND)

    def forget(self) -> None:
        """Open the tables again with the next question."""
        self._opened_s = -REFRESH_S

    @contextmanager
    def _reader(self) -> Iterator[TableReader]:
        """Give the tables to one question at a time; they are opened again now and then.

        Raises:
            InputError: the question before takes too long.
        """
        if not self._lock.acquire(timeout=WAIT_S):
            raise InputError("the tables are busy with another question: ask again")
        try:
            if time.monotonic() - self._opened_s > REFRESH_S:
                self._tables, self._opened_s = self._open(), time.monotonic()
                newest = newest_run_in(self._tables, self._cluster, "runs")
                if newest != self._newest:
                    self._report, self._newest = None, newest
            yield self._tables
        finally:
            self._lock.release()

    def _chosen(self, tables: TableReader, asked: GroupsAsked) -> tuple[list[str], dict[str, int], int]:
        """Return the ids of the groups of a page, their findings, and how many groups there are."""
        wanted = ["TRUE"]
        values: dict[str, Any] = {"cluster": self._cluster}
        if asked.find is not None:
            wanted.append("instr(lower(k.group_id), :find) > 0")
            values["find"] = asked.find.lower()
        if asked.only_found:
            wanted.append("u.findings > 0")
        if asked.group_type is not None:
            newest_epochs = NEWEST.format(among="TRUE")
            wanted.append(f"k.group_id IN (SELECT group_id FROM ({newest_epochs}) AS n WHERE group_type = :group_type)")
            values["group_type"] = asked.group_type
        if asked.only_changed and asked.than_ms is not None:
            at_ms = FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms
            wanted.append(CHANGED)
            values |= {"first_ms": min(at_ms, asked.than_ms), "last_ms": max(at_ms, asked.than_ms)}
        has_findings = tables.exists("findings")
        counted = COUNTED if has_findings else "SELECT '' AS group_id, 0 AS findings"
        rows = list(
            tables.rows(
                f"SELECT k.group_id AS group_id, coalesce(u.findings, 0) AS findings, count(*) OVER () AS seen "
                f"FROM ({KNOWN}) AS k LEFT JOIN ({counted}) AS u ON k.group_id = u.group_id "
                f"WHERE {' AND '.join(wanted)} "
                f"ORDER BY k.group_id "
                f"LIMIT {asked.most} OFFSET {asked.first}",
                **values,
            )
        )
        ids = [row["group_id"] for row in rows]
        return ids, {row["group_id"]: row["findings"] for row in rows}, rows[0]["seen"] if rows else 0

    def _at(
        self, tables: TableReader, ids: Sequence[str], findings: Mapping[str, int], at_ms: int
    ) -> tuple[GroupAt, ...]:
        if not ids:
            return ()
        given: dict[str, Any] = {"cluster": self._cluster, "groups": list(ids), "low": min(ids), "high": max(ids)}

        def by_group(sql: str, **values: Any) -> dict[str, Mapping[str, Any]]:
            return {row["group_id"]: row for row in tables.rows(sql, **given, **values)}

        epochs = by_group(EPOCHS, at_ms=at_ms)
        last = by_group(NEWEST.format(among=AMONG)) if len(epochs) < len(ids) else {}
        members, rebalances = by_group(MEMBERS, at_ms=at_ms), by_group(REBALANCES, at_ms=at_ms)
        nothing: Mapping[str, Any] = {}
        return tuple(
            GroupAt(
                group_id=group_id,
                group_type=epochs.get(group_id, last.get(group_id, nothing)).get("group_type", OFFSETS),
                epoch=epochs.get(group_id, nothing).get("epoch"),
                since_ms=epochs.get(group_id, nothing).get("opened_ms"),
                members=members.get(group_id, nothing).get("members", 0),
                rebalances=rebalances.get(group_id, nothing).get("rebalances", 0),
                rebalancing_to=rebalances.get(group_id, nothing).get("rebalancing_to"),
                findings=findings[group_id],
            )
            for group_id in ids
        )

    def _made(self, tables: TableReader) -> Report:
        cluster = self._cluster
        covered = list(stored_coverage(tables, cluster))
        first = min((log.first_ms for log in covered if log.first_ms >= 0), default=None)
        last = max((log.last_ms for log in covered), default=None) if first is not None else None
        span = 0 if first is None or last is None else last - first
        length = next((each for each in BUCKETS_MS if span // each < MOST_BUCKETS - 1), span // (MOST_BUCKETS - 1) + 1)
        buckets: dict[int, list[Count]] = {}
        for row in tables.rows(OUTCOMES, cluster=cluster, length=length):
            if row["since_ms"] >= 0:
                buckets.setdefault(row["since_ms"], []).append(Count(row["outcome"], row["rebalances"]))
        outcomes: dict[str, int] = {}
        for name, count in (each for counts in buckets.values() for each in counts):
            outcomes[name] = outcomes.get(name, 0) + count
        found = self._findings(tables)
        commits = [
            CommitCount(row["hour_ms"], HOUR_MS, row["records"]) for row in tables.rows(COMMITS, cluster=cluster)
        ]
        commit_length = fitting_length(commits[0].since_ms, commits[-1].since_ms, HOUR_MS) if commits else HOUR_MS
        return Report(
            format=FORMAT,
            software=software_version(),
            cluster=cluster,
            made_ms=time.time_ns() // 1_000_000,
            first_ms=first,
            last_ms=last,
            coverage=tuple(covered),
            absent=(),
            warnings=(),
            warnings_seen=0,
            topics_known=any(FAMILIES[log.topic] is Family.METADATA for log in covered),
            types=_counts(tables.rows(TYPES, cluster=cluster), "name", "groups"),
            outcomes=tuple(Count(name, outcomes[name]) for name in sorted(outcomes, key=lambda name: -outcomes[name])),
            verdicts=_counts(
                tables.rows(
                    "SELECT verdict, count(*) AS targets FROM $target_audits WHERE cluster = :cluster GROUP BY verdict",
                    cluster=cluster,
                ),
                "verdict",
                "targets",
            ),
            findings_seen=len(found),
            kinds=_counts(({"kind": row.kind, "one": 1} for row in found), "kind", "one"),
            findings=tuple(sorted(found, key=urgency)[:MOST_FINDINGS]),
            bucket_ms=length,
            activity=tuple(Bucket(since, tuple(sorted(buckets[since])), ()) for since in sorted(buckets)),
            families=(),
            commits=coarsened(commits, commit_length),
            worst=(),
            lag=(),
            groups=(),
            nights=tuple(stored_nights(tables, cluster)[-MOST_NIGHTS:]),
            bands=tuple(bands_of(found)),
            checks=tuple(stored_checks(tables, cluster)),
            features=reported_features(topics_at_end(tables, cluster)),
        )

    def _findings(self, tables: TableReader) -> list[FindingRow]:
        if not tables.exists("findings"):
            return []
        read = reader(FindingRow)
        return listed(map(read, tables.rows("SELECT * FROM $findings WHERE cluster = :cluster", cluster=self._cluster)))


def _counts(rows: Any, name: str, count: str) -> tuple[Count, ...]:
    total: dict[str, int] = {}
    for row in rows:
        total[row[name]] = total.get(row[name], 0) + row[count]
    return tuple(Count(each, total[each]) for each in sorted(total, key=lambda each: (-total[each], each)))
