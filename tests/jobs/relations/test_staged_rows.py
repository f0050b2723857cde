"""What replay reads of the rows that it has staged: of a few rows, each is left out for one reason."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator_core.records import CONNECT_LOG
from jobs.pipeline.replay import GROUPS, MARKS, STATE_VERSION, Replayed, Span, _Run, _stored_states
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.table import Table
from tests.jobs.relations.test_step_questions import OTHER, Row, reader, tables

STATE: Row = {"group_id": "g", "state": "{}", "log_partition": 1, "log_offset": 7, "timestamp_ms": 9}
MARK: Row = {"group_id": "begun again"}
SAME: Row = {"log_topic": CONNECT_LOG}


class Here:
    """An engine that makes rows as they are."""

    def __init__(self, tables: FolderReader) -> None:
        self.rows = tables.rows

    def made(self, text: str, schema: object, **values: Any) -> list[Row]:
        return [dict(row) for row in self.rows(text, **values)]


def made(rows: Any) -> list[Row]:
    """What the engine above has made."""
    return list(rows)


def staged(home: Path, rows: list[Row]) -> Replayed:
    engine = Here(reader(home, {REPLAYED: rows}))
    return Replayed(SimpleNamespace(local=lambda table: None, are_copied=lambda tables: True, engine=lambda: engine))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FOLDED.values())
def test_staged_rows_are_of_one_table_each(tmp_path: Path, name: str) -> None:
    others = [each for each in FOLDED.values() if each != name]
    rows: list[Row] = [{"group_id": "g", name: {"group_id": "g"}}] * 2
    rows += [{"group_id": "g", other: {"group_id": other}} for other in others]
    found = staged(tmp_path, [*rows, STATE, MARK, MARK])
    assert found.counts() == {**dict.fromkeys(others, 1), name: 2, GROUPS: 1, MARKS: 2}
    # Only a violation can be there twice, and is one.
    once = 1 if name == "violations" else 2
    assert [row["group_id"] for row in made(found.rows(HISTORY[name]))] == ["g"] * once
    assert [row["group_id"] for row in made(found.groups_begun_again())] == ["begun again"]


def test_states_that_are_staged(tmp_path: Path) -> None:
    """A Connect group has one in each log, and its rows are named once."""
    found = staged(tmp_path, [STATE, {**STATE, **SAME, "log_offset": 8}, MARK, {**MARK, **SAME}])
    states = made(found.states("run 3"))
    assert [(row["log_offset"], row["run_id"], row["version"]) for row in states] == [
        (7, "run 3", STATE_VERSION),
        (8, "run 3", STATE_VERSION),
    ]
    assert made(found.open_violations()) == [{"cluster": "c", "group_id": "g", "is_open": True}]
    assert made(found.groups_begun_again()) == [{"cluster": "c", "group_id": "begun again"}]
    counts = found.counts()
    assert (counts[GROUPS], counts[MARKS]) == (2, 2)


def test_what_is_stored_of_each_cluster(tmp_path: Path) -> None:
    states: list[Row] = [
        {"run_id": run_id, "version": version} for run_id, version in (("1", "3"), ("2", "4"), ("0", "5"))
    ]
    found = _stored_states(tables(tmp_path, {GROUP_STATES: [*states, {"run_id": "7", "version": "9", **OTHER}]}))
    assert found == {
        "c": {"cluster": "c", "run_id": "2", "oldest": "3", "newest": "5"},
        "other": {"cluster": "other", "run_id": "7", "oldest": "9", "newest": "9"},
    }


@pytest.mark.parametrize("number", range(len(FOLDED)))
def test_rows_without_states_are_deleted_where_the_cluster_has_any(tmp_path: Path, number: int) -> None:
    """One table has rows of the cluster, all have rows of another one."""
    names = [*FOLDED.values()]
    rows: dict[Table, list[Row]] = {HISTORY[name]: [{"group_id": "g", **OTHER}] for name in names}
    rows[HISTORY[names[number]]] += [{"group_id": "g"}, {"group_id": "h"}]
    deleted: list[tuple[str, list[str]]] = []
    found = tables(tmp_path, rows)
    found.delete = lambda table, keys: deleted.append((table.name, keys["cluster"].to_pylist()))
    _Run(found, "c", None, Span("", "1", "1", False))._delete_rows_without_states()  # type: ignore[arg-type]
    assert deleted == [(names[number], ["c"])]
