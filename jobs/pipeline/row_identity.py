"""What identifies a row of a dump among all rows of the log, and the run that took it in.

It is computed from Arrow batches in Python, in whichever process has the row next: the task that reads segments, or the
one that decodes what Spark has read. Only rows that are compared with others before they are decoded pass Python twice.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from jobs.pipeline.decode_arrow import rows_of
from jobs.sources.files import SNAPSHOT_SUFFIX
from jobs.sources.segments import OF_BATCH
from jobs.tables.log import LOG_RECORDS

Identify = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes rows of ``log_records`` from those of a dump, as ``identified`` does with a cluster and a run."""

DETAILS: Final = (*OF_BATCH, "outcome", "timestamp_type", "source", "place")
"""Columns that segments have, and dumps made by a consumer lack."""

CONTENT: Final = ("key_hash", "timestamp_ms")
"""Columns that are equal in all dumps of a record that have them. Values are not compared: they may be deleted."""

NEVER_REPLICATED: Final = " was never replicated, as the other one is of a later leader (KIP-101): "
OTHER_LOG: Final = (
    "so they are not of the same log: give each cluster its own name (--cluster). Of records that were printed without "
    "positions, a cluster's tables take one output, and that again when it has grown"
)
EARLIER_LEADER: Final = f"the first{NEVER_REPLICATED}leave this copy out, or take both in at once into new tables"
LATER_LEADER: Final = f"the second{NEVER_REPLICATED}take both copies in at once, into new tables"
"""What to do about two different records of one offset: their leader epochs tell which one counts."""

SPARK_SEED: Final = 42
"""The seed of Spark's ``xxhash64``: whoever asks the tables in Spark can find a key by its hash."""


def identified(dumped: pa.RecordBatch, cluster: str, run_id: str) -> pa.RecordBatch:
    """Return rows of a dump (columns ``DUMPED``) with the columns of ``log_records``, which they keep as they are."""
    added = {
        "cluster": pa.repeat(cluster, dumped.num_rows),
        "run_id": pa.repeat(run_id, dumped.num_rows),
        "record_type": _record_types(dumped),
        "stray": _strays(dumped),
        "key_hash": _key_hashes(dumped.column("key")),
    }
    return rows_of(LOG_RECORDS, dumped, added)


def _record_types(rows: pa.RecordBatch) -> pa.Array:
    """Return the first two bytes of each record's key as a signed int16; null for shorter keys and other rows."""
    key = rows.column("key")
    is_typed = pc.and_(pc.equal(rows.column("kind"), "record"), pc.greater_equal(pc.binary_length(key), 2))
    is_typed = pc.fill_null(is_typed, False)
    # Rows without a type get two bytes as well, so that the numbers of all rows are one buffer.
    first_two = pc.if_else(is_typed, pc.binary_slice(key, 0, 2), pa.scalar(b"\0\0", key.type))
    numbers = np.frombuffer(b"".join(first_two.to_pylist()), ">i2").astype(np.int16)
    return pc.if_else(is_typed, pa.array(numbers), pa.scalar(None, pa.int16()))


def _strays(rows: pa.RecordBatch) -> pa.Array:
    """Return what identifies the rows that have no log position; see ``stray`` of ``log_records``."""
    unplaced = rows.column("log_offset").is_null()
    stray = pc.or_(unplaced, rows.column("log_partition").is_null())
    if not pc.any(stray).as_py():
        return pa.nulls(rows.num_rows, pa.string())
    source = rows.column("source")
    # Copies of a snapshot in different places are the same snapshot.
    is_snapshot = pc.ends_with(source, SNAPSHOT_SUFFIX)
    name = pc.if_else(is_snapshot, pc.replace_substring_regex(source, "^.*/", ""), source)
    place = pc.if_else(unplaced, rows.column("place").cast(pa.string()), pa.scalar(None, pa.string()))
    joined = pc.binary_join_element_wise(name, place, "#", null_handling="skip")
    return pc.if_else(stray, joined, pa.scalar(None, pa.string()))


def _key_hashes(keys: pa.Array) -> pa.Array:
    """Return Spark's ``xxhash64`` of each key; null for no key."""
    hashes = [0 if key is None else xxhash.xxh64_intdigest(key, SPARK_SEED) for key in keys.to_pylist()]
    signed = pa.array(np.array(hashes, np.uint64).view(np.int64))
    return pc.if_else(keys.is_valid(), signed, pa.scalar(None, pa.int64()))
