"""Whether two folders of tables say the same, for tables of millions of rows, read without Spark."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable

from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.history import HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import FINDINGS, GROUP_OFFSETS
from jobs.tables.table import Table

COMPARED = (
    *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, LOG_RANGES, COMMIT_SUMMARIES),
    *(*HISTORY.values(), FINDINGS, GROUP_OFFSETS),
)
OF_RUN = ("run_id", "revised_by", "extra")
"""Columns that say which run wrote a row."""


def rows(home: Path, table: Table) -> pa.Table:
    """Return the rows without the columns of the run; of committed offsets those of the last run."""
    found = pa.table(DeltaTable(str(home / table.name)).to_pyarrow_table())
    if table is GROUP_OFFSETS and len(found):
        newest = max(found["run_id"].to_pylist())
        found = found.filter(pa.compute.equal(found["run_id"], newest))
    return found.select([name for name in found.column_names if name not in OF_RUN])


def hashes(found: pa.Table) -> np.ndarray:
    """Return one number for each row, sorted."""
    columns = {}
    for name, column in zip(found.column_names, found.columns, strict=True):
        nested = pa.types.is_nested(column.type)
        columns[name] = [repr(value) for value in column.to_pylist()] if nested else column.to_pandas()
    return np.sort(pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy())


def differing(quiet: Path, disturbed: Path) -> dict[str, tuple[int, int, int]]:
    """Return the tables that differ: number of rows in each folder, and number of rows that only one of them has."""
    found = {}
    for table in COMPARED:
        one, other = (hashes(rows(home, table)) for home in (quiet, disturbed))
        if not np.array_equal(one, other):
            found[table.name] = (len(one), len(other), len(np.setxor1d(one, other)))
    return found
