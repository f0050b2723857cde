"""Set the outcomes of transactions that a dump leaves open or unknown, from everything that was ingested so far."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from jobs.relations.gaps import NEVER_COMPACTED
from jobs.relations.outcomes import COUNT, DECIDED
from jobs.tables.delta import Tables
from jobs.tables.engine import is_empty
from jobs.tables.log import LOG_RECORDS

CHANGE: Final = pa.schema([LOG_RECORDS.schema.field(name) for name in (*LOG_RECORDS.key, "outcome")])


def settle(tables: Tables, cluster: str, run_id: str) -> None:
    """Set the outcome of open and unknown records."""
    engine = tables.engine()
    ((undecided,),) = engine.tuples(COUNT, cluster=cluster)
    if not undecided:
        return
    few = engine if undecided <= engine.limits.rows else engine.in_spark()
    changed = few.made(DECIDED, CHANGE, cluster=cluster, never=NEVER_COMPACTED)
    if not is_empty(changed):
        tables.merge(LOG_RECORDS, changed, {"outcome": "s.outcome", "revised_by": f"'{run_id}'"})
