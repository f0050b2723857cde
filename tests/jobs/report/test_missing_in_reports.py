"""A report from tables says what the logs lack, as one from log files does."""

import json
import shutil
from pathlib import Path

from tests.commands import run_command
from tests.jobs.conftest import SAMPLE_LOGS
from tests.matrix.removals import both, share_hole, without_partition
from tests.matrix.sources import StoredTables, ThisProcess


def test_both_reports_say_what_is_missing(tmp_path: Path) -> None:
    logs, tables = tmp_path / "logs", tmp_path / "tables"
    shutil.copytree(SAMPLE_LOGS, logs)
    both(without_partition(1), share_hole(1))(logs)
    StoredTables(ThisProcess(), tables, [[logs]])
    found = []
    for number, source in enumerate((["--log", str(logs)], ["--tables", str(tables)])):
        out = tmp_path / f"{number}.html"
        result = run_command("report", *source, "--out", out)
        assert result.exit_code == 0, result.output
        found.append(json.loads(out.with_suffix(".json").read_text())["warnings"])
    assert found[0] == found[1]
    partition, share_state = found[1]
    assert partition.startswith("1 of 4 partitions of __consumer_offsets were not given (1)")
    assert share_state.startswith("the share state log lacks records")
