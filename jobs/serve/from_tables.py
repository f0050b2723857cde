"""Answers of the page from the tables: each is a query of the rows that it shows, and nothing else is read."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from threading import Lock, Thread
from typing import Final

from coordinator_core.audit.finding_rows import FindingRow, listed, urgency
from coordinator_core.audit.folds.commit_times import HOUR_MS, CommitCount, coarsened, fitting_length
from coordinator_core.errors import CoordinatorAuditError, InputError
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.groups import report_histories
from jobs.relations.knowledge import stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.relations.up_to_date import newest_run_in
from jobs.report.build import MOST_FINDINGS, MOST_WORST, bands_of, bucket_length, counted_buckets, headed, highest_lags
from jobs.report.causes import FAMILY_OF, CauseFamily, most_frequent
from jobs.report.data import Bucket, Count, GroupDetail, Report, Worst
from jobs.report.group_page import detail
from jobs.report.parts import WorstOfGroup, part_of
from jobs.report.stored import stored_ends, stored_header
from jobs.report.worst import IN_SQL
from jobs.serve.from_logs import MOST_FOUND
from jobs.serve.group_times import FOREVER_MS, MOST_OWNERS, OFFSETS, newest, state_at
from jobs.serve.group_types import KNOWN, NEWEST, GroupTypes, group_types
from jobs.serve.newer import NOTHING_NEWER, Newer, history_with_newer, offsets_with_newer
from jobs.serve.offsets import settings_at
from jobs.serve.served_rows import FoundRow, GroupAt, GroupsPage, OwnerAt, ServedOffset, ServedSettings
from jobs.serve.site import GroupsAsked
from jobs.settings import Settings
from jobs.tables.reader import Row, TableReader, Value, known_rows
from jobs.tables.row_reader import reader

WITHOUT_TIME: Final = -1
INTERVAL: Final = (
    f"CASE WHEN r.at.timestamp_ms < 0 THEN {WITHOUT_TIME} ELSE r.at.timestamp_ms - r.at.timestamp_ms % :length END"
)
OUTCOMES: Final = f"""
SELECT {INTERVAL} AS since_ms, r.outcome AS outcome, count(*) AS rebalances,
  min(r.at.timestamp_ms) AS first_ms, max(r.at.timestamp_ms) AS last_ms
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
WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0 GROUP BY hour_ms ORDER BY hour_ms
"""
TYPES: Final = f"""
SELECT coalesce(t.group_type, '{OFFSETS}') AS name, count(*) AS groups FROM ({KNOWN}) AS k
LEFT JOIN ({{types}}) AS t ON k.group_id = t.group_id
GROUP BY coalesce(t.group_type, '{OFFSETS}')
"""


def stored_overview(tables: TableReader, settings: Settings) -> Report:
    """Return the report without its groups."""
    cluster = settings.cluster
    types = group_types(tables, cluster)
    known = stored_knowledge(tables, cluster)
    source = stored_header(tables, settings, known)
    first = min((log.first_ms for log in source.coverage if log.first_ms >= 0), default=None)
    last = max((log.last_ms for log in source.coverage), default=None) if first is not None else None
    length, activity, unnamed = _activity(tables, cluster, bucket_length(first or 0, last or 0))
    outcomes, families = Counter[str](), Counter[str]()
    for _, of_outcome, of_family in activity:
        outcomes.update(dict(of_outcome))
        families.update(dict(of_family))
    outcomes.update(unnamed)
    found = _findings(tables, cluster)
    commits = [CommitCount(row["hour_ms"], HOUR_MS, row["records"]) for row in tables.rows(COMMITS, cluster=cluster)]
    commit_length = fitting_length(commits[0].since_ms, commits[-1].since_ms, HOUR_MS) if commits else HOUR_MS
    return headed(source, topics_at_end(tables, cluster))(
        first_ms=first,
        last_ms=last,
        types=_counts(tables, TYPES.format(types=types.text), cluster=cluster, **types.values),
        outcomes=most_frequent(outcomes),
        verdicts=_counts(tables, VERDICTS, cluster=cluster),
        findings_seen=len(found),
        kinds=most_frequent(Counter(str(row.kind) for row in found)),
        findings=tuple(sorted(found, key=urgency)[:MOST_FINDINGS]),
        bucket_ms=length,
        activity=activity,
        families=most_frequent(families),
        commits=coarsened(commits, commit_length),
        worst=tuple(_worst(tables, settings, source.ends)),
        lag=highest_lags(source.lags.items()),
        groups=(),
        bands=tuple(bands_of(found)),
    )


def _activity(tables: TableReader, cluster: str, length: int) -> tuple[int, tuple[Bucket, ...], Counter[str]]:
    """Return how long an interval is (ms), the rebalances in each, and the outcomes of those without a time.

    ``length`` is that of the time of the logs, which mostly is that of the rebalances, too.
    Every rebalance is counted by the engine: what comes here is a row for each interval and name.
    """
    rows = list(tables.tuples(OUTCOMES, cluster=cluster, length=length))
    times = [time for since, *_, begin, end in rows if since != WITHOUT_TIME for time in (begin, end)]
    fitting = bucket_length(min(times, default=0), max(times, default=0))
    if fitting != length:
        length, rows = fitting, list(tables.tuples(OUTCOMES, cluster=cluster, length=fitting))
    outcomes, families = defaultdict[int, Counter[str]](Counter), defaultdict[int, Counter[str]](Counter)
    for since, outcome, rebalances, *_ in rows:
        outcomes[since][outcome] += rebalances
    unnamed = outcomes.pop(WITHOUT_TIME, Counter[str]())
    if sum(each.total() for each in outcomes.values()) <= MOST_TOLD:
        for since, family, rebalances in tables.tuples(CAUSES, cluster=cluster, length=length):
            families[since][family] += rebalances
        for since, of_outcome in outcomes.items():
            if without := of_outcome.total() - families[since].total():
                families[since][CauseFamily.UNKNOWN] += without
    return length, counted_buckets(outcomes, families), unnamed


def _worst(tables: TableReader, settings: Settings, ends: NewestEnds) -> Iterator[Worst]:
    """Yield the worst rebalances, of one group each: only these groups are read."""
    seen: list[str] = []
    text = f"{WORST} LIMIT {WORST_A_PASS}"
    while len(seen) < MOST_WORST:
        of_pass = [group_id for (group_id,) in tables.tuples(text, cluster=settings.cluster, seen=seen)]
        seen = [*seen, *dict.fromkeys(of_pass)][:MOST_WORST]
        if len(of_pass) < WORST_A_PASS:
            break
    worst: list[WorstOfGroup] = []
    for history in report_histories(tables, settings.cluster, seen) if seen else ():
        of_group = part_of(history, settings.findings, ends).worst
        worst += () if of_group is None else (of_group,)
    yield from (each.rebalance for each in sorted(worst, key=attrgetter("badness"), reverse=True))


def _findings(tables: TableReader, cluster: str) -> list[FindingRow]:
    rows = known_rows(tables, "SELECT * FROM $findings WHERE cluster = :cluster", cluster=cluster)
    return listed(map(reader(FindingRow), rows))


def _counts(tables: TableReader, sql: str, **values: Value) -> tuple[Count, ...]:
    return most_frequent(Counter(dict(tables.tuples(sql, **values))))


REFRESH_S: Final = 60.0
"""The tables are opened again after so long: a night may have filled them further."""
MOST_PAGES: Final = 64
"""Answers about groups that are kept until the tables have more: people go back and forth between moments."""
WAIT_S: Final = 20.0
"""A question waits at most so long for the one before."""

KNOWN_TO: Final = "SELECT max(last_ms) AS last_ms FROM $log_ranges WHERE cluster = :cluster"
COUNTED: Final = """
SELECT group_id, count(*) AS findings FROM $findings
WHERE cluster = :cluster AND group_id IS NOT NULL GROUP BY group_id
"""
CHANGED: Final = """
k.group_id IN (
  SELECT e.group_id FROM $group_epochs AS e WHERE e.cluster = :cluster
    AND e.opened.timestamp_ms > :first_ms AND e.opened.timestamp_ms <= :last_ms
  UNION SELECT m.group_id FROM $memberships AS m WHERE m.cluster = :cluster
    AND (m.joined.timestamp_ms > :first_ms AND m.joined.timestamp_ms <= :last_ms
      OR m.left.timestamp_ms > :first_ms AND m.left.timestamp_ms <= :last_ms))
"""
MOMENTS: Final = "(SELECT CAST(:at_ms AS BIGINT) AS at_ms UNION SELECT CAST(:than_ms AS BIGINT)) AS t"
"""The moments that are asked for: rows are read once for both."""


def _among(rows: str) -> str:
    """Return the condition for the rows of the groups that are asked for; ``rows``: the name of the table."""
    # Rows of a group lie together in each file: of a range of ids few pages of a file are read, of a list all of them.
    return " AND ".join(f"{rows}.{each}" for each in ("group_id IN :groups", "group_id >= :low", "group_id <= :high"))


EPOCHS: Final = NEWEST.format(
    moment="at_ms, ",
    moments=f"CROSS JOIN {MOMENTS}",
    among=f"{_among('e')} AND e.opened.timestamp_ms <= t.at_ms "
    "AND (e.ended.timestamp_ms IS NULL OR e.ended.timestamp_ms > t.at_ms) "
    "AND e.opened.timestamp_ms <= :to_ms AND (e.ended.timestamp_ms IS NULL OR e.ended.timestamp_ms > :from_ms)",
)
"""What both moments have in common is said of the rows alone, too: then few pages of a file are read."""
LAST: Final = NEWEST.format(moment="", moments="", among=_among("e"))
MEMBERS: Final = f"""
SELECT t.at_ms AS at_ms, m.group_id AS group_id, count(*) AS members FROM $memberships AS m CROSS JOIN {MOMENTS}
WHERE m.cluster = :cluster AND {_among("m")} AND m.joined.timestamp_ms <= t.at_ms
AND (m.left.timestamp_ms IS NULL OR m.left.timestamp_ms > t.at_ms) GROUP BY t.at_ms, m.group_id
"""
# A rebalance whose end is missing was going on until its record; behind that only if it is open.
REBALANCES: Final = f"""
SELECT t.at_ms AS at_ms, r.group_id AS group_id,
  CAST(sum(CASE WHEN r.at.timestamp_ms <= t.at_ms THEN 1 ELSE 0 END) AS BIGINT) AS rebalances,
  max(CASE WHEN r.began_before_ms <= t.at_ms AND (r.finished.timestamp_ms > t.at_ms
    OR r.finished.timestamp_ms IS NULL AND (r.outcome = 'open' OR r.at.timestamp_ms > t.at_ms))
    THEN r.to_epoch END) AS rebalancing_to
FROM $rebalances AS r CROSS JOIN {MOMENTS} WHERE r.cluster = :cluster AND {_among("r")}
GROUP BY t.at_ms, r.group_id
"""
# Windows are computed before the rows are cut to the first members: the totals are of all members.
OWNERS: Final = f"""
SELECT at_ms, group_id, member_id, units, owning, owned FROM (
  SELECT at_ms, group_id, member_id, units, count(*) OVER (PARTITION BY at_ms, group_id) AS owning,
    CAST(sum(units) OVER (PARTITION BY at_ms, group_id) AS BIGINT) AS owned,
    row_number() OVER (PARTITION BY at_ms, group_id ORDER BY units DESC, member_id) AS nth
  FROM (
    SELECT t.at_ms AS at_ms, a.group_id AS group_id, a.member_id AS member_id, count(*) AS units
    FROM $assignments AS a CROSS JOIN {MOMENTS}
    WHERE a.cluster = :cluster AND {_among("a")} AND a.kind = 'current' AND a.since.timestamp_ms <= t.at_ms
    AND (a.until.timestamp_ms IS NULL OR a.until.timestamp_ms > t.at_ms) GROUP BY t.at_ms, a.group_id, a.member_id
  ) AS counted
) AS numbered WHERE nth <= {MOST_OWNERS} ORDER BY group_id, nth
"""
CLIENTS: Final = f"""
SELECT m.group_id AS group_id, m.member_id AS member_id, max(m.client_id) AS client_id FROM $memberships AS m
WHERE m.cluster = :cluster AND {_among("m")} AND m.member_id IN :members GROUP BY m.group_id, m.member_id
"""
# The lag of a group is a sum over one snapshot: the newest of each partition would be of different moments.
LAGS: Final = f"""
SELECT newest.at_ms AS at_ms, l.group_id AS group_id, CAST(sum(l.lag) AS BIGINT) AS lag, max(l.timestamp_ms) AS lag_ms
FROM $lag_history AS l
JOIN (
  SELECT t.at_ms AS at_ms, n.group_id AS group_id, max(n.timestamp_ms) AS newest_ms
  FROM $lag_history AS n CROSS JOIN {MOMENTS} WHERE n.cluster = :cluster
  AND n.group_id IN :groups AND n.timestamp_ms <= t.at_ms GROUP BY t.at_ms, n.group_id
) AS newest ON l.group_id = newest.group_id AND l.timestamp_ms = newest.newest_ms
WHERE l.cluster = :cluster AND l.lag IS NOT NULL GROUP BY newest.at_ms, l.group_id
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
        self._is_old, self._making = False, Lock()
        self._types: GroupTypes | None = None
        self._pages: dict[GroupsAsked, GroupsPage] = {}
        """What was answered of the tables as they are."""
        self._opened_s = time.monotonic()

    def overview(self) -> Report:
        """Return the report without its groups: what is found, when rebalances were, what was read."""
        with self._reader() as tables:
            if self._report is None:
                self._report = stored_overview(tables, self._settings)
            elif self._is_old and self._making.acquire(blocking=False):
                Thread(target=self._make_again, daemon=True).start()
            return self._report

    def _make_again(self) -> None:
        """Make the first page again; meanwhile the one before is the answer."""
        try:
            # Noted before the tables are opened: if a run ends meanwhile, the page that is made is old at once.
            newest = self._newest
            made = stored_overview(self._open(), self._settings)
            self._report, self._is_old = made, newest != self._newest
        except CoordinatorAuditError:
            """The page before stays the answer: the tables may be there again next time."""
        finally:
            self._making.release()

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        """Return groups at a moment, by id."""
        with self._reader() as tables:
            if asked in self._pages:
                return self._pages[asked]
            ids, findings, seen = self._chosen(tables, asked)
            moments = [FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms]
            moments += [] if asked.than_ms is None else [asked.than_ms]
            rows, *than = self._at(tables, ids, findings, moments)
            if len(self._pages) >= MOST_PAGES:
                # A dict keeps its keys in the order in which they came: the first one is the oldest answer.
                self._pages.pop(next(iter(self._pages)))
            self._pages[asked] = GroupsPage(rows, than[0] if than else (), asked.first, seen)
            return self._pages[asked]

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
                    self._newest, self._is_old, self._types = newest, True, None
                    self._pages.clear()
            yield self._tables
        finally:
            self._lock.release()

    def _chosen(self, tables: TableReader, asked: GroupsAsked) -> tuple[list[str], dict[str, int], int]:
        """Return the ids of the groups of a page, their findings, and how many groups there are."""
        wanted = ["TRUE"]
        values: dict[str, Value] = {"cluster": self._cluster}
        if asked.find is not None:
            wanted.append("instr(lower(k.group_id), :find) > 0")
            values["find"] = asked.find.lower()
        if asked.only_found:
            wanted.append("u.findings > 0")
        if asked.group_type is not None:
            self._types = self._types or group_types(tables, self._cluster)
            of_type = f"SELECT group_id FROM ({self._types.text}) AS n WHERE group_type = :group_type"
            wanted.append(f"k.group_id IN ({of_type})")
            values |= {"group_type": asked.group_type, **self._types.values}
        if asked.only_changed and asked.than_ms is not None:
            at_ms = FOREVER_MS - 1 if asked.at_ms is None else asked.at_ms
            wanted.append(CHANGED)
            values |= {"first_ms": min(at_ms, asked.than_ms), "last_ms": max(at_ms, asked.than_ms)}
        has_findings = tables.exists("findings")
        # What is not there yet cannot be joined: a row without a finding stands for it.
        counted = COUNTED if has_findings else "SELECT '' AS group_id, 0 AS findings"
        rows = list(
            tables.rows(
                # The window counts before LIMIT cuts: one query gives the page and the number of all.
                f"SELECT k.group_id AS group_id, coalesce(u.findings, 0) AS findings, count(*) OVER () AS seen "
                f"FROM ({KNOWN}) AS k LEFT JOIN ({counted}) AS u ON k.group_id = u.group_id "
                f"WHERE {' AND '.join(wanted)} "
                f"ORDER BY k.group_id "
                f"LIMIT {asked.most} OFFSET {asked.first}",
                **values,
            )
        )
        # Behind the last group, and on a page of none, there is no row that says how many there are.
        if not rows and (asked.first > 0 or asked.most == 0):
            return [], {}, self._chosen(tables, asked._replace(first=0, most=1))[2]
        ids = [row["group_id"] for row in rows]
        return ids, {row["group_id"]: row["findings"] for row in rows}, rows[0]["seen"] if rows else 0

    def _at(
        self, tables: TableReader, ids: Sequence[str], findings: Mapping[str, int], moments: Sequence[int]
    ) -> list[tuple[GroupAt, ...]]:
        """Return the groups at each of one or two moments."""
        if not ids:
            return [() for _ in moments]
        given: dict[str, Value] = {"cluster": self._cluster, "groups": list(ids), "low": min(ids), "high": max(ids)}
        times = {"at_ms": moments[0], "than_ms": moments[-1], "from_ms": min(moments), "to_ms": max(moments)}

        def by_moment(sql: str) -> dict[tuple[int, str], Row]:
            return {(row["at_ms"], row["group_id"]): row for row in tables.rows(sql, **given, **times)}

        epochs, members, rebalances = map(by_moment, (EPOCHS, MEMBERS, REBALANCES))
        # A group without an epoch at the moment has a type nevertheless: that of its last one.
        without = [group_id for group_id in ids if any((moment, group_id) not in epochs for moment in moments)]
        among = {**given, "groups": without}
        last = {row["group_id"]: row for row in tables.rows(LAST, **among)} if without else {}
        lags = by_moment(LAGS) if tables.exists("lag_history") else {}
        owners = defaultdict[tuple[int, str], list[Row]](list)
        for row in tables.rows(OWNERS, **given, **times):
            owners[row["at_ms"], row["group_id"]].append(row)
        named = sorted({row["member_id"] for rows in owners.values() for row in rows})
        clients = {row[:2]: row[2] for row in tables.tuples(CLIENTS, **given, members=named)} if named else {}
        nothing: Row = {}

        def then(key: tuple[int, str]) -> GroupAt:
            epoch, rebalance, lag = (of.get(key, nothing) for of in (epochs, rebalances, lags))
            first = next(iter(owners[key]), nothing)
            return GroupAt(
                group_id=key[1],
                group_type=(epoch or last.get(key[1], nothing)).get("group_type", OFFSETS),
                epoch=epoch.get("epoch"),
                since_ms=epoch.get("opened_ms"),
                members=members.get(key, nothing).get("members", 0),
                rebalances=rebalance.get("rebalances", 0),
                rebalancing_to=rebalance.get("rebalancing_to"),
                findings=findings[key[1]],
                state=state_at(rebalance.get("rebalancing_to"), epoch.get("state")),
                owners=tuple(
                    OwnerAt(row["member_id"], clients.get((key[1], row["member_id"])), row["units"])
                    for row in owners[key]
                ),
                owning=first.get("owning", 0),
                owned=first.get("owned", 0),
                lag=lag.get("lag"),
                lag_ms=lag.get("lag_ms"),
            )

        return [tuple(then((moment, group_id)) for group_id in ids) for moment in moments]
