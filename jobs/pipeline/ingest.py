"""Ingest dumps into the typed tables: each record once, even if dumps repeat, overlap, or come in any order.

A row is identified by its log position, or by its place in its file if the dump has no positions. Each dump is read
once, decoded on the way (``typed_tables``), and appended without the rows that exist already. Facts that only a better
dump has about existing rows (batches, transactions) are merged into them. So a run that was killed can simply be
repeated. If two dumps have different records at the same position, they are not of the same log, and the second dump is
rejected.

Of a segment that has grown only what is behind the records in the tables is read. A log is only ever written at its
end, so that a file is the one that was taken in, and has grown, if its first batch and the last one in the tables are
where they were and have the records that they had. Anything else is for ``compared``, which looks at every record.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import GoneError
from jobs.pipeline import compared, runs, typed_tables
from jobs.pipeline.decode_arrow import TYPED
from jobs.pipeline.row_identity import Identify, identified
from jobs.pipeline.runs import RunRow
from jobs.relations.gaps import NEVER_COMPACTED
from jobs.relations.outcomes import COUNT, DECIDED
from jobs.sources.dump import Dump, DumpExtent
from jobs.sources.files import LogFile
from jobs.sources.segments import LENGTH_AT, Range, SegmentsReader, read_range
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.engine import is_empty, runs_steps
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.reader import Row, Value

T = TypeVar("T")

MOST_LISTINGS: Final = 5
"""So often files are listed until none goes while they are read."""

OF_FILES: Final = """
SELECT source, log_topic, log_partition, min(place) AS first, max(place) AS last,
  count(CASE WHEN batch_base IS NULL THEN 1 END) AS bare
FROM $log_records WHERE stray IS NULL AND {repeated} GROUP BY source, log_topic, log_partition
"""
"""What the tables have from each file behind the first offset of the dump."""

BORDER: Final = (
    *("place", "log_offset", "kind", "key_hash", "timestamp_ms", "batch_base", "batch_last", "leader_epoch"),
    *("producer_id", "producer_epoch", "sequence", "control_type"),
)
"""What is compared of the records of two batches."""

AT_BORDERS: Final = f"""
SELECT source, {", ".join(BORDER)} FROM $log_records
WHERE cluster = :cluster AND stray IS NULL AND source IN :sources AND place IN :places ORDER BY place, log_offset
"""

STRAYS: Final = """
SELECT stray, source IN :sources AS is_of_segment FROM $log_records
WHERE cluster = :cluster AND stray IS NOT NULL AND (source IN :sources OR split_part(stray, '#', 1) IN :snapshots)
"""
"""Damaged bytes of these segments, and records of snapshots of these names."""


def rest_of_grown(
    tables: Tables, source: SegmentsReader, identify: Identify, cluster: str, repeated: tuple[str, Mapping[str, Value]]
) -> tuple[SegmentsReader, Identify] | None:
    """Return a reader of what the tables do not have, and how its rows are identified.

    None: a segment is not one that was taken in and has grown, so that each record has to be looked at. ``repeated``:
    the condition, with its values, for rows of the tables that the dump may repeat.
    """
    logs = {log.name: log for log in source.logs()}
    snapshots = sorted({log.segment for log in logs.values() if log.is_snapshot})
    engine = tables.engine()
    known = {row["source"]: row for row in engine.rows(OF_FILES.format(repeated=repeated[0]), **repeated[1])}
    if not all(name in logs and _may_be(row, logs[name], source.topic) for name, row in known.items()):
        return None
    given: dict[str, Value] = {"cluster": cluster, "sources": sorted(logs), "snapshots": snapshots}
    strays = list(engine.tuples(STRAYS, **given))
    # A snapshot of the same name from another place is the same snapshot, which only a look at its records tells.
    if not all(is_of_segment for _, is_of_segment in strays):
        return None
    places = sorted({row[end] for row in known.values() for end in ("first", "last")})
    at_borders = list(engine.rows(AT_BORDERS, cluster=cluster, sources=sorted(known), places=places))
    starts = {}
    for name, row in known.items():
        for end in ("first", "last"):
            of_batch = [_border(each) for each in at_borders if (each["source"], each["place"]) == (name, row[end])]
            if _batch(logs[name], row[end], source.topic, identify) != of_batch:
                return None
        starts[name] = _behind(logs[name], row["last"])
    return source.behind(starts), partial(_without, identify=identify, strays=[stray for stray, _ in strays])


def _may_be(row: Row, log: LogFile, topic: str) -> bool:
    """Return whether rows may be of this file, as it was: bytes of one log partition, each with its batch."""
    place = (row["log_topic"], row["log_partition"])
    is_segment = not (log.texts or log.is_snapshot or log.upto is not None)
    return is_segment and place == (log.topic or topic, log.partition) and not row["bare"] and row["last"] < log.size


def _border(row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in BORDER)


def _batch(log: LogFile, place: int, topic: str, identify: Identify) -> list[tuple[object, ...]]:
    """Return the records of the batch at a place of a file; nothing if there is no such batch."""
    for rows in read_range(Range(log, place, log.size, None), topic):
        of_batch = rows.filter(pc.equal(rows.column("place"), place))
        if not of_batch.num_rows:
            return []
        found = sorted(identify(of_batch).select(list(BORDER)).to_pylist(), key=lambda row: row["log_offset"] or 0)
        return [_border(row) for row in found]
    return []


def _behind(log: LogFile, place: int) -> int:
    """Return where the batch at a place of a file ends."""
    with log.open() as read_at:
        return place + LENGTH_AT + 4 + int.from_bytes(read_at(place + LENGTH_AT, 4), "big")


def _without(batch: pa.RecordBatch, identify: Identify, strays: Iterable[str]) -> pa.RecordBatch:
    """Return the rows that the tables do not have: a segment may end with the same damaged bytes again."""
    rows = identify(batch)
    known = pc.is_in(rows.column("stray"), pa.array(strays, LOG_RECORDS.schema.field("stray").type))
    return rows.filter(pc.invert(pc.and_(known, pc.is_valid(rows.column("stray")))))


CHANGE: Final = pa.schema([LOG_RECORDS.schema.field(name) for name in (*LOG_RECORDS.key, "outcome")])
"""The columns of a record whose outcome is set."""


def run(tables: Tables, dumps: list[Dump], cluster: str) -> list[RunRow]:
    """One ingest run; returns its rows of ``runs``, after those of runs that were killed before they had any.

    Without a dump there is nothing to take in, and no run.
    """
    run_id = runs.new_run_id()
    tables.create(RUNS)
    typed_tables.create(tables)
    # A killed run may have filled some of the typed tables: their rows go before any row is compared with what is
    # there.
    typed_tables.take_back(tables)
    # Also where nothing is taken in: what a killed run has taken is decoded only once the ledger has it.
    unfinished = [row for name in runs.unaccounted(tables) for row in runs.account_ingest(tables, name, cluster)]
    if not dumps:
        return unfinished
    ingest(tables, dumps, cluster, run_id)
    given = frozenset[tuple[str, int]]().union(*(dump.given for dump in dumps))
    return [*unfinished, *runs.account_ingest(tables, run_id, cluster, given)]


def listed_again(take: Callable[[], T]) -> T:
    """Do what lists files and takes them in; again, if files go meanwhile, as brokers delete and replace segments.

    What was taken in before counts as that of a run that was killed.
    """
    for _ in range(MOST_LISTINGS - 1):
        try:
            return take()
        except Exception as error:
            # A task of Spark raises it as a text.
            if not isinstance(error, GoneError | FileNotFoundError) and f".{GoneError.__name__}: " not in str(error):
                raise
    return take()


def next_offsets(tables: Tables, cluster: str) -> dict[str, dict[int, int]]:
    """Return the first offset that was not ingested, by topic and partition."""
    if not tables.exists(RUNS):
        return {}
    offsets: dict[str, dict[int, int]] = {}
    for (topic, partition), last in runs.last_offsets(tables, cluster).items():
        if partition is None:
            continue
        offsets.setdefault(topic, {})[partition] = last + 1
    return offsets


def ingest(tables: Tables, dumps: list[Dump], cluster: str, run_id: str) -> None:
    """Append the records that are not in the tables yet, and merge new facts into those that are."""
    for number, dump in enumerate(dumps):
        _take(tables, dump, cluster, run_id, f"{run_id}/{number}")
    # Only now: the marker that ends a transaction may be in a later dump than its records.
    _settle(tables, cluster, run_id)


def _take(tables: Tables, dump: Dump, cluster: str, run_id: str, transaction: str) -> None:
    identify: Identify = partial(identified, cluster=cluster, run_id=run_id)
    writes_files = dump.source is not None and written_files.can_be_committed(tables, TYPED.values())
    if dump.extents is None:
        assert dump.source is not None
        compared.take(tables, dump, identify, cluster, transaction)
        return
    repeated = _within(cluster, dump.extents)
    overlapping, source = typed_tables.has_any(tables, repeated[0], **repeated[1]), dump.source
    if overlapping and dump.distinct and isinstance(source, SegmentsReader):
        rest = rest_of_grown(tables, source, identify, cluster, repeated)
        if rest is not None:
            (source, identify), overlapping = rest, False
    if source is not None and dump.distinct and not overlapping and writes_files:
        typed_tables.commit(tables, compared.written(tables, source, identify), transaction)
    elif writes_files and not runs_steps(tables.session):
        compared.take(tables, dump, identify, cluster, transaction)
    else:
        from jobs.pipeline.on_spark import arrived, ingest  # not at the top: most runs need no Spark

        if isinstance(source, SegmentsReader) and dump.distinct and not overlapping:
            arrived.write_in_tasks(tables, source, identify, transaction)
        else:
            ingest.take(tables, dump, identify, repeated if overlapping else None, transaction)


def _within(cluster: str, extents: list[DumpExtent]) -> tuple[str, dict[str, Value]]:
    """Return the condition for rows that a dump with these extents may repeat, or that have no position.

    It is SQL for ``TableReader``, and the values that it names.
    """
    values: dict[str, Value] = {"cluster": cluster}
    # Rows without a place can be anywhere, so that each of them may be one of the dump.
    places = ["stray IS NOT NULL"]
    for number, (topic, partition, first) in enumerate(extents):
        of_partition = "" if partition is None else f"AND log_partition = {partition} "
        places.append(f"(log_topic = :topic_{number} {of_partition}AND log_offset >= {first})")
        values[f"topic_{number}"] = topic
    return f"cluster = :cluster AND ({' OR '.join(places)})", values


def _settle(tables: Tables, cluster: str, run_id: str) -> None:
    """Set the outcomes of transactions that a dump leaves open or unknown, from all that was ingested so far."""
    engine = tables.engine()
    ((undecided,),) = engine.tuples(COUNT, cluster=cluster)
    if not undecided:
        return
    few = engine if undecided <= engine.limits.rows else engine.in_spark()
    changed = few.made(DECIDED, CHANGE, cluster=cluster, never=NEVER_COMPACTED)
    if not is_empty(changed):
        tables.merge(LOG_RECORDS, changed, {"outcome": "s.outcome", "revised_by": f"'{run_id}'"})
