"""The largest records and batches of each group; ``audit.folds.group_folds`` finds the same in a log."""

from typing import Final

from coordinator_core.wire.batch_format import HEADER_SIZE
from jobs.relations.gaps import FIRST_OF_BATCH

OF_LOG: Final = "log_topic, log_partition, group_id"


def _varint(length: str) -> str:
    """Return SQL for the bytes of a zigzag varint that is not negative."""
    # Seven bits in a byte, of which zigzag takes one for the sign once: 6, 13, 20 and 27 bits are left.
    steps = " ".join(f"WHEN {length} < {1 << bits} THEN {size}" for size, bits in enumerate((6, 13, 20, 27), start=1))
    return f"CASE {steps} ELSE 5 END"


def _at(offset: str) -> str:
    return f"named_struct('partition', log_partition, 'offset', {offset}, 'timestamp_ms', timestamp_ms)"


_BODY: Final = (
    f"3 + {_varint('(log_offset - base)')} + {_varint('key_bytes')} + key_bytes"
    f" + {_varint('value_bytes')} + value_bytes"
)
"""The bytes of a record behind its length. Attributes, time and number of headers take a byte each: a coordinator
writes no headers, and the records of a batch within a few milliseconds.
"""

# In steps, because each length is a varint in front of what it measures: the body needs the lengths of key and value,
# the record that of its body.
SIZES: Final = f"""
WITH measured AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, {FIRST_OF_BATCH} AS base,
    CAST(bytes_of(key) AS BIGINT) AS key_bytes, CAST(coalesce(bytes_of(value), 0) AS BIGINT) AS value_bytes
  FROM $group_records WHERE cluster = :cluster AND log_topic IN :topics AND {{among}} AND log_offset IS NOT NULL
    AND log_partition IS NOT NULL
), bodies AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, base, CAST({_BODY} AS BIGINT) AS body FROM measured
), sized AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, base, CAST(body + {_varint("body")} AS BIGINT) AS size
  FROM bodies
), in_batches AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, size, base,
    row_number() OVER (PARTITION BY {OF_LOG}, record_type ORDER BY size DESC, log_offset) AS nth,
    sum(size) OVER (PARTITION BY {OF_LOG}, base) AS total,
    count(*) OVER (PARTITION BY {OF_LOG}, base) AS records,
    row_number() OVER (PARTITION BY {OF_LOG}, base ORDER BY log_offset DESC) AS from_end
  FROM sized
), batches AS (
  SELECT {OF_LOG}, base, total, records, timestamp_ms,
    row_number() OVER (PARTITION BY {OF_LOG} ORDER BY total DESC, base) AS nth
  FROM in_batches WHERE from_end = 1
)
SELECT group_id, log_topic, CAST(record_type AS INT) AS record_type, size + {HEADER_SIZE} AS size,
  CAST(1 AS BIGINT) AS records, {_at("log_offset")} AS at
FROM in_batches WHERE nth = 1
UNION ALL
SELECT group_id, log_topic, CAST(NULL AS INT), total + {HEADER_SIZE}, records, {_at("base")}
FROM batches WHERE nth = 1
"""
"""The columns of ``RecordSize``: the largest record of each type with a batch of its own, and the largest batch, which
has no type; of equal ones the first in the log.
"""
