"""Findings of groups that are too many for one process: Spark brings the rows of each group together."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.of_cluster import COVERED, CoveredRows
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.relations.commit_sums import topic_ends
from jobs.relations.groups import OfGroup, RowKind, gathered, given, kinds
from jobs.relations.logs import LogFacts
from jobs.relations.offsets import newest_ends
from jobs.tables.delta import Tables
from jobs.tables.reader import Row, sql_text
from jobs.tables.results import FINDINGS
from jobs.tables.row_types import row_type
from jobs.tables.spark_reader import in_spark, sent, spark_types
from jobs.tables.table import few, plain

Batches = Iterable[pa.RecordBatch]

Changed = Mapping[str, list[str] | None]
"""The groups to compute again by cluster; None: all groups of the cluster."""

OfCluster = tuple[Sequence[FindingRow], Sequence[CoveredRows]]
"""The findings about a cluster itself, and the storms among them with what they cover."""


def with_clusters(tables: Tables, found: Mapping[str, OfCluster]) -> DataFrame:
    """Return the rows of the table, which has those of the groups, with those of the clusters: storms that many groups
    have at once are known only once the findings of all groups are.
    """
    rows = tables.read(FINDINGS)
    columns = [name for name in FINDINGS.schema.names if name != "covered"]
    about = [{"cluster": cluster, **row._asdict()} for cluster, (new, _) in found.items() for row in new]
    covering = [
        (cluster, group_id, kind, storm.row.since_ms, storm.row.until_ms)
        for cluster, (_, storms) in found.items()
        for storm in storms
        for group_id in storm.groups
        for kind in COVERED[storm.row.kind]
    ]
    places = _covering(tables, covering).hint("broadcast")
    same = in_spark(
        "f.cluster = c.cluster AND f.group_id = c.group_id AND f.kind = c.kind "
        "AND f.since_ms BETWEEN c.first_ms AND c.last_ms",
        {},
    )
    # No plain join: a finding that two storms cover would come out of it twice.
    parts = [
        rows.alias("f").join(places.alias("c"), same, how).selectExpr(*columns, f"{covered} AS covered")
        for how, covered in (("left_semi", "true"), ("left_anti", "false"))
    ]
    parts += [sent(tables.spark, few(FINDINGS, about))] if about else []
    return reduce(DataFrame.unionByName, parts)


def _covering(tables: Tables, rows: Iterable[tuple[str, str, str, int, int]]) -> DataFrame:
    cluster, group_id, kind, first_ms, last_ms = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return sent(
        tables.spark,
        pa.table(
            {
                "cluster": pa.array(cluster, pa.string()),
                "group_id": pa.array(group_id, pa.string()),
                "kind": pa.array(kind, pa.string()),
                "first_ms": pa.array(first_ms, pa.int64()),
                "last_ms": pa.array(last_ms, pa.int64()),
            }
        ),
    )


def of_groups(tables: Tables, changed: Changed, limits: Thresholds) -> DataFrame:
    """Return the rows about groups, computed by Spark."""
    parts = []
    for cluster, groups in sorted(changed.items()):
        chosen = None if groups is None else _frame(tables, groups)
        parts.append(_findings_of(tables, cluster, limits, chosen))
        if chosen is not None:
            of_cluster = tables.read(FINDINGS).where(f"cluster = {sql_text(cluster)} AND group_id IS NOT NULL")
            parts.append(of_cluster.join(chosen, "group_id", "left_anti").select(*FINDINGS.schema.names))
    return reduce(DataFrame.unionByName, parts)


def _frame(tables: Tables, groups: list[str]) -> DataFrame:
    return sent(tables.spark, pa.table({"group_id": pa.array(groups, pa.string())})).hint("broadcast")


def _findings_of(tables: Tables, cluster: str, limits: Thresholds, groups: DataFrame | None) -> DataFrame:
    rows = history_rows(tables, cluster)
    if groups is not None:
        rows = rows.join(groups, "group_id", "left_semi")
    engine = tables.engine()
    logs, ends = LogFacts.read(engine, cluster), newest_ends(engine, cluster, None)
    find = finder(limits, kinds(engine), logs, topic_ends(engine, cluster), ends)
    return (
        by_group(rows)
        .mapInArrow(find, spark_types(row_type(FindingRow)))
        .selectExpr(f"{sql_text(cluster)} AS cluster", "*")
    )


def history_rows(tables: Tables, cluster: str) -> DataFrame:
    """Return the rows of the history of each group: ``group_id``, ``kind`` and ``row``.

    ``row`` has the columns of the kind that ``relations.groups.kinds`` names, as JSON without what is null: with a
    column for each kind, every row would carry the null structs of all others through the shuffle and into Python.
    """
    read, values = tables.spark_reader(), given(cluster)

    def rows_of(name: str, kind: RowKind) -> DataFrame:
        row = f"to_json(struct({', '.join(f'f.{column}' for column in kind.columns)}))"
        text = kind.text.format(among="TRUE")
        return read.query(f"SELECT f.group_id AS group_id, '{name}' AS kind, {row} AS row FROM ({text}) AS f", **values)

    return reduce(DataFrame.unionByName, (rows_of(name, kind) for name, kind in kinds(tables.engine()).items()))


def by_group(rows: DataFrame) -> DataFrame:
    """Bring the rows of each group together. Sorting by range would read all rows twice."""
    return rows.repartition("group_id").sortWithinPartitions("group_id")


def rows_read(rows: Iterable[Row], of_kinds: Mapping[str, RowKind]) -> Iterator[OfGroup]:
    """Yield the rows of ``history_rows`` as ``gathered`` takes them."""
    for row in rows:
        kind, values = of_kinds[row["kind"]], json.loads(row["row"])
        yield row["group_id"], [kind.read([values.get(name) for name in kind.columns])]


def finder(
    limits: Thresholds,
    of_kinds: Mapping[str, RowKind],
    logs: LogFacts,
    topic_ends: Mapping[str, Sequence[int]],
    ends: NewestEnds,
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow``: from rows of ``history_rows``, sorted by group, to findings."""
    schema = plain(row_type(FindingRow))

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = rows_read((row for batch in batches for row in batch.to_pylist()), of_kinds)
        for history in gathered(rows, logs, topic_ends, ends):
            rows_of_group = [row._asdict() for row in findings(history, limits)]
            yield pa.RecordBatch.from_pylist(rows_of_group, schema=schema)

    return find
