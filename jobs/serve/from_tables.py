"""Answers of the page from the tables: each is a query of the rows that it shows, and nothing else is read."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from threading import Lock
from typing import Any, Final

from coordinator_core.audit.finding_rows import FindingRow, listed, urgency
from coordinator_core.audit.folds.commit_counts import HOUR_MS, CommitCount, coarsened, fitting_length
from coordinator_core.audit.folds.two_logs import by_log
from coordinator_core.errors import InputError
from coordinator_core.groups.end_offsets import NewestEnds
from coordinator_core.history.rows import RebalanceRow
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.groups import report_histories
from jobs.relations.knowledge import stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.relations.up_to_date import newest_run_in
from jobs.report.build import (
    MOST_FINDINGS,
    MOST_NIGHTS,
    MOST_WARNINGS,
    MOST_WORST,
    bands_of,
    bucket_length,
    counted_buckets,
    highest_lags,
    reported_features,
    worst_of,
)
from jobs.report.causes import FAMILY_OF, CauseFamily, most_frequent
from jobs.report.coverage import absent
from jobs.report.data import FORMAT, Bucket, Count, GroupDetail, Report, Worst
from jobs.report.group_page import detail
from jobs.report.stored import stored_ends, stored_header
from jobs.report.worst import IN_SQL, badness
from jobs.serve.from_logs import MOST_FOUND
from jobs.serve.group_settings import settings_at
from jobs.serve.group_times import FOREVER_MS, MOST_OWNERS, OFFSETS, newest, state_at
from jobs.serve.newer import NOTHING_NEWER, Newer, history_with_newer, offsets_with_newer
from jobs.serve.served_rows import FoundRow, GroupAt, GroupsPage, OwnerAt, ServedOffset, ServedSettings
from jobs.serve.site import GroupsAsked
from jobs.settings import Settings
from jobs.tables.reader import Row, TableReader, Value
from jobs.tables.row_reader import reader

REFRESH_S: Final = 60.0
"""The tables are opened again after so long: a night may have filled them further."""
WAIT_S: Final = 20.0
"""A question waits at most so long for the one before."""

KNOWN_TO: Final = "SELECT max(last_ms) AS last_ms FROM $log_ranges WHERE cluster = :cluster"
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
SELECT group_id, group_type, epoch, state, opened_ms, log_offset, ended_ms FROM (
  SELECT e.group_id, e.group_type, e.epoch, e.state, e.opened.timestamp_ms AS opened_ms, e.opened.offset AS log_offset,
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
OWNERS: Final = f"""
SELECT group_id, member_id, units, owning, owned FROM (
  SELECT group_id, member_id, units, count(*) OVER (PARTITION BY group_id) AS owning,
    CAST(sum(units) OVER (PARTITION BY group_id) AS BIGINT) AS owned,
    row_number() OVER (PARTITION BY group_id ORDER BY units DESC, member_id) AS nth
  FROM (
    SELECT a.group_id AS group_id, a.member_id AS member_id, count(*) AS units FROM $assignments AS a
    WHERE a.cluster = :cluster AND a.group_id IN :groups AND a.group_id >= :low AND a.group_id <= :high
    AND a.kind = 'current' AND a.since.timestamp_ms <= :at_ms
    AND (a.until.timestamp_ms IS NULL OR a.until.timestamp_ms > :at_ms) GROUP BY a.group_id, a.member_id
  ) AS counted
) AS numbered WHERE nth <= {MOST_OWNERS} ORDER BY group_id, nth
"""
CLIENTS: Final = """
SELECT m.group_id AS group_id, m.member_id AS member_id, max(m.client_id) AS client_id FROM $memberships AS m
WHERE m.cluster = :cluster AND m.group_id IN :groups AND m.group_id >= :low AND m.group_id <= :high
AND m.member_id IN :members GROUP BY m.group_id, m.member_id
"""
LAGS: Final = """
SELECT l.group_id AS group_id, CAST(sum(l.lag) AS BIGINT) AS lag, max(l.timestamp_ms) AS lag_ms FROM $lag_history AS l
JOIN (
  SELECT n.group_id AS group_id, max(n.timestamp_ms) AS newest_ms FROM $lag_history AS n WHERE n.cluster = :cluster
  AND n.group_id IN :groups AND n.timestamp_ms <= :at_ms GROUP BY n.group_id
) AS newest ON l.group_id = newest.group_id AND l.timestamp_ms = newest.newest_ms
WHERE l.cluster = :cluster AND l.lag IS NOT NULL GROUP BY l.group_id
"""
WITHOUT_TIME: Final = -1
INTERVAL: Final = (
    f"CASE WHEN r.at.timestamp_ms < 0 THEN {WITHOUT_TIME} ELSE r.at.timestamp_ms - r.at.timestamp_ms % :length END"
)
TIMES: Final = """
SELECT min(r.at.timestamp_ms) AS first_ms, max(r.at.timestamp_ms) AS last_ms
FROM $rebalances AS r WHERE r.cluster = :cluster AND r.at.timestamp_ms >= 0
"""
OUTCOMES: Final = f"""
SELECT {INTERVAL} AS since_ms, r.outcome AS outcome, count(*) AS rebalances
FROM $rebalances AS r WHERE r.cluster = :cluster GROUP BY {INTERVAL}, r.outcome
"""
KEY: Final = "since_ms, group_id, group_type, log_partition, log_offset"
NAMED: Final = " ".join(f"WHEN '{kind}' THEN '{of}'" for kind, of in FAMILY_OF.items() if of is not CauseFamily.UNKNOWN)
FAMILIES: Final = f"""
SELECT {KEY}, family FROM (
  SELECT {KEY}, CASE cause.kind {NAMED} END AS family FROM (
    SELECT {KEY}, each_of(causes) AS cause FROM (
      SELECT {INTERVAL} AS since_ms, r.group_id AS group_id, r.group_type AS group_type,
        r.at.partition AS log_partition, r.at.offset AS log_offset, r.causes AS causes
      FROM $rebalances AS r WHERE r.cluster = :cluster AND r.at.timestamp_ms >= 0 AND cardinality(r.causes) {{number}}
    ) AS r
  ) AS each_cause
) AS named WHERE family IS NOT NULL
"""
CAUSES: Final = f"""
SELECT since_ms, family, count(*) AS rebalances FROM (
  SELECT since_ms, family FROM ({FAMILIES.format(number="= 1")}) AS alone
  UNION ALL
  SELECT since_ms, CASE WHEN min(family) = max(family) THEN min(family) ELSE '{CauseFamily.SEVERAL}' END AS family
  FROM ({FAMILIES.format(number="> 1")}) AS together GROUP BY {KEY}
) AS of_rebalance GROUP BY since_ms, family
"""
"""Rebalances by the family of their causes, as ``family`` has it; those of which no cause is known are not here.

Most have one cause: only the others have to be told apart, which takes memory for each.
"""
MOST_TOLD: Final = 1_000_000
"""Of more rebalances than these, causes are not counted, but outcomes alone: 2 million take 5 s of a processor."""
WORST_A_PASS: Final = 1_000
"""So many rebalances are taken of one pass, as the worst ones may all be of one group."""
WORST: Final = f"""
SELECT r.group_id AS group_id FROM $rebalances AS r
WHERE r.cluster = :cluster AND NOT coalesce(r.group_id IN :seen, FALSE)
ORDER BY {IN_SQL}, r.group_id
"""
"""The groups of the worst rebalances, but for those that were seen."""
VERDICTS: Final = "SELECT verdict, count(*) AS targets FROM $target_audits WHERE cluster = :cluster GROUP BY verdict"
COMMITS: Final = """
SELECT hour_ms, CAST(sum(written) AS BIGINT) AS records FROM $commit_summaries
WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0 GROUP BY hour_ms
"""
OF_ONE_TYPE: Final = """
SELECT e.group_id AS group_id, min(e.group_type) AS group_type FROM $group_epochs AS e WHERE e.cluster = :cluster
GROUP BY e.group_id HAVING min(e.group_type) {is_one} max(e.group_type)
"""
CONVERTED: Final = f"e.group_id IN (SELECT group_id FROM ({OF_ONE_TYPE.format(is_one='<>')}) AS converted)"
LAST_TYPES: Final = f"""
{OF_ONE_TYPE.format(is_one="=")} UNION ALL SELECT group_id, group_type FROM ({NEWEST.format(among=CONVERTED)}) AS n
"""
"""The newest type of each group. Few are ever converted: only of these the epochs are put in order."""
TYPES: Final = f"""
SELECT coalesce(t.group_type, '{OFFSETS}') AS name, count(*) AS groups FROM ({KNOWN}) AS k
LEFT JOIN ({LAST_TYPES}) AS t ON k.group_id = t.group_id
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

    def __init__(
        self, open_reader: Callable[[], TableReader], settings: Settings, newer: Newer = NOTHING_NEWER
    ) -> None:
        self._open, self._settings, self._cluster, self._newer = open_reader, settings, settings.cluster, newer
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
            stored = next(report_histories(tables, self._cluster, [group_id]), None)
            history = history_with_newer(self._newer, group_id, stored)
            if history is None:
                return None
            ends = stored_ends(tables, self._cluster)
            return detail(history, self._settings.findings, ends, since_ms, until_ms)

    def offsets(self, group_id: str, at_ms: int | None) -> Sequence[ServedOffset]:
        """Return committed offsets; the records of the group alone are folded."""
        with self._reader() as tables:
            ((known_ms,),) = tables.tuples(KNOWN_TO, cluster=self._cluster)
            answers = StoredAnswers(tables, self._cluster, self._settings.audit)
            return offsets_with_newer(answers, self._newer, group_id, at_ms, known_ms)

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

    def renew(self) -> str | None:
        """Open the tables again now and then; return the newest run in them."""
        with self._reader():
            return self._newest

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
            wanted.append(f"k.group_id IN (SELECT group_id FROM ({LAST_TYPES}) AS n WHERE group_type = :group_type)")
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

        def by_group(sql: str, **values: Any) -> dict[str, Row]:
            return {row["group_id"]: row for row in tables.rows(sql, **given, **values)}

        epochs = by_group(EPOCHS, at_ms=at_ms)
        last = by_group(NEWEST.format(among=AMONG)) if len(epochs) < len(ids) else {}
        members, rebalances = by_group(MEMBERS, at_ms=at_ms), by_group(REBALANCES, at_ms=at_ms)
        lags = by_group(LAGS, at_ms=at_ms) if tables.exists("lag_history") else {}
        owners = defaultdict[str, list[Row]](list)
        for row in tables.rows(OWNERS, **given, at_ms=at_ms):
            owners[row["group_id"]].append(row)
        named = sorted({row["member_id"] for rows in owners.values() for row in rows})
        clients = {row[:2]: row[2] for row in tables.tuples(CLIENTS, **given, members=named)} if named else {}
        nothing: Row = {}
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
                state=state_at(
                    rebalances.get(group_id, nothing).get("rebalancing_to"), epochs.get(group_id, nothing).get("state")
                ),
                owners=tuple(
                    OwnerAt(row["member_id"], clients.get((group_id, row["member_id"])), row["units"])
                    for row in owners[group_id]
                ),
                owning=owners[group_id][0]["owning"] if owners[group_id] else 0,
                owned=owners[group_id][0]["owned"] if owners[group_id] else 0,
                lag=lags.get(group_id, nothing).get("lag"),
                lag_ms=lags.get(group_id, nothing).get("lag_ms"),
            )
            for group_id in ids
        )

    def _made(self, tables: TableReader) -> Report:
        cluster = self._cluster
        known = stored_knowledge(tables, cluster)
        source = stored_header(tables, self._settings, known)
        at_end = topics_at_end(tables, cluster)
        first = min((log.first_ms for log in source.coverage if log.first_ms >= 0), default=None)
        last = max((log.last_ms for log in source.coverage), default=None) if first is not None else None
        length, activity, unnamed = self._activity(tables)
        outcomes, families = Counter[str](), Counter[str]()
        for _, of_outcome, of_family in activity:
            outcomes.update(dict(of_outcome))
            families.update(dict(of_family))
        outcomes.update(unnamed)
        found = self._findings(tables)
        commits = [
            CommitCount(row["hour_ms"], HOUR_MS, row["records"]) for row in tables.rows(COMMITS, cluster=cluster)
        ]
        commit_length = fitting_length(commits[0].since_ms, commits[-1].since_ms, HOUR_MS) if commits else HOUR_MS
        return Report(
            format=FORMAT,
            software=source.software,
            cluster=cluster,
            made_ms=source.made_ms,
            first_ms=first,
            last_ms=last,
            coverage=tuple(source.coverage),
            absent=tuple(absent(source.coverage, at_end.partitions, source.empty)),
            warnings=tuple(source.warnings[:MOST_WARNINGS]),
            warnings_seen=len(source.warnings),
            topics_known=source.topics_known,
            types=_counts(tables, TYPES, cluster=cluster),
            outcomes=most_frequent(outcomes),
            verdicts=_counts(tables, VERDICTS, cluster=cluster),
            findings_seen=len(found),
            kinds=most_frequent(Counter(str(row.kind) for row in found)),
            findings=tuple(sorted(found, key=urgency)[:MOST_FINDINGS]),
            bucket_ms=length,
            activity=activity,
            families=most_frequent(families),
            commits=coarsened(commits, commit_length),
            worst=tuple(self._worst(tables, source.ends)),
            lag=highest_lags(source.lags.items()),
            groups=(),
            nights=tuple(source.nights[-MOST_NIGHTS:]),
            bands=tuple(bands_of(found)),
            checks=tuple(source.checks),
            features=reported_features(at_end),
        )

    def _activity(self, tables: TableReader) -> tuple[int, tuple[Bucket, ...], Counter[str]]:
        """Return how long an interval is (ms), the rebalances in each, and the outcomes of those without a time.

        Every rebalance is counted by the engine: what comes here is a row for each interval and name.
        """
        ((first, last),) = tables.tuples(TIMES, cluster=self._cluster)
        length = bucket_length(first or 0, last or 0)
        outcomes, families = defaultdict[int, Counter[str]](Counter), defaultdict[int, Counter[str]](Counter)
        for since, outcome, rebalances in tables.tuples(OUTCOMES, cluster=self._cluster, length=length):
            outcomes[since][outcome] += rebalances
        unnamed = outcomes.pop(WITHOUT_TIME, Counter[str]())
        if sum(each.total() for each in outcomes.values()) <= MOST_TOLD:
            for since, family, rebalances in tables.tuples(CAUSES, cluster=self._cluster, length=length):
                families[since][family] += rebalances
            for since, of_outcome in outcomes.items():
                if without := of_outcome.total() - families[since].total():
                    families[since][CauseFamily.UNKNOWN] += without
        return length, counted_buckets(outcomes, families), unnamed

    def _worst(self, tables: TableReader, ends: NewestEnds) -> Iterator[Worst]:
        """Yield the worst rebalances, of one group each: only these groups are read."""
        seen: list[str] = []
        text = f"{WORST} LIMIT {WORST_A_PASS}"
        while len(seen) < MOST_WORST:
            of_pass = [group_id for (group_id,) in tables.tuples(text, cluster=self._cluster, seen=seen)]
            seen = [*seen, *dict.fromkeys(of_pass)][:MOST_WORST]
            if len(of_pass) < WORST_A_PASS:
                break
        worst: list[tuple[RebalanceRow, Worst]] = []
        # One after the other: of one group few pages of a file are read, of a list of groups all of them.
        for history in chain.from_iterable(report_histories(tables, self._cluster, [group_id]) for group_id in seen):
            rebalances = [row for part in by_log(history) for row in part.rebalances]
            worst += worst_of(rebalances, detail(history, self._settings.findings, ends))
        yield from (each for _, each in sorted(worst, key=lambda pair: badness(pair[0]), reverse=True))

    def _findings(self, tables: TableReader) -> list[FindingRow]:
        if not tables.exists("findings"):
            return []
        read = reader(FindingRow)
        return listed(map(read, tables.rows("SELECT * FROM $findings WHERE cluster = :cluster", cluster=self._cluster)))


def _counts(tables: TableReader, sql: str, **values: Value) -> tuple[Count, ...]:
    return most_frequent(Counter(dict(tables.tuples(sql, **values))))
