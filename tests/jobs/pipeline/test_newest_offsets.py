"""Of which run the committed offsets are stored: the newest decoded one, or a later one with a snapshot."""

from typing import Any

import pytest

from jobs.pipeline import commit_summaries, offsets
from jobs.tables.delta import Tables

DECODED, LATER = "2026-11-29T01:00:00Z", "2026-11-29T02:00:00Z"


@pytest.mark.parametrize(
    ("snapshots", "newest"), [({}, DECODED), ({"c": LATER}, LATER), ({"c": "2026-11-28T01:00:00Z"}, DECODED)]
)
def test_end_offsets_without_rows_name_no_run(
    monkeypatch: pytest.MonkeyPatch, snapshots: dict[str, str], newest: str
) -> None:
    asked: list[str] = []

    def stored(tables: Any, run_id: str) -> int:
        asked.append(run_id)
        return 1

    monkeypatch.setattr(commit_summaries, "update", lambda tables: None)
    monkeypatch.setattr(Tables, "create", lambda self, table: None)
    monkeypatch.setattr(Tables, "exists", lambda self, table: True)
    monkeypatch.setattr(offsets, "newest_run", lambda tables, job: DECODED)
    monkeypatch.setattr(offsets, "newest_runs", lambda tables, table: snapshots)
    monkeypatch.setattr(offsets, "_stored", stored)
    assert offsets.run(object.__new__(Tables)) == 1
    assert asked == [newest]
