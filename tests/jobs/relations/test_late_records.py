"""What a night lacked of the logs, as a later one shows."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.relations.news import late_records
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RANGES
from tests.jobs.relations.engines import through_spark, write

TOPIC = "__consumer_offsets"
LATE = [f"{TOPIC}-0"], [f"{TOPIC}-1"]


def added(
    run: str, partition: int, first: int, last: int, first_ms: int | None, cluster: str = "c"
) -> dict[str, object]:
    """What a run has added of a partition: one record in each ms."""
    return {
        "cluster": cluster,
        "run_id": run,
        "log_topic": TOPIC,
        "log_partition": partition,
        "first_offset": first,
        "last_offset": last,
        "records": last - first + 1,
        "first_ms": first_ms,
        "last_ms": None if first_ms is None else first_ms + last - first,
        "has_start": False,
    }


@pytest.mark.parametrize(
    ("later", "lacked"),
    [
        ([added("night 2 run", 0, 10, 19, 1_010)], []),
        ([added("night 2 run", 0, 3, 5, 1_003)], LATE[0]),
        ([added("night 2 run", 0, 3, 5, 1_003, "other")], []),
        ([added("night 2 run", 1, 0, 9, 1_008)], LATE[1]),
        ([added("night 2 run", 1, 0, 9, 1_010)], []),
        ([added("night 2 run", 1, 0, 9, None)], []),
        ([added("night 2 run", 0, 3, 5, 1_003), added("night 2 run", 0, 10, 19, 1_010)], LATE[0]),
        ([added("night 2 run", 1, 0, 1, 1_008), added("night 2 run", 1, 5, 9, 1_015)], LATE[1]),
        ([added("night 3 run", 0, 3, 5, 1_003), added("night 3 run", 1, 0, 9, 1_000)], [*LATE[0], *LATE[1]]),
    ],
    ids=[
        "appended",
        "a hole",
        "of another cluster",
        "a partition",
        "a new partition",
        "without times",
        "a hole, and appended",
        "a partition, and later",
        "two nights later",
    ],
)
def test_what_a_later_night_has_from_before_was_lacking(
    tmp_path: Path, later: list[dict[str, object]], lacked: list[str]
) -> None:
    first = [added("night 1 run", 0, 0, 2, 1_000), added("night 1 run", 0, 6, 9, 1_006)]
    write(tmp_path, {LOG_RANGES: [*first, *later]})
    found = late_records(FolderReader(str(tmp_path)), "c", ["night 1", "night 2", "night 3"])
    assert found.get("night 1", []) == lacked
    assert found.keys() <= {"night 1", "night 2"}


def test_spark_says_the_same(tmp_path: Path, spark: SparkSession) -> None:
    rows = [
        added("night 1 run", 0, 0, 2, 1_000),
        added("night 1 run", 0, 6, 9, 1_006),
        added("night 2 run", 0, 3, 5, 3),
    ]
    write(tmp_path, {LOG_RANGES: rows})
    assert late_records(through_spark(spark, tmp_path), "c", ["night 1", "night 2"]) == {"night 1": LATE[0]}


def test_tables_without_ranges_do_not_tell(tmp_path: Path) -> None:
    assert late_records(FolderReader(str(tmp_path)), "c", ["night 1", "night 2"]) == {}
