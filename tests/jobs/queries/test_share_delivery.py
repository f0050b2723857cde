"""What commands say of the recorded share groups, straight from its logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from jobs.cli.app import app
from tests.core.groups.share_delivery import RECORDING, known_lines

LOGS = RECORDING / "logs"


def printed(*command: str, logs: Path = LOGS) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, [*command, "--log", str(logs), "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def findings(logs: Path = LOGS) -> set[tuple[str, str, str, int]]:
    return {(row["group_id"], row["kind"], row["subject"], row["number"]) for row in printed("findings", logs=logs)}


def test_findings_of_the_recording() -> None:
    """The rest of what was rejected was so at its first delivery, and looks like the two transaction markers."""
    assert findings() == {
        ("warehouse", "share_archived", "orders", 12),
        ("warehouse", "share_redelivered", "orders", 63),
        ("mailer", "share_archived", "orders", 1),
        ("mailer", "share_redelivered", "orders", 31),
        ("mailer", "rebalance_storm", "m1 at 127.0.0.1", 21),
    }


def test_the_records_given_up_are_those_that_consumers_gave_up() -> None:
    """By the account of the clients: deliveries after the first that were rejected, or the last of three.

    An accept of the last delivery that comes after its lock ended is answered with ok, and changes nothing.
    """
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in known_lines("truth"):
        if line["row"] == "delivery" and line["topic"] == "orders":
            last[line["group"], line["partition"], line["offset"]] = line
    given_up = Counter(group for (group, *_), line in last.items() if _is_given_up(line))
    found = {group: number for group, kind, _, number in findings() if kind == "share_archived"}
    assert found == given_up == {"warehouse": 12, "mailer": 1}


def _is_given_up(line: dict[str, Any]) -> bool:
    in_time = [
        each["type"]
        for each in line["acknowledgements"]
        if each["result"] == "ok" and each["sent_ms"] - line["received_ms"] < line["lock_ms"]
    ]
    if line["delivery_count"] > 1 and "reject" in in_time:
        return True
    return line["group"] == "warehouse" and line["delivery_count"] == 3 and "accept" not in in_time


def test_an_initialization_that_never_ends() -> None:
    (row,) = printed("findings", logs=RECORDING / "never_initialized" / "logs")
    assert (row["kind"], row["group_id"], row["subject"]) == ("share_initializing", "stuck", "orders")
    assert "was asked for 7 times" in row["detail"]
    lines = printed("history", "stuck", logs=RECORDING / "never_initialized" / "logs")
    (first, *_) = share = [line for line in lines if line["table"] == "share_initializations"]
    assert [(line["partition"], line["phase"], line["asked"]) for line in share] == _phases((0, 1))
    assert first["until"] is None


def _phases(partitions: Sequence[int]) -> list[tuple[int, str, int]]:
    return [(partition, "initializing", 7) for partition in partitions]


def test_history_tells_of_both_logs() -> None:
    result = CliRunner().invoke(app, ["history", "replay", "--log", str(LOGS)])
    assert result.exit_code == 0, result.output
    for text in (
        "share state initializing",
        "share: start offset altered",
        "share: archived",
        "share: leader changed",
        "share: state deleted",
        "__share_group_state-0:",
    ):
        assert text in result.stdout
