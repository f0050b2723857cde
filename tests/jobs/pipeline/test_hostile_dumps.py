"""What tasks of an ingest do with changed dumps of every kind that Python reads: no row is lost, and nothing fails.

The changes are those of ``tests.fuzz``. In a night a failure here would end a task of Spark.
"""

import random
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.records import LOG_TOPICS, Family
from jobs.pipeline.decode_arrow import typed_rows
from jobs.sources.dump_batches import dumped_batches
from jobs.sources.printed import json_lines
from jobs.sources.segments import SegmentsReader
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from tests.core.wire.samples import sample_records
from tests.fuzz.files import json_lines_changed
from tests.fuzz.stretches import stretch

SEEDS = [range(40), *(pytest.param(range(at, at + 40), marks=pytest.mark.long) for at in range(40, 4_000, 40))]
"""Many in each test: a process takes longer to collect a test than to run one of these."""
TOPICS = frozenset({*LOG_TOPICS.values(), ""})


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


def assert_each_row_is_somewhere(batches: Iterable[pa.RecordBatch]) -> Counter[str]:
    """Each row is in the log; each record in a table of its own or in quarantine, and damaged bytes in quarantine."""
    rows, kinds = Counter[str](), Counter[str]()
    for batch in batches:
        kinds.update(batch.column("kind").to_pylist())
        for table, typed in typed_rows(batch):
            rows[table.name] += typed.num_rows
    assert rows[LOG_RECORDS.name] == kinds.total()
    tables = (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE)
    assert sum(rows[table.name] for table in tables) == kinds["record"] + kinds["damaged"]
    return rows


@pytest.mark.parametrize("seeds", SEEDS)
def test_segments(seeds: range, simulated: Path, tmp_path: Path) -> None:
    for seed in seeds:
        assert_segments_are_read(seed, simulated, tmp_path / str(seed))


def assert_segments_are_read(seed: int, simulated: Path, folder: Path) -> None:
    for name, data in stretch(simulated, random.Random(seed)).logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    files = [str(file) for file in folder.rglob("*.log") if file.read_bytes().strip(b"\0")]
    reader = SegmentsReader(files, TOPICS, LOG_TOPICS[Family.GROUP], 1 << 30)
    rows = assert_each_row_is_somewhere(batch for part in reader.partitions() for batch in reader.read(part))
    assert rows or not files


def lines(choose: random.Random) -> list[dict[str, Any]]:
    """Some sample records as a dump of JSON lines has them, each in any of its forms."""
    made: list[dict[str, Any]] = []
    for offset, record in enumerate(choose.sample(sample_records(), 5)):
        value = None if record.value is None else b64encode(record.value).decode()
        where = {"topic": LOG_TOPICS[record.family], "partition": 0, "offset": offset, "timestamp": 1_700_000_000_000}
        made.append({**where, "key": None if record.key is None else b64encode(record.key).decode(), "value": value})
    made.append({"key": {"type": 1, "data": {"group": "g", "topic": "t", "partition": 3}}, "value": None})
    made.append({"topic": "t", "partition": 0, "offset": 5, "tstype": "create", "ts": 7, "key": "aw==", "payload": ""})
    return made


@pytest.mark.parametrize("seeds", SEEDS)
def test_json_lines(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        assert_lines_are_read(seed, tmp_path / f"{seed}.jsonl")


def assert_lines_are_read(seed: int, file: Path) -> None:
    choose = random.Random(seed)
    content = json_lines_changed(lines(choose), choose)
    file.write_bytes(content)
    read = [{**row, "source": str(file)} for row in json_lines.read(file)]
    assert len(read) == sum(bool(line.strip()) for line in content.split(b"\n"))
    assert_each_row_is_somewhere(dumped_batches(read))
