"""Outcomes that the whole log decides: across compaction, across lost data, and when lost data turns up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.control import ABORT, COMMIT
from jobs.pipeline import ingest
from jobs.sources.dump import open_dump
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from tests.jobs.logs import batch, marker, write_segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

TOPIC = "__consumer_offsets"


def commit(offset: int, topic: str) -> CoordinatorRecord:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
    return CoordinatorRecord(LogPosition(0, offset, 1000), 1, {"group": "g", "topic": topic, "partition": 0}, value)


def write_dump(folder: Path) -> None:
    """Two partitions that lack offsets 4 to 7: one can have been compacted, of the other it is known that it was not.

    Producer 1 has data before the hole and a COMMIT behind it, producer 2 data before it only.
    """
    for partition, repeated in enumerate(("a", "b")):
        place = folder / f"{TOPIC}-{partition}"
        before = [batch(commit(0, "a")), batch(commit(1, repeated))]
        before += [batch(commit(2, "d"), producer_id=1), batch(commit(3, "e"), producer_id=2)]
        write_segment(place, before)
        write_segment(place, [batch(commit(8, "f"), producer_id=1), marker(COMMIT, 1, 9, 1000)], 8)


def outcomes(tables: Tables) -> dict[tuple[int, int], str]:
    rows = tables.read(LOG_RECORDS).where("kind = 'record' AND is_transactional").collect()
    return {(row.log_partition, row.log_offset): row.outcome for row in rows}


def test_only_a_gap_that_compaction_explains_lets_a_marker_decide(spark: SparkSession, tmp_path: Path) -> None:
    logs, tables = tmp_path / "logs", Tables(spark, str(tmp_path / "tables"))
    write_dump(logs)
    ingest.run(tables, open_dump(spark, [str(logs)]), "c")
    lost = {(0, 2): "unknown", (0, 3): "unknown", (0, 8): "committed"}
    compacted = {(1, 2): "committed", (1, 3): "open", (1, 8): "committed"}
    assert outcomes(tables) == lost | compacted
    middle = [marker(ABORT, 1, 4, 1000), batch(commit(5, "g"), producer_id=1), batch(commit(6, "g"), producer_id=1)]
    found = write_segment(tmp_path / "found" / f"{TOPIC}-0", [*middle, marker(COMMIT, 2, 7, 1000)], 4)
    ingest.run(tables, open_dump(spark, [str(found)]), "c")
    known = {(0, 2): "aborted", (0, 3): "committed", (0, 5): "committed", (0, 6): "committed", (0, 8): "committed"}
    assert outcomes(tables) == known | compacted
