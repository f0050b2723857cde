"""Outcomes that the whole log decides, of random logs with holes: the text says what the rule says, on both engines."""

import shutil
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from jobs.pipeline.ingest import CHANGE
from jobs.relations.gaps import GAPS, NEVER_COMPACTED, listed
from jobs.relations.outcomes import COUNT, DECIDED
from jobs.tables.folder_reader import FolderReader
from jobs.tables.local_table import LocalTable
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import TableReader
from tests.jobs.relations.engines import through_spark
from tests.jobs.relations.random_commits import write_logs
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, add_another_cluster, fill

VALUES: dict[str, Any] = {"cluster": CLUSTER, "never": NEVER_COMPACTED}
Outcomes = list[tuple[Any, ...]]
SAID = {"COMMIT": "committed", "ABORT": "aborted"}


class Store(NamedTuple):
    """Tables, and the outcomes that are decided there."""

    home: str
    decided: Outcomes


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Store]:
    """Tables of logs in which few transactions are decided; some markers have a lower epoch, or say nothing.

    There are records that are in no transaction and whose outcome is unknown, as in a dump by a consumer.
    """
    found = []
    for seed in range(4):
        place = tmp_path_factory.mktemp("outcomes")
        write_logs(place / "logs", seed, holes=seed % 2 == 1)
        fill(place / "tables", place / "logs")
        table = DeltaTable(place / "tables" / "log_records")
        rows = table.to_pyarrow_table()
        is_marker, offset = pc.is_valid(rows["control_type"]), rows["log_offset"]
        tens = pc.subtract(offset, pc.multiply(pc.divide(offset, 10), 10))
        undecided = pc.if_else(pc.less(tens, 5), pa.scalar("unknown"), pa.scalar("open"))
        changed = {
            "outcome": pc.if_else(pc.equal(tens, 7), rows["outcome"], undecided),
            "producer_epoch": pc.if_else(
                pc.and_(is_marker, pc.equal(tens, 3)),
                pa.scalar(-2, rows["producer_epoch"].type),
                rows["producer_epoch"],
            ),
            "control_type": pc.if_else(pc.and_(is_marker, pc.equal(tens, 5)), "EMPTY", rows["control_type"]),
        }
        for name, column in changed.items():
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
        write_deltalake(table, rows, mode="overwrite")
        add_another_cluster(place / "tables")
        found.append(Store(str(place / "tables"), expected(str(place / "tables"))))
    return found


def found(tables: TableReader, text: str = DECIDED) -> Outcomes:
    return sorted((*place, outcome) for *place, _, _, outcome in tables.tuples(text, **VALUES))


def expected(home: str) -> Outcomes:
    """The next marker of the producer decides, unless data is missing before it."""
    tables = FolderReader(home)
    log = list(tables.rows("SELECT * FROM $log_records WHERE cluster = :cluster ORDER BY log_offset", **VALUES))
    lost, markers = defaultdict[Any, list[int]](list), defaultdict[Any, list[dict[str, Any]]](list)
    begins, values = listed({(GROUP_LOG, number): 0 for number in (0, 1)})
    for gap in tables.rows(GAPS.format(begins=begins), **VALUES, **values):
        if gap["cause"] != "compaction":
            lost[gap["log_topic"], gap["log_partition"]].append(gap["first_offset"])
    for row in log:
        if row["control_type"] is not None and row["is_transactional"]:
            markers[row["log_topic"], row["log_partition"], row["producer_id"]].append(row)
    rows = []
    for row in log:
        if is_undecided(row):
            place = row["log_topic"], row["log_partition"]
            ends = markers[*place, row["producer_id"]]
            behind = bisect_right(ends, row["log_offset"], key=itemgetter("log_offset"))
            outcome = outcome_of(row, ends[behind] if behind < len(ends) else None, lost[place])
            if outcome != row["outcome"]:
                rows.append((CLUSTER, *place, row["log_offset"], outcome))
    return sorted(rows)


def is_undecided(row: Mapping[str, Any]) -> bool:
    return row["kind"] == "record" and row["is_transactional"] and row["outcome"] in ("open", "unknown")


def outcome_of(row: Mapping[str, Any], marker: Mapping[str, Any] | None, lost: Iterable[int]) -> str:
    """What the next marker of its producer says of a record, where these offsets begin what is missing."""
    if any(row["log_offset"] < first and (marker is None or first < marker["log_offset"]) for first in lost):
        return "unknown"
    if marker is None:
        return "open"
    is_theirs = marker["producer_epoch"] >= row["producer_epoch"]
    return SAID.get(marker["control_type"], "unknown") if is_theirs else "unknown"


def test_outcomes_are_those_of_the_rule(stores: list[Store]) -> None:
    assert {row[-1] for store in stores for row in store.decided} == {"open", "committed", "aborted", "unknown"}
    for store in stores:
        assert found(FolderReader(store.home)) == store.decided


def test_undecided_records_are_counted(stores: list[Store]) -> None:
    for store in stores:
        tables = FolderReader(store.home)
        log = tables.rows("SELECT * FROM $log_records WHERE cluster = :cluster", **VALUES)
        assert list(tables.tuples(COUNT, **VALUES)) == [(sum(map(is_undecided, log)),)]


def test_rows_have_the_key_of_the_log(stores: list[Store]) -> None:
    assert {*next(FolderReader(stores[0].home).rows(DECIDED, **VALUES))} == {*LOG_RECORDS.key, "outcome"}


def test_a_log_with_the_outcomes_that_were_decided_leaves_nothing(stores: list[Store], tmp_path: Path) -> None:
    schema, home = CHANGE, shutil.copytree(stores[1].home, tmp_path / "tables")
    made = pa.Table.from_batches(FolderReader(str(home)).folded(DECIDED, (), iter, schema, **VALUES), schema)
    local = LocalTable.open(str(home / "log_records"))
    assert local is not None
    local.merge(made, LOG_RECORDS.key, {"outcome": "s.outcome"}, "true", insert=False)
    assert made.num_rows > 10
    assert found(FolderReader(str(home))) == []


def test_spark_says_the_same(stores: list[Store], spark: SparkSession) -> None:
    assert found(through_spark(spark, Path(stores[1].home))) == stores[1].decided


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
def test_a_mutated_text_is_found(stores: list[Store], part: str, instead: str) -> None:
    """Each part of the text matters to some records."""
    assert part in DECIDED
    mutated = DECIDED.replace(part, instead)
    assert any(found(FolderReader(store.home), mutated) != store.decided for store in stores)
