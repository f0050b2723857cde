"""The pass over the files of the tables: the rows and sums are those of the log in its order, however the files lie."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import Row as SQLRow
from pyspark.sql import SparkSession

from jobs.pipeline import commit_summaries as summaries
from jobs.pipeline import compared, decode, runs, typed_tables
from jobs.pipeline.commits import from_files
from jobs.pipeline.commits.fold import PassOver, What
from jobs.pipeline.commits.from_files import SOURCES, WANTED, Slice
from jobs.pipeline.row_identity import identified
from jobs.settings import EngineLimits
from jobs.sources.files import KNOWN_TOPICS
from jobs.sources.segments import SegmentsReader
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES, RUNS
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.pipeline.commits.test_commit_fold import CLUSTER, LOG_TOPIC, GeneratedLog, Row, summarized

PARTITION = 3
PLACE = PassOver(CLUSTER, LOG_TOPIC, ["run"])
OF_ROW = {"cluster": CLUSTER, "log_topic": LOG_TOPIC, "run_id": "run"}
SUMMED_UP = (COMMIT_SUMMARIES.name, LOG_RANGES.name)
OTHERS = (
    *({"cluster": "other"}, {"log_topic": "__share_group_state"}, {"run_id": "later"}),
    *({"log_partition": 4}, {"log_offset": None}, {"log_partition": None}),
)
"""What makes a row one that the pass leaves out."""


def stored(row: Row) -> Row:
    """A row of the input as its table has it."""
    what = What(row["what"])
    names = {"log_partition", "timestamp_ms", *WANTED[what]}
    marker = {"is_transactional": True, "control_type": "COMMIT"} if what is What.MARKER else {}
    return OF_ROW | {name: row[name] for name in names} | marker


def write(place: Path, rng: random.Random, rows: list[Row]) -> dict[What, list[str]]:
    """Write rows to files, each in row groups of any size and order; some files have statistics, others have none."""
    files: dict[What, list[str]] = {}
    for what, table in SOURCES.items():
        schema, mine = table.schema, [stored(row) for row in rows if row["what"] == what]
        mine += [row | other for row in mine[:5] for other in OTHERS]
        if what is What.MARKER:
            mine += [row | {"control_type": None, "is_transactional": False} for row in mine[:3]]
            mine += [row | {"control_type": "LEADER_CHANGE"} for row in mine[:3]]
        if rng.random() < 0.7:  # nearly as ingest does it
            mine.sort(key=lambda row: ((row["log_offset"] or 0) // 20, row.get("group_id") or "", row["run_id"]))
        else:
            rng.shuffle(mine)
        while mine:
            count = rng.randrange(1, len(mine) + 1)
            path = place / f"{what.name}-{len(files.get(what, ()))}.parquet"
            some = pa.Table.from_pylist(mine[:count], schema)
            pq.write_table(some, path, row_group_size=rng.randrange(1, 40), write_statistics=rng.random() < 0.8)
            files.setdefault(what, []).append(str(path))
            mine = mine[count:]
    return files


def logged(seed: int) -> tuple[GeneratedLog, list[Row], random.Random]:
    """A log of one partition, its rows with the outcomes as of its end."""
    rng = random.Random(seed)
    log = GeneratedLog(rng)
    log.write()
    return log, log.input(0, log.offset + 1, []), rng


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_files_are_in_the_order_of_the_log(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, rows, rng = logged(seed)
    monkeypatch.setattr(from_files, "CHUNK_ROWS", rng.choice((1, 10, 1000)))
    files = write(tmp_path, rng, rows)
    chunks = list(from_files.rows_in_order(Slice(PARTITION, 0, 1, files), PLACE))
    found = [row for chunk in chunks for row in chunk.to_pylist()]
    names = ("what", "log_offset", "group_id", "topic", "partition", "committed_offset", "outcome", "producer_id")
    wanted = [
        {"what": row["what"]} | {name: row[name] for name in names if name in WANTED[What(row["what"])]} for row in rows
    ]
    assert [{name: row[name] for name in given} for row, given in zip(found, wanted, strict=True)] == wanted


def as_text(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without the end of the log, of which a slice knows its own, and without the order in lists."""
    return sorted(
        repr({name: sorted(value, key=repr) if isinstance(value, list) else value for name, value in row.items()})
        for row in (dict(row, log_end=None) for row in rows)
    )


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_slices_of_files_sum_up_what_the_whole_log_does(
    seed: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, rows, rng = logged(seed)
    monkeypatch.setattr(from_files, "CHUNK_ROWS", rng.choice((1, 10, 1000)))
    files = write(tmp_path, rng, rows)
    slices = [Slice(PARTITION, number, count, files) for number in range(count)]
    found = [row for each in slices for batch in from_files.summarized(each, PLACE) for row in batch.to_pylist()]
    assert as_text(found) == as_text(summarized(log, rows, 1000))


def test_a_log_partition_without_rows_has_no_sums(tmp_path: Path) -> None:
    _, rows, rng = logged(1)
    files = write(tmp_path, rng, rows)
    assert list(from_files.summarized(Slice(77, 0, 1, files), PLACE)) == []


class Frame:
    """What the pass asks of a DataFrame; its tasks run here, one after the other."""

    def __init__(self, tasks: list[pa.RecordBatch]) -> None:
        self.tasks = tasks

    def mapInArrow(self, task: Callable[[Any], Any], schema: Any) -> "Frame":  # noqa: N802
        return Frame([batch for each in self.tasks for batch in task(iter([each]))])

    def collect(self) -> list[SQLRow]:
        return [SQLRow(**row) for batch in self.tasks for row in batch.to_pylist()]


class Tasks:
    """What the pass asks of Spark."""

    conf = SimpleNamespace(get=lambda name, default=None: "local[2]")

    def range(self, start: int, end: int, step: int, tasks: int) -> Frame:
        return Frame([pa.RecordBatch.from_pydict({"id": [number]}) for number in range(start, end, step)])


def first_night(place: Path, rows: int) -> dict[str, list[str]]:
    """Take in the samples, with several tasks a log partition; this process sums up at most so many ``rows``."""
    tables = Tables(cast(SparkSession, Tasks()), str(place), replace(EngineLimits(), rows=rows))
    typed_tables.create(tables)
    tables.create(RUNS)
    segments = SegmentsReader([str(SAMPLE_LOGS)], KNOWN_TOPICS, LOG_TOPIC, 1 << 16)
    identify = partial(identified, cluster=CLUSTER, run_id="run")
    typed_tables.commit(tables, compared.written(tables, segments, identify), "run/0")
    runs.account_ingest(tables, "run", CLUSTER)
    decode.run(tables)
    return {name: as_text(DeltaTable(str(place / name)).to_pyarrow_table().to_pylist()) for name in SUMMED_UP}


def test_a_first_night_sums_up_the_files_that_ingest_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of a log without a gap are found here, however many rows it has."""
    monkeypatch.setattr(Tables, "is_here", lambda self: True)
    written: list[int] = []

    def write_files(tables: Tables, slices: Sequence[Slice], place: PassOver) -> list[SQLRow]:
        written.append(len(slices))
        return from_files_write(tables, slices, place)

    from_files_write = from_files.write_files
    monkeypatch.setattr(from_files, "write_files", write_files)
    whole = first_night(tmp_path / "whole", 1_000_000)
    assert written == []
    assert first_night(tmp_path / "files", 0) == whole
    assert len(written) == 1
    assert written[0] > 1
    assert min(map(len, whole.values())) > 1


def test_cores_of_a_session() -> None:
    assert [summaries._cores(master) for master in ("local[3]", "local", "local[5, 2]", None)] == [3, 1, 5, 1]
    assert summaries._cores("local[*]") >= 1
