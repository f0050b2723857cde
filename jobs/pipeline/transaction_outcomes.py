"""Set the outcomes of transactions that a dump leaves open or unknown, from everything that was ingested so far."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from jobs.relations.gaps import NEVER_COMPACTED
from jobs.relations.outcomes import COUNT, DECIDED
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS

CHANGE: Final = StructType([LOG_RECORDS.schema[name] for name in (*LOG_RECORDS.key, "outcome")])


def settle(tables: Tables, cluster: str, run_id: str) -> None:
    """Set the outcome of open and unknown records."""
    engine = tables.engine()
    ((undecided,),) = engine.tuples(COUNT, cluster=cluster)
    if not undecided:
        return
    few = engine if undecided <= engine.limits.rows else engine.in_spark()
    changed = few.made(DECIDED, CHANGE, cluster=cluster, never=NEVER_COMPACTED)
    if changed.num_rows if isinstance(changed, pa.Table) else not changed.isEmpty():
        tables.merge(LOG_RECORDS, changed, {"outcome": "s.outcome", "revised_by": f"'{run_id}'"})
