"""The questions of an operator with an incident: question, command, and the answer on a real log."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from jobs.cli.app import app
from tests.jobs.conftest import SAMPLE_LOGS


def answer(*arguments):
    result = CliRunner().invoke(app, [*arguments, "--log", str(SAMPLE_LOGS), "--json"])
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_did_somebody_rewind_offsets():
    """An administrator set partition 1 back, and deleted its offset: the group had no members."""
    found = [row for row in answer("commits", "A-admin-879") if row["kind"] not in ("first", "forward", "unmoved")]
    assert [
        (row["topic"], row["partition"], row["kind"], row["offset_before"], row["offset_after"]) for row in found
    ] == [
        ("a-simple", 1, "reset", 1, 0),
        ("a-simple", 1, "removed", 0, None),
    ]
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
