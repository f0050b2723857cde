"""What is made of each group, for findings and for the report, with how long it holds (``group_pages``), and on which
groups something new bears: what is made of the others stays as it is.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.cluster.given_topics import NO_REACH
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.relations.commit_sums import topic_ends
from jobs.relations.commit_trails import trails_by_text
from jobs.relations.groups import OWN_TIMES, RowKind, report_kinds
from jobs.relations.logs import LogFacts
from jobs.relations.offsets import newest_ends
from jobs.relations.topics import topics_given
from jobs.sources.files import GROUP_TOPICS, log_name
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.engine import Engine
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.reader import TableReader
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS
from jobs.tables.results import GROUP_PAGES
from jobs.tables.snapshots import BROKER_EVENTS, END_OFFSETS, SNAPSHOT_SETTINGS

INPUTS: Final = [
    *HISTORY.values(),
    GROUP_STATES,
    COMMIT_SUMMARIES,
    LOG_RANGES,
    GROUP_RECORDS,
    BROKER_EVENTS,
    END_OFFSETS,
]
"""The tables that findings are made from."""

OPTIONAL: Final = (BROKER_EVENTS, END_OFFSETS)
"""Those of them that there may not be."""

Changed = Mapping[str, list[str] | None]
"""The groups to compute again by cluster; None: all groups of the cluster."""

FACTS_FROM: Final = (RUNS, LOG_RECORDS, QUARANTINE, CLUSTER_RECORDS, SNAPSHOT_SETTINGS)
"""The tables of which ``SharedFacts`` are made beside those that have rows of groups."""


class Page(NamedTuple):
    """What is made of a group: its findings; what the report has of it, None: no report was asked for."""

    findings: Sequence[FindingRow]
    summary: str | None = None
    texts: tuple[str, ...] | None = None


PageMaker = Callable[[GroupHistory], Page]


class SharedFacts(NamedTuple):
    """What a history has that is not of its group: once any of it changes, all groups are made again.

    The ends of the logs are not of it: each history notes itself what rests on them. ``kinds``: the texts of the rows
    of a group; over a long time, commits are counted by the hour.
    """

    logs: LogFacts
    topic_ends: Mapping[str, list[int]]
    ends: NewestEnds
    kinds: Mapping[str, RowKind]

    @classmethod
    def read(cls, tables: TableReader, cluster: str) -> "SharedFacts":
        """Read them from the tables."""
        wanted = {**report_kinds(tables, cluster), **trails_by_text(tables, cluster)}
        return cls(
            LogFacts.read(tables, cluster), topic_ends(tables, cluster), newest_ends(tables, cluster, None), wanted
        )

    def whole_from(self) -> dict[str, int]:
        """Return from which offset on each partition of the logs of groups lacks no record: pages begin there."""
        return {log_name(*place): extent.whole_from for place, extent in self.logs.lost.read.items()}

    def digest(self, tables: TableReader, cluster: str) -> str:
        """Return a text that is another one if any of it has changed."""
        given = topics_given(tables, cluster)
        apart_from_ends = (
            self.logs.topics._replace(reach=NO_REACH),
            given._replace(until_ms=0),
            replace(self.logs.lost, read={}),
            self.logs.brokers,
            self.topic_ends,
            self.ends,
            # Of the commits over time, what was read before is finer, or the same.
            [kind.text for name, kind in self.kinds.items() if name != "trails"],
        )
        return hashlib.sha256(repr(_in_order(apart_from_ends)).encode()).hexdigest()


def _in_order(value: object) -> object:
    """Return a value as lists, so that equal ones have one text: mappings and sets have no order of their own."""
    if isinstance(value, Mapping):
        return sorted(
            ((repr(_in_order(key)), _in_order(each)) for key, each in value.items()), key=lambda pair: pair[0]
        )
    if isinstance(value, set | frozenset):
        return sorted(repr(_in_order(each)) for each in value)
    if isinstance(value, list | tuple):
        return [_in_order(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return [_in_order(getattr(value, field.name)) for field in fields(value)]
    return value


def with_kept(engine: Engine, changed: Mapping[str, Collection[str] | None], new: pa.Table) -> pa.Table:
    """Return the rows of the table: those that are new, and those of the groups that have not changed (None: all of a
    cluster have). Pages that are too large to be kept are left out.
    """
    rows = (
        engine.here(lambda reader: pa.concat_tables([_kept(reader, changed), new]))
        if engine.exists(GROUP_PAGES.name)
        else None
    )
    if rows is None or rows.nbytes <= engine.limits.staged_bytes:
        return new if rows is None else rows
    nothing = {name: pa.nulls(rows.num_rows, GROUP_PAGES.schema.field(name).type) for name in ("summary", "texts")}
    return pa.table({**{name: rows[name] for name in rows.column_names}, **nothing}, GROUP_PAGES.schema)


def _kept(engine: FolderReader, changed: Mapping[str, Collection[str] | None]) -> pa.Table:
    of_all = "SELECT * FROM $group_pages WHERE NOT cluster IN :clusters"
    batches = [*engine.batches(of_all, clusters=sorted(changed))]
    for cluster, groups in changed.items():
        if groups is not None:
            same = "SELECT * FROM $group_pages WHERE cluster = :cluster AND NOT group_id IN :groups"
            batches += engine.batches(same, cluster=cluster, groups=sorted(groups))
    return pa.Table.from_batches(batches).select(GROUP_PAGES.schema.names).cast(GROUP_PAGES.schema)


def row_of(cluster: str, history: GroupHistory, page: Page) -> dict[str, object]:
    """Return the row of a group whose page was made of this history."""
    of_group = {"cluster": cluster, "group_id": history.group_id, "until_ms": history.ends_used.until_ms}
    return {**of_group, "summary": page.summary, "texts": page.texts}


NEW: Final = "cluster = :cluster AND run_id > :since"

PLACES: Final = """
SELECT log_topic, log_partition FROM $log_records
WHERE cluster = :cluster AND revised_by > :since AND log_partition IS NOT NULL
UNION SELECT log_topic, log_partition FROM $log_ranges
WHERE cluster = :cluster AND concat(log_topic, '-', CAST(log_partition AS STRING)) IN :moved
"""
"""Log partitions of which a new run has told more than was known, and those of which it has found records missing."""

IN_PLACES: Final = " UNION ".join(
    f"SELECT t.group_id AS group_id FROM ${table} AS t JOIN places AS p "
    "ON t.log_topic = p.log_topic AND t.log_partition = p.log_partition WHERE t.cluster = :cluster"
    for table in ("group_states", "group_records", "commit_summaries")
)

GROUPS: Final = f"""
WITH places AS ({PLACES})
SELECT group_id FROM ({IN_PLACES}
  UNION SELECT group_id FROM $group_states WHERE {NEW}
  UNION SELECT group_id FROM $group_records WHERE {NEW}
  UNION SELECT group_id FROM $commit_summaries WHERE {NEW}
  UNION SELECT p.group_id AS group_id FROM $group_pages AS p LEFT JOIN ({OWN_TIMES["own_times"].text}) AS o
    ON p.group_id = o.group_id
    WHERE p.cluster = :cluster AND (p.until_ms <= coalesce(o.last_ms, 0) OR (:with_pages = 1 AND p.summary IS NULL))
) AS found WHERE group_id IS NOT NULL
""".replace("{among}", "TRUE")
"""Of the other groups, what is known holds: it says itself how long it does (``group_pages.until_ms``)."""


def changed_groups(
    tables: TableReader, cluster: str, since: str, moved: Sequence[str] = (), *, with_pages: bool = False
) -> list[str]:
    """Return the groups of a cluster on which runs after ``since`` bear: by own records, or by the end of their log.

    ``moved``: log partitions, by name, that are whole from another offset on. ``with_pages``: with those that have no
    page yet.
    """
    given = {"cluster": cluster, "since": since, "moved": moved, "topics": GROUP_TOPICS}
    rows = tables.rows(GROUPS, **given, with_pages=int(with_pages))
    return sorted(row["group_id"] for row in rows)
