"""How rows of history come into their tables, night by night."""

from pathlib import Path

import pytest

from coordinator_core.records import LogPosition
from jobs.pipeline.replay import put_rows
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY
from jobs.tables.table import few
from tests.matrix.sources import ThisProcess


@pytest.mark.parametrize("name", ["group_epochs", "rebalances", "target_audits"])
def test_a_group_of_workers_has_a_row_in_each_of_its_two_logs_at_one_position(tmp_path: Path, name: str) -> None:
    tables, table = Tables(ThisProcess(), str(tmp_path)), HISTORY[name]  # type: ignore[arg-type]
    tables.create(table)
    at = LogPosition(1, 13, 5)._asdict()
    for group_type in ("CONNECT", "CLASSIC", "CLASSIC"):
        row = {"cluster": "c", "group_id": "w", "group_type": group_type, "opened": at, "at": at}
        put_rows(tables, table, few(table, [row]))
    found = tables.engine().rows(f"SELECT group_type FROM ${name} ORDER BY group_type")
    assert [row["group_type"] for row in found] == ["CLASSIC", "CONNECT"]
