"""What the shipped suites on tables look at, and that each of them fails where it should."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from jobs.checks import frames, project
from jobs.checks.validation import CheckRun, validate
from jobs.settings import EngineLimits
from jobs.tables import engine
from jobs.tables.folder_reader import FolderReader, UnsupportedTableError

NIGHTS = [*range(100, 105), 1000]
GOOD: dict[str, dict[str, Any]] = {
    "rebalances": {
        **{"cluster": "c", "group_id": "g", "at_partition": 1, "at_offset": 7, "outcome": "converged"},
        **{"duration_min_ms": 5, "duration_max_ms": 9, "idle_ms": 8, "idle_max_ms": 8},
    },
    "target_audits": {
        **{"cluster": "c", "group_id": "g", "at_partition": 1, "at_offset": 7},
        **{"verdict": "identical", "difference_count": 0},
    },
    "group_offsets": {
        **{"cluster": "c", "run_id": "r", "log_topic": "l", "group_id": "g", "topic": "t", "partition": 1},
        **{"status": "committed", "producer_id": -1, "committed_offset": 5, "lag": 0},
    },
    "references": {"reference": "a in b", "cluster": None, "row": None, "found": True},
    "trend": {"cluster": "c", "night": "n", "what": "records", "value": 9.0, "usual": 10.0, "times_usual": 0.9},
}
BAD: dict[str, list[dict[str, Any]]] = {
    "rebalances": [{"outcome": "lost"}, {"duration_max_ms": 4}, {"idle_ms": 7}],
    "target_audits": [{"verdict": "fine", "difference_count": 3}, {"difference_count": 1}],
    "group_offsets": [{"committed_offset": -2}, {"lag": -1}, {"group_id": None}, {"run_id": "r"}],
    "references": [{"found": False, "row": "epoch 3"}],
    "trend": [{"times_usual": 0.05}, {"what": "findings", "times_usual": 11.0}],
}


def test_each_shipped_expectation_on_tables_fails_on_a_row_that_breaks_it_alone(tmp_path: Path) -> None:
    folder = tmp_path / "gx"
    project.write_project(folder, "/nowhere")
    assert set(GOOD) == project.of_tables()
    for name, row in GOOD.items():
        rows = [row, *({**row, "run_id": f"r{number}", **bad} for number, bad in enumerate(BAD[name]))]
        source = project.MEASURES if name in (project.REFERENCES, project.TREND) else project.TABLES
        (folder / project.FOLDERS[source]).mkdir(parents=True, exist_ok=True)
        file = folder / project.FOLDERS[source] / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist([{key: each[key] for key in row} for each in rows]), file)
    found = [each for each in validate(folder, CheckRun(None, [], "run", datetime.now(UTC))) if each.suite in GOOD]
    assert {(each.suite, each.passed) for each in found} == {(name, False) for name in GOOD}
    failing = {(each.suite, each.check, each.expectation, each.bound): each.happened or "" for each in found}
    assert len(failing) == sum(len(project.shipped()[name]["expectations"]) for name in GOOD)
    assert all(" of " in said for said in failing.values()), "rows are named"
    assert any("group_id g, at_partition 1, at_offset 7" in said for said in failing.values())


class Engine:
    """Answers each question with the same rows."""

    def __init__(self, rows: list[Mapping[str, Any]]) -> None:
        self.given = rows

    def exists(self, table: str) -> bool:
        return True

    def rows(self, sql: str) -> Iterator[Mapping[str, Any]]:
        return iter([] if "$runs" in sql else self.given)


@pytest.mark.parametrize(("nights", "usual"), [(NIGHTS, 102.0), (NIGHTS[2:], None), ([1] * 9, None)])
def test_a_night_is_compared_with_the_median_of_those_before_it(nights: list[int], usual: float | None) -> None:
    rows = [{"cluster": "c", "night": str(number), "findings": 0, "rebalances": 0} for number in range(len(nights))]
    given = [{**row, "findings": value} for row, value in zip(rows, nights, strict=True)]
    (found,) = [row for row in frames._trend(Engine(given)) if row["what"] == "findings"]  # type: ignore[arg-type]
    assert (found["value"], found["usual"]) == (nights[-1], usual)


@pytest.mark.parametrize(("limit", "where"), [(2, "here"), (1, "Spark")])
def test_references_with_few_keys_are_looked_for_here_in_however_many_rows(
    tmp_path: Path, limit: int, where: str
) -> None:
    write_deltalake(tmp_path / "log_records", pa.table({"cluster": ["c"] * 50, "run_id": [*"ab"] * 25}))
    write_deltalake(tmp_path / "runs", pa.table({"cluster": ["c"], "run_id": ["a"]}))

    def through_spark(error: UnsupportedTableError | None) -> Any:
        raise AssertionError("Spark")

    found = frames._references(engine.Engine(FolderReader(str(tmp_path)), through_spark, EngineLimits(rows=limit)))
    if where == "Spark":
        with pytest.raises(AssertionError, match="Spark"):
            list(found)
    else:
        assert [(row["row"], row["found"]) for row in found] == [("run_id b", False)]
