"""A night fails for what is new in it, and not for what an earlier night has told."""

from pathlib import Path

import pytest

from jobs.cli.options import FAILED_GATE
from tests.commands import run_command
from tests.core.real_logs import wild
from tests.jobs.logs import batches

NIGHTS = [1_795_309_650_000, 1_795_309_696_000, 1 << 60]
"""Until when the three nights go, ms: partitions got a second owner in the second one, at 01:08:13."""


def cut(segment: bytes, since_ms: int, until_ms: int) -> list[bytes]:
    """The batches of a segment that were written after a time, up to another one."""
    return [batch for _, batch in batches(segment) if since_ms < int.from_bytes(batch[35:43], signed=True) <= until_ms]


@pytest.mark.long
@pytest.mark.parametrize("grows", [True, False])
def test_the_night_that_has_the_violation_is_the_only_one_that_fails(grows: bool, tmp_path: Path) -> None:
    """The files grow from night to night, or each night gets only segments that are new."""
    logs, lake, codes, since_ms = tmp_path / "logs", tmp_path / "lake", [], -1
    for night, until_ms in enumerate(NIGHTS):
        home = logs if grows else tmp_path / f"logs{night}"
        for segment in sorted(wild().glob("__*/*.log")):
            if kept := cut(segment.read_bytes(), -1 if grows else since_ms, until_ms):
                (home / segment.parent.name).mkdir(parents=True, exist_ok=True)
                first = int.from_bytes(kept[0][:8])
                (home / segment.parent.name / f"{first:020}.log").write_bytes(b"".join(kept))
        result = run_command("nightly", home, "--tables", lake)
        codes.append(result.exit_code)
        assert result.exit_code in (0, FAILED_GATE), result.stderr
        told = "violations failed in cluster default: 5 rules broken in W-cls-1 (assigned_to_two)" in result.stderr
        assert told == (result.exit_code == FAILED_GATE), result.stderr
        since_ms = until_ms
    assert codes == [0, FAILED_GATE, 0]
    new = run_command("findings", "--tables", lake, "--new", "--json")
    assert "two_owners" not in new.stdout
    assert "two_owners" in run_command("findings", "--tables", lake, "--json").stdout
