"""The form of a dump raises no alarm, and what it says nothing of is told."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_core.records import GROUP_LOG
from tests.commands import rows_of_command, run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.sources.input_shapes import Fields, rows_in


def dumped(place: Path, made: Callable[[Fields], Fields] = dict) -> Path:
    """The samples as a consumer dumps them, as JSON lines."""
    with place.open("w") as file:
        for segment in sorted(SAMPLE_LOGS.glob(f"{GROUP_LOG}-*/*.log")):
            number = int(segment.parent.name.rpartition("-")[2])
            for row in rows_in(segment):
                if hasattr(row, "key") and not row.batch.is_control:
                    fields = {name: getattr(row, name) for name in ("offset", "timestamp", "key", "value")}
                    line = made(fields | {"topic": GROUP_LOG, "partition": number})
                    file.write(json.dumps(line, default=lambda part: b64encode(part).decode()) + "\n")
    return place


@pytest.mark.parametrize("time", ["in seconds", "rounded", "0", "-1"])
def test_times_that_are_coarse_or_absent_raise_no_alarm(tmp_path: Path, time: str) -> None:
    def changed(fields: Fields) -> Fields:
        seconds = fields["timestamp"] // 1000
        return fields | {"timestamp": {"in seconds": seconds, "rounded": seconds * 1000, "0": 0, "-1": -1}[time]}

    found = rows_of_command("findings", "--log", dumped(tmp_path / "dump.jsonl", changed), "--json")
    assert found
    assert [row for row in found if row["level"] == "alarm"] == []
    told = run_command("findings", "--log", tmp_path / "dump.jsonl").stderr
    assert ("have no times" in told) is (time in ("0", "-1"))
