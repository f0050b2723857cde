"""Records that cannot be decoded: the tables know of them what the log files show."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.history.lost_records import Holes
from jobs.pipeline.replay_arrow import folder
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_logs.history import group_histories
from jobs.queries.from_tables.stored_moment import StoredMoment
from jobs.relations.moment import AsOf
from jobs.relations.replay import BLOCK, replayed_rows
from jobs.relations.unreadable import unplaced_records
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, find_logs
from jobs.tables.folder_reader import FolderReader
from tests.jobs.queries.same_answers import offsets_then
from tests.jobs.relations.tables_of_logs import CLUSTER, fill
from tests.shared_data import ROOT

LOGS = ROOT / "tests" / "data" / "unreadable"
NEW: dict[str, Any] = {
    **{"cluster": CLUSTER, "done": "", "upto": "run 1", "block": BLOCK},
    **{"topics": REPLAYED_TOPICS, "groups": GROUP_TOPICS},
}
"""What a first replay asks for."""


@pytest.fixture(params=["unkkeys", "unk3", "unk3one", "unk8"])
def log(request: pytest.FixtureRequest) -> Path:
    """A log of one group; in ``unkkeys`` there are keys that cannot be decoded."""
    return LOGS / str(request.param)


@pytest.fixture
def tables(log: Path, tmp_path: Path) -> FolderReader:
    fill(tmp_path, log)
    return FolderReader(str(tmp_path))


def test_moments_from_tables_are_those_from_files(log: Path, tables: FolderReader) -> None:
    logs = [each for each in find_logs([log]) if each.topic == "__consumer_offsets"]
    for moment in (AsOf(), *(AsOf(offsets={0: end}) for end in (5, 12, 20))):
        stored, replayed = StoredMoment(tables, CLUSTER, moment), replay(logs, moment, lambda message: None)
        assert offsets_then(stored) == offsets_then(replayed)
        assert stored.gaps() == replayed.gaps()
        assert stored.knowledge().lost == replayed.knowledge().lost


def test_a_replay_of_the_tables_gives_the_rows_of_the_files(log: Path, tables: FolderReader) -> None:
    logs = [each for each in find_logs([log]) if each.topic == "__consumer_offsets"]
    (history,) = group_histories(logs, lambda message: None, audit=AuditSettings())
    holes = Holes(unplaced_records(tables, CLUSTER, "run 1"))
    rows = tables.batches(f"{replayed_rows(is_first=True)} ORDER BY log_offset", **NEW)
    staged = pa.Table.from_batches(folder(CLUSTER, None, AuditSettings(), holes)(rows))
    assert _of(staged, "violation") == [each._asdict() for each in history.violations] == []
    for name, found in (("group_epoch", history.epochs), ("rebalance", history.rebalances)):
        expected = {(each[2].offset if name == "rebalance" else each.opened.offset): each for each in found}
        stored = {(row["at"] if name == "rebalance" else row["opened"])["offset"]: row for row in _of(staged, name)}
        assert {at: (row["history_complete"], row["missing"]) for at, row in stored.items()} == {
            at: (each.history_complete, each.missing) for at, each in expected.items()
        }


def _of(staged: pa.Table, name: str) -> list[dict[str, object]]:
    (column,) = [each for each in staged.column_names if each.startswith(name)]
    return [row for row in staged[column].to_pylist() if row is not None]
