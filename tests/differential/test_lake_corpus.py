"""The recorded logs through ingest and decode: tables equal to what Kafka's classes decoded, gaps with their cause."""

import gzip
import json
import random
import shutil
from collections import Counter
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.queries.from_logs.answers import replay
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from jobs.tables.delta import Tables
from jobs.tables.log import QUARANTINE, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.spark_reader import SparkReader
from tests.jobs.filled_tables import TOPIC, take
from tests.jobs.queries.same_answers import folder_reader, offsets_then
from tests.shared_data import CORPUS

LOGS = (
    "scenarios",
    "scenarios/compacted_keep",
    "scenarios/compacted_drop",
    "churn/after_compaction",
    "upgrade",
    "misc",
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(spark, str(tmp_path_factory.mktemp("corpus")))


@pytest.fixture(scope="module", params=LOGS)
def cluster(request: pytest.FixtureRequest, tables: Tables) -> str:
    """One recorded cluster, taken in."""
    name: str = request.param
    take(tables, name, CORPUS / name / "logs")
    return name


def recorded(cluster: str) -> Counter[tuple[Any, ...]]:
    """Position, type, group, version, and what a commit commits."""
    found: Counter[tuple[Any, ...]] = Counter()
    with gzip.open(CORPUS / cluster / "decoded.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            if record["isControl"] or record.get("emptyBatch"):
                continue
            key, value = record["key"], record["value"] or {}
            group = key.get("group", key.get("groupId"))
            said = value.get("offset") if record["type"] in (0, 1) else None
            at = (record["partition"], record["offset"], record["timestamp"], record["batchBase"], record["batchLast"])
            found[(*at, record["type"], group, record.get("valueVersion"), said)] += 1
    return found


def test_the_tables_hold_what_kafka_decoded(cluster: str, tables: Tables) -> None:
    columns = ["log_partition", "log_offset", "timestamp_ms", "batch_base", "batch_last", "record_type", "group_id"]
    found: Counter[tuple[Any, ...]] = Counter()
    for table, said in ((OFFSET_COMMITS, "committed_offset"), (GROUP_RECORDS, "CAST(NULL AS LONG)")):
        rows = tables.read(table).where(f"cluster = '{cluster}'").selectExpr(*columns, "value_version", said)
        found.update(tuple(row) for row in rows.collect())
    assert found == recorded(cluster)
    assert tables.read(QUARANTINE).where(f"cluster = '{cluster}'").isEmpty()


def test_groups_and_offsets_from_the_tables_are_those_of_the_log_files(cluster: str, tables: Tables) -> None:
    """At the end, and at offsets in the middle, where transactions are open that end later."""
    logs = find_logs([CORPUS / cluster / "logs"], topics=[TOPIC])
    chance, ends, times = random.Random(5), {}, []
    empty: set[str] = set()
    for partition, files in groupby(logs, attrgetter("partition")):
        rows = list(LogReader(list(files), pytest.fail).rows())
        if not rows:  # the tables have no row of a log partition without records
            empty.add(f"{TOPIC}-{partition}")
        ends[partition] = chance.choice([0, *(row.offset for row in rows)])
        times += [row.timestamp for row in rows]
    times.sort()
    for moment in (AsOf(), AsOf(offsets=ends), AsOf(time_ms=times[len(times) // 2])):
        replayed = replay(logs, moment, pytest.fail)
        for reader in (folder_reader(tables), SparkReader(tables.spark, tables.location)):
            stored = StoredMoment(reader, cluster, moment)
            assert stored.gaps() == {name: each for name, each in replayed.gaps().items() if name not in empty}
            assert offsets_then(stored) == offsets_then(replayed), (reader, moment)


def test_what_compaction_left_out_is_not_called_missing(cluster: str, tables: Tables) -> None:
    runs = tables.read(RUNS).where(f"cluster = '{cluster}' AND job = 'ingest'").collect()
    compacted = sum(run.compacted_offsets or 0 for run in runs)
    assert (compacted > 0) == ("compact" in cluster)
    assert not any(run.missing_offsets or run.unknown_offsets or run.gaps for run in runs)


def test_a_lost_segment_is_missing_data(tables: Tables, tmp_path: Path) -> None:
    """Of a log that nobody compacted."""
    folder = CORPUS / "scenarios" / "logs" / f"{TOPIC}-2"
    first, lost, *others = sorted(folder.glob("*.log"))
    assert others
    (tmp_path / folder.name).mkdir()
    for segment in (first, *others):
        shutil.copy(segment, tmp_path / folder.name)
    take(tables, "lost", tmp_path)
    (run,) = tables.read(RUNS).where("cluster = 'lost' AND job = 'ingest'").collect()
    assert [tuple(gap) for gap in run.gaps] == [(int(lost.stem), int(others[0].stem) - 1, "missing")]


def test_printed_records_give_the_rows_of_the_log(tables: Tables) -> None:
    printed = sorted((CORPUS / "scenarios" / "formatters").glob("*.jsonl.gz"))
    take(tables, "printed", *printed, topics=(TOPIC, "__share_group_state"))
    lines = 0
    for file in printed:
        with gzip.open(file, "rt") as text:
            lines += sum(1 for _ in text)
    commits, groups = (tables.read(table).where("cluster = 'printed'") for table in (OFFSET_COMMITS, GROUP_RECORDS))
    assert commits.count() + groups.count() == lines
    known = Counter(key[5:] for key in recorded("scenarios") if key[5] == 1)
    rows = commits.select("record_type", "group_id", "value_version", "committed_offset").collect()
    assert not Counter(tuple(row) for row in rows) - known
