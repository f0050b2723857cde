"""Records of 3.7's early access of KIP-848 in several log partitions: said once for all of them."""

from pathlib import Path

import pytest

from coordinator_core.records import GROUP_LOG, RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key
from tests.commands import run_command
from tests.jobs.logs import write_segment

TARGET = bytes.fromhex("0000000100000100")
"""What Kafka 3.7.2 wrote for a member's target."""


@pytest.mark.parametrize("command", ["report", "groups"])
def test_early_access_is_said_once(tmp_path: Path, command: str) -> None:
    for partition in range(3):
        key = encode_key(
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, {"groupId": f"g{partition}", "memberId": "m"}
        )
        folder = tmp_path / "logs" / f"{GROUP_LOG}-{partition}"
        write_segment(folder, [encode_batch([NewRecord(0, 1_000, key, TARGET)])])
    words = [command, "--log", str(tmp_path / "logs")]
    words += ["--out", str(tmp_path / "report.html")] if command == "report" else []
    result = run_command(*words)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("3.7's early access") == 1
