"""One group's log as compaction leaves it: of the records before an offset only the last of each key."""

import json

from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord

END = 10_000
"""Beyond every offset of the samples."""


def compacted(
    records: list[CoordinatorRecord], until: int, *, tombstones: bool
) -> tuple[list[CoordinatorRecord], Coverage]:
    """The records left and the offsets that are there; without ``tombstones`` those before ``until`` are gone too."""
    last = {_key(record): record.at.offset for record in records if record.at.offset < until}
    kept = [
        record
        for record in records
        if record.at.offset >= until
        or (last[_key(record)] == record.at.offset and (tombstones or record.value is not None))
    ]
    gone = sorted({record.at.offset for record in records} - {record.at.offset for record in kept})
    ends = [*gone, END]
    starts = [0, *(offset + 1 for offset in gone)]
    spans = [(first, end - 1) for first, end in zip(starts, ends, strict=True) if first < end]
    return kept, Coverage({records[0].at.partition: spans})


def _key(record: CoordinatorRecord) -> str:
    return json.dumps([record.type, record.key], sort_keys=True)
