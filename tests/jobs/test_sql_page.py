"""The questions of docs/sql.md give the same rows in Spark, DuckDB and delta-rs; declared joins and times are true."""

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame

from coordinator_audit import CoordinatorAudit, delta_rs_views, duckdb_views
from jobs.cli.options import FAILED_GATE
from jobs.formatting import plain as plain_value
from jobs.tables.catalog import CATALOG, JOINS, Join
from jobs.tables.views import DATAFUSION, SPARK, TIMES, time_name, view_query
from tests.commands import run_command
from tests.jobs.frames import assert_rows, assert_same
from tests.jobs.watch.samples import growing
from tests.shared_data import ROOT

PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^## (.+?)\n.*?```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))


def plain(value: Any) -> Any:
    """A value as all engines have it: their sums differ in type, their timestamps in zone."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    if isinstance(value, date):
        return value.isoformat()
    return round(float(value), 6) if isinstance(value, int | float | Decimal) else value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(plain, row.values())) for row in table.to_pylist()), key=repr)


@pytest.mark.long
def test_each_question_has_the_same_rows_in_three_engines(sample: CoordinatorAudit) -> None:
    made = sample.create_views()
    connection, builder = duckdb.connect(), QueryBuilder()
    assert set(made) == set(duckdb_views(connection, sample.tables.location))
    assert set(made) == set(delta_rs_views(builder, sample.tables.location))
    assert len(QUESTIONS) >= 10
    for question, sql in QUESTIONS.items():
        by_spark = rows_of(sample.tables.spark.sql(sql).toArrow())
        assert by_spark, question
        assert rows_of(connection.sql(sql).to_arrow_table()) == by_spark, f"{question} in DuckDB"
        batches = [pa.record_batch(batch) for batch in builder.execute(sql)]
        assert rows_of(pa.Table.from_batches(batches)) == by_spark, f"{question} in delta-rs"


@pytest.mark.long
def test_the_questions_have_the_same_rows_after_three_nights(tmp_path: Path) -> None:
    """From the second night on most tables are merged, by delta-rs: readers must still compare their texts."""
    lake = tmp_path / "lake"
    for _ in growing(tmp_path / "logs", 3):
        night = run_command("nightly", tmp_path / "logs", "--tables", lake)
        assert night.exit_code in (0, FAILED_GATE), night.stderr
    connection, builder = duckdb.connect(), QueryBuilder()
    assert set(duckdb_views(connection, str(lake))) == set(delta_rs_views(builder, str(lake)))
    for question, sql in QUESTIONS.items():
        by_duckdb = rows_of(connection.sql(sql).to_arrow_table())
        assert by_duckdb, question
        batches = [pa.record_batch(batch) for batch in builder.execute(sql)]
        assert rows_of(pa.Table.from_batches(batches)) == by_duckdb, question
    compared = 0
    for folder in (each for each in lake.iterdir() if (each / "_delta_log").exists()):
        rows = DeltaTable(folder).to_pyarrow_dataset()
        for column in (field.name for field in rows.schema if pa.types.is_string(field.type)):
            rows.to_table(filter=pc.field(column) == "nothing", columns=[column])
            compared += 1
    assert compared > 100


@pytest.mark.long
def test_the_declared_joins_hold(sample: CoordinatorAudit) -> None:
    """At least one row finds its other one, and none finds several where there is one."""
    connection = duckdb.connect()
    duckdb_views(connection, sample.tables.location)
    filled = {name for (name,) in connection.execute("SELECT view_name FROM duckdb_views()").fetchall()}
    checked = 0
    for join in JOINS:
        if not {join.table, join.other} <= filled or not connection.execute(f"FROM {join.table} LIMIT 1").fetchall():
            continue  # the samples break no rule, and there is no snapshot of their cluster
        on = " AND ".join(f'a."{one}" = b."{other}"' for one, other in join.columns)
        counts = connection.execute(
            f"SELECT count(*) AS n FROM (SELECT row_number() OVER () AS nr, * FROM {join.table}) a "
            f"JOIN {join.other} b ON {on} GROUP BY nr"
        ).fetchall()
        assert counts, join
        assert not join.to_one or max(count for (count,) in counts) == 1, join
        checked += 1
    assert checked >= len(JOINS) - 2


@pytest.mark.parametrize("join", JOINS, ids=lambda join: f"{join.table}-{join.other}")
def test_a_join_names_columns_of_both_tables(join: Join) -> None:
    for one, other in join.columns:
        assert one in CATALOG[join.table].schema.names
        assert other in CATALOG[join.other].schema.names


DURATIONS = frozenset(
    {
        "time_to_target_ms",
        "time_to_converge_ms",
        "duration_min_ms",
        "duration_max_ms",
        "duration_ms",
        "idle_ms",
        "idle_max_ms",
        "delay_ms",
        "resolution_ms",
        "rebalance_timeout_ms",
    }
)
"""Columns with a length of time in milliseconds. The others that end so have a time."""


def test_each_column_of_milliseconds_is_a_time_or_a_duration() -> None:
    columns = {name for table in CATALOG.values() for name in table.schema.names}
    named = {name for name in columns if name.endswith("_ms")}
    assert named <= TIMES | DURATIONS
    assert columns >= TIMES | DURATIONS
    assert not TIMES & DURATIONS


@pytest.mark.parametrize("table", CATALOG.values(), ids=lambda table: table.name)
def test_a_view_adds_columns_of_new_names(table: Any) -> None:
    fields = {
        field.name: [each.name for each in field.type] if pa.types.is_struct(field.type) else []
        for field in table.schema
    }
    for dialect in (SPARK, DATAFUSION):
        added = re.findall(r" AS (\w+)(?=,| FROM)", view_query("t", fields, dialect))
        assert len(added) == len(set(added))
        assert not set(added) & set(fields)


def test_the_names_of_times() -> None:
    names = {name: time_name(name) for name in ("timestamp_ms", "since_ms", "commit_timestamp", "began_after_ms")}
    assert list(names.values()) == ["time", "since_time", "commit_time", "began_after_time"]


API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", API, re.DOTALL)


def test_the_examples_without_spark_run() -> None:
    blocks = [block for block in EXAMPLES if "spark" not in block and "audit." not in block]
    assert blocks
    for block in blocks:
        exec(compile(block, block[:60], "exec"), {})


@pytest.mark.long
def test_the_examples_with_spark_run(sample: CoordinatorAudit, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"audit": sample, "spark": sample.tables.spark}
    blocks = [block for block in EXAMPLES if "CoordinatorAudit(" not in block]
    for block in blocks:
        exec(compile(block, block[:60], "exec"), names)
    printed = capsys.readouterr().out
    assert "rebalances " in printed
    assert "B-range-5175" in printed


@pytest.mark.long
def test_frames_have_what_the_commands_print(sample: CoordinatorAudit) -> None:
    """Of one group: all its rows; owners now; sentences with their records."""
    group = "B-range-5175"
    history = sample.history(group)
    assert {"group_epochs", "rebalances", "memberships", "assignments", "target_audits", "findings"} <= set(history)
    assert history["rebalances"].count() > 0
    now = sample.owners()
    assert now.count() > 0
    assert now.where("until IS NOT NULL").count() == 0
    (newest,) = sample.assignments.selectExpr("max(since.timestamp_ms)").collect()
    at_the_end = sample.owners_at(newest[0])
    assert_same(now, at_the_end.where("until IS NULL"))
    told = sample.explain(group)
    rows = sample.explanation(group).orderBy("number").select("text", "evidence")
    expected = [(each.text, [f"{at.partition}:{at.offset}" for at in each.evidence]) for each in told]
    assert_rows(rows, expected, in_order=True)


def printed(sample: CoordinatorAudit, *command: str) -> list[dict[str, Any]]:
    """What a command prints about the tables."""
    stored = ("--tables", sample.tables.location, "--cluster", sample.cluster, "--json")
    done = run_command(*command, *stored)
    assert done.exit_code in (0, 3), done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_printed(frame: DataFrame) -> list[str]:
    """The rows of a frame as a command prints them with ``--json``, in an order."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(json.dumps({name: plain_value(value) for name, value in row.items()}, sort_keys=True) for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("group", ["B-range-5175", "A-coop-a2d7"])
def test_frames_of_a_group_have_the_rows_of_its_commands(sample: CoordinatorAudit, group: str) -> None:
    expected: dict[str, list[str]] = {}
    for line in printed(sample, "history", group):
        expected.setdefault(line.pop("table"), []).append(json.dumps(line, sort_keys=True))
    for line in printed(sample, "audit", "--group", group):
        if line.pop("table") == "target_audits":
            expected.setdefault("target_audits", []).append(json.dumps(line, sort_keys=True))
    findings = [line for line in printed(sample, "findings") if line["group_id"] == group]
    expected["findings"] = [json.dumps(line, sort_keys=True) for line in findings]
    frames = sample.history(group)
    assert {"commit_steps", "offset_resets", "broker_events"} <= set(frames)
    found = {name: as_printed(frame.drop("cluster")) for name, frame in frames.items()}
    assert {name: rows for name, rows in found.items() if rows} == {
        name: sorted(rows) for name, rows in expected.items() if rows
    }
    assert found["commit_steps"]


def owned_then(lines: list[dict[str, Any]]) -> set[tuple[str, int | None, str]]:
    return {(line["group_id"], line["partition"], line["member_id"]) for line in lines}


@pytest.mark.long
def test_owners_of_a_topic_are_those_of_the_command(sample: CoordinatorAudit) -> None:
    """Of every topic and connector that has an owner, at the end and at a moment; tasks of streams groups, too."""
    engine = sample.tables.engine()
    names = {row["topic"] for row in engine.rows("SELECT DISTINCT topic FROM $topic_history")}
    names |= {row["connector"] for row in engine.rows("SELECT DISTINCT connector FROM $assignments")} - {None}
    (middle,) = (
        row["at_ms"]
        for row in engine.rows("SELECT CAST(avg(a.since.timestamp_ms) AS BIGINT) AS at_ms FROM $assignments AS a")
    )
    tasks = compared = 0
    for name in sorted(names):
        for moment in (None, middle):
            at = () if moment is None else ("--at", datetime.fromtimestamp(moment / 1000, UTC).isoformat())
            try:
                expected = owned_then(printed(sample, "owners", name, *at))
            except AssertionError:
                continue  # no such topic then
            rows = (sample.owners(name) if moment is None else sample.owners_at(moment, name)).collect()
            found = {(row.group_id, None if row.partition < 0 else row.partition, row.member_id) for row in rows}
            assert found == expected, (name, moment)
            tasks += sum(row.subtopology is not None for row in rows)
            compared += bool(found)
    assert tasks > 0
    assert compared > 5


@pytest.mark.long
def test_frames_have_the_rows_of_the_commands(sample: CoordinatorAudit) -> None:
    found = printed(sample, "findings")
    names = list(found[0])
    assert {"score", "kind", "group_id", "subject", "detail", "evidence", "history_complete"} <= set(names)
    frame = sample.findings.select(*names)
    assert sorted(map(json.dumps, found)) == sorted(
        json.dumps({name: plain_value(value) for name, value in row.asDict(recursive=True).items()})
        for row in frame.collect()
    )
    group = "B-range-5175"
    told = [line["text"] for line in printed(sample, "explain", group)]
    assert_rows(sample.explanation(group).orderBy("number").select("text"), [(text,) for text in told], in_order=True)
    topic = "a-coop-x8"
    owned = {(line["group_id"], line["partition"], line["member_id"]) for line in printed(sample, "owners", topic)}
    rows = sample.owners(topic).collect()
    assert {(row.group_id, row.partition, row.member_id) for row in rows} == owned
    assert owned
    assert all(isinstance(row.history_complete, bool) for row in rows)
