"""Ingest dumps into the typed tables: each record once, even if dumps repeat, overlap, or come in any order.

A row is identified by its log position, or by its place in its file if the dump has no positions. Each dump is read
once, decoded on the way (``typed_tables``), and appended without the rows that exist already. Facts that only a better
dump has about existing rows (batches, transactions) are merged into them. So a run that was killed can simply be
repeated. If two dumps have different records at the same position, they are not of the same log, and the second dump is
rejected.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from jobs.pipeline import compared, grown, runs, typed_tables
from jobs.pipeline.decode_arrow import TYPED
from jobs.pipeline.row_identity import Identify, identified
from jobs.pipeline.runs import RunRow
from jobs.relations.gaps import NEVER_COMPACTED
from jobs.relations.outcomes import COUNT, DECIDED
from jobs.sources.dump import Dump, DumpExtent
from jobs.sources.segments import SegmentsReader
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.engine import is_empty, runs_steps
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.reader import Value

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
    unfinished = [row for name in runs.unaccounted(tables) for row in runs.account_ingest(tables, name, cluster)]
    if not dumps:
        return unfinished
    ingest(tables, dumps, cluster, run_id)
    given = frozenset[tuple[str, int]]().union(*(dump.given for dump in dumps))
    return [*unfinished, *runs.account_ingest(tables, run_id, cluster, given)]


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
        rest = grown.rest(tables, source, identify, cluster, repeated)
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
