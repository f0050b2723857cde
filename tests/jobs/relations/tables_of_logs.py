"""Tables of log files, filled by this process: what a night would write, without Spark, in a fraction of a second."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema, write_deltalake

from coordinator_core.records import LOG_TOPICS, Family
from jobs.pipeline.commits.fold import CommitNews, PassOver
from jobs.pipeline.commits.here import summarized_here
from jobs.pipeline.decode_arrow import typed_rows
from jobs.pipeline.row_identity import identified
from jobs.relations.gaps import summary
from jobs.sources.segments import SegmentsReader
from jobs.tables.catalog import CATALOG
from jobs.tables.folder_reader import FolderReader

CLUSTER: Final = "c"
GROUP_LOG: Final = LOG_TOPICS[Family.GROUP]


def put(location: Path, name: str, rows: pa.Table) -> None:
    """Append rows to a table; one that is not there is created, with the comments that real tables have."""
    schema = Schema.from_arrow(CATALOG[name].schema)
    write_deltalake(DeltaTable.create(location / name, schema, mode="ignore"), rows, mode="append")


def append(location: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a table; columns that a row lacks are null. A table that is not there is created."""
    table = pa.Table.from_pylist([*map(dict, rows)], CATALOG[name].schema)
    put(location, name, table)


def seen_by_consumer(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return what a dump with the columns of Spark's Kafka source has of these rows."""
    records = rows.filter(pc.equal(rows.column("kind"), "record"))
    columns = {name: records.column(name) for name in ("log_topic", "log_partition", "log_offset", "timestamp_ms")}
    columns |= {name: records.column(name) for name in ("kind", "key", "value", "source", "place")}
    names = {field.name: pa.nulls(records.num_rows, field.type) for field in records.schema} | columns
    return pa.RecordBatch.from_pydict(names | {"outcome": pa.repeat("unknown", records.num_rows)}, records.schema)


def fill(
    location: Path,
    logs: Path,
    run_id: str = "run 1",
    topics: Iterable[str] = (GROUP_LOG,),
    *,
    by_consumer: bool = False,
) -> None:
    """Fill the tables of records from the segments of some topics in a folder, and the summaries of commits.

    ``by_consumer``: as from a dump by a consumer, which shows no control records, batches or transactions.
    """
    segments = SegmentsReader([str(logs)], frozenset(topics), GROUP_LOG, 1 << 30)
    found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for part in segments.partitions():
        for read in segments.read(part):
            batch = seen_by_consumer(read) if by_consumer else read
            for table, rows in typed_rows(identified(batch, CLUSTER, run_id)):
                found[table.name].append(rows)
    for name in ("offset_commits", "group_records", "cluster_records", "quarantine", "log_records"):
        schema = CATALOG[name].schema
        put(location, name, pa.Table.from_batches(found[name], schema))
    ranges = _ranges(found["log_records"], run_id)
    append(location, "log_ranges", ranges)
    runs = _runs(ranges, run_id)
    firsts = {(row["log_topic"], row["log_partition"]): row["first_offset"] for row in runs}
    lost = summary(FolderReader(str(location)), CLUSTER, firsts)
    taken = [row | lost.get((row["log_topic"], row["log_partition"]), {}) for row in runs]
    append(location, "runs", [{**row, "job": job} for row in taken for job in ("ingest", "decode")])
    for name in (
        "assignments",
        "group_epochs",
        "topic_history",
        "group_states",
        "group_pages",
        "rebalances",
        "memberships",
    ):
        append(location, name, [])
    place = PassOver(CLUSTER, GROUP_LOG, [run_id])
    put(location, "commit_summaries", summarized_here(FolderReader(str(location)), place, "", CommitNews()))


def add_another_cluster(location: Path) -> None:
    """Let each table have its rows again, of another cluster whose same groups and producers wrote a little later."""
    for place in sorted(location.iterdir()):
        rows = pa.table(DeltaTable(place).to_pyarrow_table()).to_pylist()
        others = [_later(row) for row in rows if row.get("cluster") == CLUSTER]
        append(location, place.name, [row | {"cluster": f"not {CLUSTER}"} for row in others])


def _later(row: dict[str, Any]) -> dict[str, Any]:
    """A row, or the position in one, seven offsets later."""
    moved = {name: _later(value) for name, value in row.items() if isinstance(value, dict)}
    return row | moved | {name: row[name] + 7 for name in ("offset", "log_offset") if row.get(name) is not None}


def _runs(ranges: Iterable[Mapping[str, Any]], run_id: str) -> list[dict[str, Any]]:
    """Rows of ``runs`` without their gaps: what a run took from each log partition."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for each in ranges:
        place = each["log_topic"], each["log_partition"]
        known = found.setdefault(place, {**each, "records": 0})
        known["first_offset"] = min(known["first_offset"], each["first_offset"])
        known["last_offset"] = max(known["last_offset"], each["last_offset"])
        known["records"] += each["records"]
    names = ("cluster", "run_id", "log_topic", "log_partition", "first_offset", "last_offset", "records")
    return [{name: row[name] for name in names} for row in found.values()]


def _ranges(log: Iterable[pa.RecordBatch], run_id: str) -> list[dict[str, Any]]:
    """Rows of ``log_ranges``: the offsets of each log partition without a gap."""
    offsets: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for batch in log:
        for row in batch.select(["kind", "log_topic", "log_partition", "log_offset", "timestamp_ms"]).to_pylist():
            if row["kind"] in ("record", "control") and row["log_offset"] is not None:
                time_ms = -1 if row["timestamp_ms"] is None else row["timestamp_ms"]
                offsets[row["log_topic"], row["log_partition"]].append((row["log_offset"], time_ms))
    rows: list[dict[str, Any]] = []
    for (topic, partition), found in offsets.items():
        of = {"cluster": CLUSTER, "run_id": run_id, "log_topic": topic, "log_partition": partition}
        for at, time_ms in sorted(found):
            if rows and rows[-1] | of == rows[-1] and rows[-1]["last_offset"] == at - 1:
                last = rows[-1]
                last |= {"last_offset": at, "records": last["records"] + 1, "last_ms": max(last["last_ms"], time_ms)}
            else:
                ends = {"first_offset": at, "last_offset": at, "first_ms": time_ms, "last_ms": time_ms}
                rows.append({**of, **ends, "records": 1, "has_start": at == 0})
    return rows
