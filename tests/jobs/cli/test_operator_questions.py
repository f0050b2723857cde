"""The questions of an operator with an incident: question, command, and the answer on a real log."""

import json
import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.results import NIGHTS
from tests.commands import rows_of_command, run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.other_removals import next_night, tomorrow
from tests.matrix.removals import cut, without_partition, without_segment
from tests.matrix.sources import CLUSTER, StoredTables, ThisProcess

REWOUND_MS = 1795257022767
"""When partition 0 of c-in went back."""


def answer(*arguments):
    return rows_of_command(*arguments, "--log", SAMPLE_LOGS)


def test_did_somebody_rewind_offsets():
    """An administrator set partition 1 back, and deleted its offset: the group had no members."""
    found = [row for row in answer("commits", "A-admin-879") if row["kind"] not in ("first", "forward", "unmoved")]
    assert [
        (row["topic"], row["partition"], row["kind"], row["offset_before"], row["offset_after"]) for row in found
    ] == [("a-simple", 1, "reset", 1, 0), ("a-simple", 1, "removed", 0, None)]
    reset, removed = found
    assert reset["cause"] == "administrator or consumer outside the group"
    assert (reset["since"]["partition"], reset["since"]["offset"]) == (0, 47)
    assert removed["cause"] == "offsets deleted"


def test_did_a_member_rewind_offsets():
    """A member went back; why is not in the log, and the answer says what decides it."""
    (row,) = [row for row in answer("commits", "G-rdkafka-consumer") if row["kind"] == "rewound"]
    assert (row["offset_before"], row["offset_after"], row["client_id"]) == (9, 3, "rk-1")
    assert row["cause"] == "unknown"
    assert "log file of the consumer" in row["missing"]


def test_why_did_lag_jump(tmp_path):
    """Nothing was written in between: the committed offset went back, and the steps say when and under whom."""
    ends = tmp_path / "ends.jsonl"
    times = [REWOUND_MS - 1, REWOUND_MS + 500]
    rows = [{"topic": "c-in", "partition": 0, "timestamp_ms": time_ms, "end_offset": 142} for time_ms in times]
    ends.write_text("\n".join(map(json.dumps, rows)))
    before, jump = answer("offsets", "C-classic", "--lag-history", "--end-offsets", str(ends))
    assert (before["lag"], jump["lag"], jump["produced"], jump["consumed"]) == (2, 128, 0, -126)
    window = ("--since", str(times[0]), "--until", str(times[1]))
    (step,) = answer("commits", "C-classic", "--topic", "c-in", "--partition", "0", *window)
    assert (step["kind"], step["offset_before"], step["offset_after"]) == ("rewound", 140, 14)
    assert (step["client_id"], step["since"]) == ("C-classic-m0", jump["committed"])


@pytest.mark.parametrize("absent", [0, 1])
def test_what_is_the_trend(tmp_path, absent):
    """Two nights that counted, and one from before the table: what that one found is unknown, and not 0. Where a
    partition was not given, no night has counted what is in it.
    """
    place, logs = tmp_path / "tables", tmp_path / "logs"
    for number in range(4 - absent):
        name = f"__consumer_offsets-{number}"
        shutil.copytree(SAMPLE_LOGS / name, logs / name)
    shutil.copytree(SAMPLE_LOGS / "__cluster_metadata-0", logs / "__cluster_metadata-0")
    StoredTables(ThisProcess(), place, [[logs]])
    counted = {"cluster": CLUSTER, "groups": 3, "violations": 0, "wrong_targets": 0}
    nights = [
        {**counted, "night": "20261120T023000.000000Z", "ended_ms": 1, "rebalances": 10, "findings": 1, "unstable": 0},
        {**counted, "night": "20261121T023000.000000Z", "ended_ms": 2, "rebalances": 310, "findings": 4, "unstable": 1},
    ]
    write(place, NIGHTS, nights)
    write(place, NIGHTLY_STEPS, [{"night": each} for each in ("20261119T023000.000000Z", nights[0]["night"])])
    result = run_command("trend", "--tables", place, "--json")
    assert result.exit_code == 0, result.stderr
    earlier, first, second = map(json.loads, result.stdout.splitlines())
    assert {earlier[name] for name in ("groups", "rebalances", "findings", "unstable", "total_lag")} == {None}
    assert (first["new_rebalances"], second["new_rebalances"]) == (None, 300)
    assert (second["findings"], second["unstable"], second["total_lag"]) == (4, 1, None)
    assert "1 nights are from before the table" in result.stderr
    assert ("1 of 4 partitions of __consumer_offsets were not given (3)" in result.stderr) is bool(absent)
    assert "(__share_group_state) was not given" in result.stderr


@pytest.mark.parametrize("comes", ["partition 1", pytest.param("last segment of 1", marks=pytest.mark.long)])
def test_a_trend_says_what_an_earlier_night_lacked(tmp_path, comes):
    """What was appended since is not missing; a partition that comes a night later is."""
    place, logs = tmp_path / "tables", tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    cut(logs)
    change = without_partition(1) if comes == "partition 1" else without_segment(-1, 1)
    next_night(change)(logs)
    StoredTables(ThisProcess(), place, [[logs], [tomorrow(logs)]])
    runs = sorted(set(DeltaTable(str(place / "log_ranges")).to_pyarrow_table(columns=["run_id"])["run_id"].to_pylist()))
    counts = {"cluster": CLUSTER, "groups": 3, "rebalances": 1, "ended_ms": 1}
    write(place, NIGHTS, [{**counts, "night": run} for run in runs])
    result = run_command("trend", "--tables", place, "--json")
    said = f"night {runs[0]} lacked records that a later one has, of __consumer_offsets-1: it counted less"
    assert (said in result.stderr) == (comes != "last segment of 1")


def write(folder, table, rows):
    content = pa.Table.from_pylist(rows, table.schema)
    write_deltalake(str(folder / table.name), content)


def test_who_owned_a_partition_at_a_time():
    (owner,) = answer("owners", "b-range-x1", "0", "--at", "2026-11-21T10:29:17Z")
    assert {name: owner[name] for name in ("group_id", "member_id", "epoch", "since", "until", "log")} == {
        "group_id": "B-range-5175",
        "member_id": "koilbNHcSWy_NPcjAFkhig",
        "epoch": 6,
        "since": "2026-11-21T10:29:16.038+00:00",
        "until": "2026-11-21T10:29:22.926+00:00",
        "log": "3:101",
    }
