"""Outcomes that the whole log decides, of random logs with holes: the text says what the rule says, on both engines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.pipeline.transaction_outcomes import CHANGE
from jobs.relations.gaps import GAPS, NEVER_COMPACTED
from jobs.relations.outcomes import BEGINS, COUNT, DECIDED
from jobs.tables.folder_reader import FolderReader
from jobs.tables.local_table import LocalTable
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import TableReader
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.random_commits import write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, fill

VALUES: dict[str, Any] = {"cluster": CLUSTER, "never": NEVER_COMPACTED}
Outcomes = set[tuple[Any, ...]]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Tables of logs in which no transaction is decided yet; some markers have a lower epoch, or say nothing."""
    found = []
    for seed in range(4):
        place = tmp_path_factory.mktemp("outcomes")
        write_logs(place / "logs", seed, holes=seed % 2 == 1)
        fill(place / "tables", place / "logs")
        table = DeltaTable(place / "tables" / "log_records")
        rows = table.to_pyarrow_table()
        is_marker, offset = pc.is_valid(rows["control_type"]), rows["log_offset"]
        tens = pc.subtract(offset, pc.multiply(pc.divide(offset, 10), 10))
        changed = {
            "outcome": pc.if_else(rows["is_transactional"], pa.scalar("unknown"), rows["outcome"]),
            "producer_epoch": pc.if_else(
                pc.and_(is_marker, pc.equal(tens, 3)),
                pa.scalar(-2, rows["producer_epoch"].type),
                rows["producer_epoch"],
            ),
            "control_type": pc.if_else(pc.and_(is_marker, pc.equal(tens, 5)), "EMPTY", rows["control_type"]),
        }
        for name, column in changed.items():
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
        others = rows.set_column(0, "cluster", pa.array(["other"] * rows.num_rows))
        write_deltalake(table, pa.concat_tables([rows, others.cast(rows.schema)]), mode="overwrite")
        found.append(str(place / "tables"))
    return found


def found(tables: TableReader, text: str = DECIDED) -> Outcomes:
    names = "log_topic, log_partition, log_offset, outcome"
    return set(tables.tuples(f"SELECT {names} FROM ({text}) AS f", **VALUES))


def expected(home: str) -> Outcomes:
    """The next marker of the producer decides, unless data is missing before it."""
    tables = FolderReader(home)
    log = list(tables.rows("SELECT * FROM $log_records WHERE cluster = :cluster", **VALUES))
    gaps = [row for row in tables.rows(GAPS.format(begins=BEGINS), **VALUES) if row["cause"] != "compaction"]
    said = {"COMMIT": "committed", "ABORT": "aborted"}
    rows = set()
    for row in log:
        if row["kind"] != "record" or not row["is_transactional"]:
            continue
        place = row["log_topic"], row["log_partition"]
        behind = [
            other
            for other in log
            if (other["log_topic"], other["log_partition"]) == place
            and other["control_type"] is not None
            and other["is_transactional"]
            and other["producer_id"] == row["producer_id"]
            and other["log_offset"] > row["log_offset"]
        ]
        marker = min(behind, key=lambda other: other["log_offset"], default=None)
        outcome = "open"
        if marker is not None:
            is_theirs = marker["producer_epoch"] >= row["producer_epoch"]
            outcome = said.get(marker["control_type"], "unknown") if is_theirs else "unknown"
        for gap in gaps:
            is_before = marker is None or gap["first_offset"] < marker["log_offset"]
            if (
                (gap["log_topic"], gap["log_partition"]) == place
                and row["log_offset"] < gap["first_offset"]
                and is_before
            ):
                outcome = "unknown"
        if outcome != "unknown":
            rows.add((*place, row["log_offset"], outcome))
    return rows


def test_outcomes_are_those_of_the_rule(stores: list[str]) -> None:
    outcomes = [expected(home) for home in stores]
    assert {each[-1] for of_store in outcomes for each in of_store} == {"open", "committed", "aborted"}
    for home, of_store in zip(stores, outcomes, strict=True):
        assert found(FolderReader(home)) == of_store
        assert next(FolderReader(home).tuples(COUNT, **VALUES))[0] > len(of_store)


def test_rows_have_the_key_of_the_log(stores: list[str]) -> None:
    assert {*next(FolderReader(stores[0]).rows(DECIDED, **VALUES))} == {*LOG_RECORDS.key, "outcome"}


def test_a_log_with_the_outcomes_that_were_decided_leaves_nothing_to_decide(stores: list[str], tmp_path: Path) -> None:
    schema, home = to_arrow_schema(CHANGE), shutil.copytree(stores[1], tmp_path / "tables")
    made = pa.Table.from_batches(FolderReader(str(home)).folded(DECIDED, (), iter, schema, **VALUES), schema)
    local = LocalTable.open(str(home / "log_records"))
    assert local is not None
    local.merge(made, LOG_RECORDS.key, {"outcome": "s.outcome"}, "true", insert=False)
    assert made.num_rows > 10
    assert found(FolderReader(str(home))) == set()


def test_spark_says_the_same(stores: list[str], spark: SparkSession) -> None:
    assert found(through_spark(spark, Path(stores[1]))) == expected(stores[1])


MUTATIONS = [
    ("log_offset DESC", "log_offset"),
    ("stray, producer_id ORDER", "stray ORDER"),
    ("f.marker.producer_epoch >= producer_epoch", "TRUE"),
    ("WHEN f.marker.log_offset IS NULL THEN 'open'", "WHEN f.marker.log_offset IS NULL THEN 'unknown'"),
    ("g.first_offset > f.log_offset", "TRUE"),
    ("g.first_offset < f.marker.log_offset", "TRUE"),
    ("f.log_partition = g.log_partition AND", ""),
    ("WHERE cause <> 'compaction'", ""),
    ("WHEN 'ABORT' THEN 'aborted'", ""),
    ("WHERE outcome <> outcome_before", ""),
]


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[part for part, _ in MUTATIONS])
def test_a_mutated_text_is_found(stores: list[str], part: str, instead: str) -> None:
    """Each part of the text matters to some records."""
    assert part in DECIDED
    mutated = DECIDED.replace(part, instead)
    assert any(found(FolderReader(home), mutated) != found(FolderReader(home)) for home in stores)
