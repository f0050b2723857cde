"""What commands say of the recorded share groups, straight from its logs."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rows_of_command, run_command, text_of_command
from tests.core.groups.share_delivery import RECORDING, known_lines
from tests.matrix.answers import questions
from tests.matrix.sources import Files, StoredTables, ThisProcess

LOGS = RECORDING / "logs"


def printed(*command: str, logs: Path = LOGS) -> list[dict[str, Any]]:
    return rows_of_command(*command, "--log", logs)


def findings(logs: Path = LOGS) -> set[tuple[str | None, str, str, int]]:
    return {(row["group_id"], row["kind"], row["subject"], row["value"]) for row in printed("findings", logs=logs)}


def test_findings_of_the_recording() -> None:
    """The rest of what was rejected was so at its first delivery, and looks like the two transaction markers."""
    assert findings() == {
        ("warehouse", "share_archived", "orders", 12),
        ("warehouse", "share_redelivered", "orders", 63),
        ("mailer", "share_archived", "orders", 1),
        ("mailer", "share_redelivered", "orders", 31),
        (None, "coordinator_away", "broker 1", 15_694),
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


def test_a_consumer_that_holds_records_and_does_nothing_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """s1 of group slow took 8 records of mail-0 and never polled again. The recording lasts for 234 s; 46 s before its
    end the broker was back that had been killed, and led mail-0 again.
    """
    monkeypatch.setenv("COORDINATOR_AUDIT_FINDINGS__SHARE_STALLED_MS", "40000")
    (row,) = [row for row in printed("findings") if (row["kind"], row["group_id"]) == ("share_stalled", "slow")]
    assert (row["subject"], row["value"] // 1000) == ("mail-0", 46)
    assert "offset 0 blocks it, 8 records wait for the next delivery" in row["detail"]


def test_offsets_are_those_that_admin_said_at_the_end() -> None:
    *_, last = (line for line in known_lines("truth") if line["row"] == "admin")
    compared = 0
    for group, told in last["groups"].items():
        found = {f"{row['topic']}-{row['partition']}": row for row in printed("offsets", group)}
        assert found.keys() == told["offsets"].keys()
        for name, said in told["offsets"].items():
            row = found[name]
            if said is None:
                assert (row["status"], row["startOffset"]) == ("not set", None)
                continue
            lag = last["data"][name]["end_offset"] - row["startOffset"] - row["deliveryCompleteCount"]
            assert (row["startOffset"], row["leaderEpoch"], lag) == (
                said["start_offset"],
                said["leader_epoch"],
                said["lag"],
            )
            compared += 1
    assert compared > 10


def test_offsets_with_end_offsets_have_the_lag_of_admin(tmp_path: Path) -> None:
    *_, last = (line for line in known_lines("truth") if line["row"] == "admin")
    ends = tmp_path / "ends.jsonl"
    lines = []
    for name, data in last["data"].items():
        topic, _, number = name.rpartition("-")
        line = {"topic": topic, "partition": int(number), "end_offset": data["end_offset"]}
        lines.append(json.dumps(line | {"timestamp_ms": last["ended_ms"]}))
    ends.write_text("\n".join(lines))
    rows = printed("offsets", "warehouse", "--end-offsets", str(ends))
    said = last["groups"]["warehouse"]["offsets"]
    assert {f"{row['topic']}-{row['partition']}": row["lag"] for row in rows} == {
        name: each["lag"] for name, each in said.items()
    }


def test_a_share_group_without_the_log_of_its_offsets_is_an_error_and_not_nothing() -> None:
    result = run_command("offsets", "warehouse", "--log", LOGS / "__consumer_offsets-1", "--json")
    assert result.exit_code != 0
    assert "__share_group_state" in result.output


def test_describe_counts_records_by_state_and_delivery_count() -> None:
    (described,) = printed("describe", "warehouse")
    (orders, *_) = described["share_partitions"]
    assert (orders["topic"], orders["partition"], orders["available"], orders["archived"]) == ("orders", 0, 2, 2)
    assert sum(each["records"] for each in orders["counts"]) == orders["endOffset"] - orders["startOffset"]


def test_history_tells_of_both_logs() -> None:
    result = text_of_command("history", "replay", "--log", LOGS)
    for text in (
        "share state initializing",
        "share: start offset altered",
        "share: archived",
        "share: leader changed",
        "share: state deleted",
        "__share_group_state 0:",
    ):
        assert text in result


def test_another_delivery_limit() -> None:
    """By the account of the clients, 24 records of warehouse were delivered three times: their limit is 3."""
    thrice = {
        (line["topic"], line["partition"], line["offset"])
        for line in known_lines("truth")
        if line["row"] == "delivery" and line["group"] == "warehouse" and line["delivery_count"] == 3
    }
    actual, lower = printed("whatif", "warehouse", "--delivery-limit", "2")
    assert (actual["given_up"], lower["given_up"], lower["accepted"]) == (12, len(thrice), len(thrice) - 12)
    actual, same = printed("whatif", "warehouse", "--delivery-limit", "3")
    assert {**actual, "history": None} == {**same, "history": None}
    result = run_command("whatif", "warehouse", "--delivery-limit", "1", "--log", LOGS)
    assert result.exit_code == 2


OUTAGE = """
lasts: 12m
cluster: {partitions: 1, share_partitions: 1, outages: [{at: 4m, broker: 2, lasts: 1h}]}
topics: {orders: {partitions: 3, rate: 5}}
groups:
  shares: {type: share, topics: [orders], members: 2, commits: {every: 2s}, delivery: {releases: 0.3}}
"""


def test_a_share_partition_that_its_broker_took_away_does_not_stall(tmp_path: Path) -> None:
    """Broker 2 alone has orders-0. Without the metadata log nothing tells so, which the finding says."""
    scenario, logs = tmp_path / "outage.yaml", tmp_path / "logs"
    scenario.write_text(OUTAGE)
    assert run_command("simulate", scenario, "--seed", "3", "--out", logs).exit_code == 0
    question = questions(["shares"], "shares", [])["findings"]
    tables = StoredTables(ThisProcess(), tmp_path / "tables", [[logs]])
    of_files, of_tables = Files([logs]).ask(question), tables.ask(question)
    assert of_tables.rows == of_files.rows
    assert {row["kind"] for row in of_files.rows} == {"share_archived", "share_redelivered"}
    shutil.rmtree(logs / "__cluster_metadata-0")
    (row,) = (row for row in printed("findings", logs=logs) if row["kind"] == "share_stalled")
    assert "nothing was written for 8 min" in row["detail"]
    assert "or it has no leader" in row["detail"]
