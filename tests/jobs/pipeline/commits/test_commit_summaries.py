"""Summaries of commits and ranges of the log, from run to run: the same as from all runs at once."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline import commit_summaries, log_ranges, offsets
from jobs.settings import EngineLimits
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import GROUP_OFFSETS
from jobs.tables.snapshots import END_OFFSETS
from jobs.tables.table import few

CLUSTER, LOG_TOPIC = "c", "__consumer_offsets"
RUN_IDS = ("run 1", "run 2", "run 3")
OF_COMMITS = ("group_id", "topic", "partition")

Row = dict[str, Any]


def log_of(rng: random.Random, partition: int, *, transactions: bool = True) -> list[tuple[str, Row]]:
    """The rows of a log partition: the table of each, and its columns."""
    often = (8, 3, 2, 1, 1) if transactions else (8, 0, 0, 1, 1)
    rows: list[tuple[str, Row]] = []
    open_commits: list[Row] = []
    offset = 0
    for _ in range(120):
        offset += rng.choice((1, 1, 1, 2))
        place = {"log_partition": partition, "log_offset": offset, "timestamp_ms": 3_500_000 + offset * 2_000}
        row = {"cluster": CLUSTER, "log_topic": LOG_TOPIC, "kind": "record", "leader_epoch": offset // 70, **place}
        commit: Row = {"group_id": f"group-{partition}-{rng.randrange(2)}", "topic": "orders", "is_tombstone": False}
        commit |= {"partition": rng.randrange(2), "committed_offset": rng.randrange(30), "record_type": 1}
        what = rng.choices(("commit", "in transaction", "marker", "tombstone", "record"), often)[0]
        if what == "marker":
            row |= {"kind": "control", "control_type": "COMMIT", "producer_id": 7, "is_transactional": True}
            for each in open_commits:
                each["ended_at"] = offset
            open_commits = []
        elif what == "record":
            rows.append((GROUP_RECORDS.name, row | {"group_id": commit["group_id"], "record_type": 2}))
        else:
            row |= commit
            row |= {"producer_id": 7, "is_transactional": True} if what == "in transaction" else {"producer_id": -1}
            row |= {"is_tombstone": True, "committed_offset": None} if what == "tombstone" else {}
            rows.append((OFFSET_COMMITS.name, row))
            open_commits += [row] if what == "in transaction" else []
        rows.append((LOG_RECORDS.name, row))
    return rows


def put(tables: Tables, run: int, rows: list[tuple[str, Row]], runs: dict[int, int]) -> None:
    """Put the rows of a run into the tables; ``runs`` has the run of each row. Then decoding has run."""
    seen = {row["log_offset"]: row for _, row in rows if runs[id(row)] <= run}
    for table in (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS):
        tables.create(table)
        found = []
        for name, row in rows:
            if name != table.name or runs[id(row)] > run:
                continue
            said = dict(row)
            if row.get("producer_id") == 7 and row["kind"] == "record":
                ended = [r for r in range(runs[id(row)], run + 1) if _ended(rows, row, runs, r)]
                said["outcome"] = "committed" if ended else "open"
                if ended and ended[0] > runs[id(row)]:
                    said["revised_by"] = RUN_IDS[ended[0]]
            said["run_id"] = RUN_IDS[runs[id(row)]]
            found.append({column: said.get(column) for column in table.schema.names})
        tables.replace(table, few(table, found))
    ledger(tables, run, len(seen))


def ledger(tables: Tables, run: int, records: int) -> None:
    tables.create(RUNS)
    row = {"cluster": CLUSTER, "run_id": RUN_IDS[run], "job": "decode", "records": records}
    tables.append(RUNS, few(RUNS, [row]), RUN_IDS[run])


def _ended(rows: list[tuple[str, Row]], commit: Row, runs: dict[int, int], run: int) -> bool:
    place = (commit["log_partition"], commit.get("ended_at"))
    return any(
        (row["log_partition"], row["log_offset"]) == place and runs[id(row)] <= run
        for name, row in rows
        if name == LOG_RECORDS.name
    )


def summaries(tables: Tables) -> list[str]:
    """All commits of each group and partition, and the sums of each hour, as text."""
    engine, of_the_run = tables.engine(), ("run_id", "log_end", "hour_ms")
    columns = ", ".join(name for name in COMMIT_SUMMARIES.schema.names if name not in of_the_run)
    found = [
        json.dumps({name: value for name, value in row.items() if value is not None}, separators=(",", ":"))
        for row in engine.rows(f"SELECT {columns} FROM $commit_summaries WHERE hour_ms IS NULL")
    ]
    key = ", ".join(("log_partition", *OF_COMMITS, "hour_ms"))
    sums = ("commits", "written", "tombstones", "rewind_count", "removal_count")
    summed = engine.tuples(
        f"SELECT {key}, {', '.join(f'sum({name})' for name in sums)} FROM $commit_summaries "
        f"WHERE hour_ms IS NOT NULL GROUP BY {key}"
    )
    return sorted(found) + sorted(map(str, summed))


def ranges(tables: Tables) -> list[tuple[Any, ...]]:
    """The ranges, without the runs that added them."""
    found: list[dict[str, Any]] = []
    rows = FolderReader(tables.location).rows("SELECT * FROM $log_ranges ORDER BY log_partition, first_offset")
    for row in map(dict, rows):
        last = found[-1] if found else {}
        if (last.get("log_partition"), last.get("last_offset", -2) + 1) != (row["log_partition"], row["first_offset"]):
            found.append(row)
            continue
        last |= {"last_offset": row["last_offset"], "records": last["records"] + row["records"]}
        last |= {"last_ms": max(last["last_ms"], row["last_ms"]), "has_start": last["has_start"] or row["has_start"]}
    return [tuple(value for name, value in row.items() if name != "run_id") for row in found]


def found_offsets(tables: Tables) -> list[tuple[Any, ...]]:
    """The committed offsets, with the lag to end offsets of some partitions."""
    tables.create(END_OFFSETS)
    ends = [{"timestamp_ms": time_ms, "end_offset": 10 + time_ms} for time_ms in (3, 5, 4)]
    named = [{"cluster": CLUSTER, "run_id": RUN_IDS[0], "topic": "orders", "partition": 1, **end} for end in ends]
    tables.append(END_OFFSETS, few(END_OFFSETS, named), "ends")
    tables.create(GROUP_OFFSETS)
    offsets.run(tables)
    names = [name for name in GROUP_OFFSETS.schema.names if name not in ("run_id", "lag", "status")]
    rows = tables.engine().rows("SELECT * FROM $group_offsets")
    return sorted((tuple(row[name] for name in ("status", *names, "lag")) for row in rows), key=repr)


@pytest.mark.parametrize("case", ["in order", pytest.param("late", marks=pytest.mark.long), "in this process"])
def test_runs_give_what_one_run_gives(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Of several runs this process makes the sums; of one Spark, and this process where there are no transactions."""
    rng = random.Random(5)
    has_transactions = case != "in this process"
    rows = [row for partition in range(3) for row in log_of(rng, partition, transactions=has_transactions)]
    runs = {id(row): min(row["log_offset"] // 60, 2) for _, row in rows}
    if case == "late":
        # The middle of one log partition comes last. The other two are whole.
        runs = {id(row): {1: 2, 2: 1}.get(runs[id(row)], 0) if row["log_partition"] == 1 else 0 for _, row in rows}
    elif case == "in this process":
        # The last log partition has nothing new after the first run, one group of the second has nothing in the last.
        runs = {id(row): 0 if row["log_partition"] == 2 else runs[id(row)] for _, row in rows}
        rows = [row for row in rows if runs[id(row[1])] < 2 or row[1].get("group_id") != "group-1-0"]
    nightly, whole = Tables(spark, str(tmp_path / "nightly")), Tables(spark, str(tmp_path / "whole"))
    made_here = []
    here = commit_summaries.summarized_here
    monkeypatch.setattr(commit_summaries, "summarized_here", lambda *of: made_here.append(of) or here(*of))
    for run in range(3):
        put(nightly, run, rows, runs)
        log_ranges.update(nightly)
        commit_summaries.update(nightly)
    assert len(made_here) == 3
    if has_transactions:  # Spark is asked the harder question
        whole.limits = EngineLimits(rows=-1)
    put(whole, 2, rows, runs)
    ledger(whole, 0, 1)
    ledger(whole, 1, 1)
    log_ranges.update(whole)
    commit_summaries.update(whole)
    assert summaries(nightly) == summaries(whole)
    assert ranges(nightly) == ranges(whole)
    assert any('"rewinds":[{' in row for row in summaries(whole))
    assert any('"pending":[{' in row for row in summaries(whole)) == has_transactions
    assert found_offsets(nightly) == (found := found_offsets(whole))
    assert {row[0] for row in found} == {"committed", "pending"} if has_transactions else {"committed"}
    assert {row[-1] for row in found} > {None, 0}
    if case == "in this process":
        by_run = "SELECT DISTINCT run_id FROM $commit_summaries WHERE hour_ms IS NULL"
        assert {run_id for (run_id,) in nightly.engine().tuples(by_run)} == set(RUN_IDS)
