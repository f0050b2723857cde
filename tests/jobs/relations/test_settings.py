"""What snapshots show of settings: the tables say what a snapshot file says, and each part of the texts matters."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind, SnapshotSettings
from jobs.relations import settings
from jobs.relations.settings import USED_SETTINGS, SnapshotNews, read_settings, settings_news_ms, snapshot_news
from jobs.sources.snapshot_files import SINGLE_SETTING, settings_of, single_settings
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import Value
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS
from tests.jobs.relations.engines import write

FEATURES = (ResourceKind.SUPPORTED_FEATURES, ResourceKind.FINALIZED_FEATURES)
Row = dict[str, Any]


def snapshots(seed: int) -> Iterator[Row]:
    """Rows of snapshots as a file has them: values that change and come back, and brokers that do not answer."""
    chance = random.Random(seed)
    for time_ms in range(1_000, 13_000, 1_000):
        for kind, resource in ((FEATURES[0], "1"), (FEATURES[0], "2"), (FEATURES[1], "cluster")):
            row = {"timestamp_ms": time_ms, "resource_type": kind, "resource": resource}
            if kind == FEATURES[0] and chance.random() < 0.2:
                yield {**row, "configs": {}, MISSING: "no answer"}
            elif chance.random() < 0.9:
                level = {METADATA_VERSION: str(chance.choice((7, 12, 25)))} if chance.random() < 0.8 else {}
                yield {**row, "configs": {**level, "group.version": str(chance.randrange(90, 99))}}
        for kind, resource in ((ResourceKind.GROUP, "g"), (ResourceKind.GROUP, "h"), (ResourceKind.BROKER, "g")):
            configs = {name: str(chance.randrange(3)) for name in USED_SETTINGS if chance.random() < 0.7}
            yield {"timestamp_ms": time_ms, "resource_type": kind, "resource": resource, "configs": configs}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, SnapshotSettings]]:
    return list(_stores(tmp_path_factory))


def _stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SnapshotSettings]]:
    for seed in range(4):
        home, rows = tmp_path_factory.mktemp("settings"), list(snapshots(seed))
        singles = [dict(zip(SINGLE_SETTING, of_row, strict=True)) for of_row in single_settings(rows)]
        random.Random(0).shuffle(singles)
        stored = [{"cluster": "c", "run_id": "run 1", **row} for row in singles]
        others = [
            {**row, "cluster": "other", "timestamp_ms": row["timestamp_ms"] + 500, "value": "1"} for row in stored
        ]
        write(home, {SNAPSHOT_SETTINGS: [*stored, *others]})
        yield home, settings_of(rows)


def used(of_files: SnapshotSettings) -> SnapshotSettings:
    """The levels, and the settings that answers depend on: a file has others, too."""
    return SnapshotSettings(of_files.levels, {key: of for key, of in of_files.runs.items() if key[1] in USED_SETTINGS})


def test_tables_say_what_files_say(stores: list[tuple[Path, SnapshotSettings]]) -> None:
    for home, of_files in stores:
        assert read_settings(FolderReader(str(home)), "c") == used(of_files)
        assert len(of_files.levels) > 3
        assert read_settings(FolderReader(str(home)), "new") == SnapshotSettings([])


MUTATIONS = [
    ("cluster = :cluster AND name", "name"),
    ("cluster = :cluster AND resource_type", "resource_type"),
    ("AND name IN :names", ""),
    ("min(CASE WHEN resource_type = :supported", "max(CASE WHEN resource_type = :supported"),
    ("min(CASE WHEN resource_type = :supported", "min(CASE WHEN resource_type <> :supported"),
    ("  max(CASE WHEN resource_type = :supported", "  min(CASE WHEN resource_type = :supported"),
    ("resource_type = :supported AND name = :name THEN", "resource_type = :supported THEN"),
    ("resource_type = :finalized AND name = :name THEN", "resource_type = :finalized THEN"),
    ("WHEN resource_type = :finalized", "WHEN resource_type = :supported"),
    ("resource_type = :supported AND name = :missing", "resource_type = :finalized AND name = :missing"),
    ("AND name = :missing", "AND name <> :missing"),
    ("PARTITION BY resource_type, resource, name, value", "PARTITION BY resource, name, value"),
    ("PARTITION BY resource_type, resource, name, value", "PARTITION BY resource_type, resource, name"),
    ("min(timestamp_ms) AS first_ms", "max(timestamp_ms) AS first_ms"),
    ("max(timestamp_ms) AS last_ms", "min(timestamp_ms) AS last_ms"),
    ("name, value, run\n", "name, value\n"),
    ("GROUP BY timestamp_ms ORDER BY timestamp_ms", "GROUP BY timestamp_ms ORDER BY timestamp_ms DESC"),
]


class Mutated(FolderReader):
    """A reader that changes a part of each text."""

    def __init__(self, home: Path, part: str, instead: str) -> None:
        super().__init__(str(home))
        self.change: Callable[[str], str] = lambda sql: sql.replace(part, instead)

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
        return super().rows(self.change(sql), **values)


@pytest.mark.parametrize(("part", "instead"), MUTATIONS, ids=[f"{part} {instead}" for part, instead in MUTATIONS])
def test_a_mutated_text_is_found(stores: list[tuple[Path, SnapshotSettings]], part: str, instead: str) -> None:
    assert part in settings.LEVELS + settings.RUNS
    found = [read_settings(Mutated(home, part, instead), "c") for home, _ in stores]
    assert found != [used(of_files) for _, of_files in stores]


# --- what later runs brought ------------------------------------------------------------------------------------------

BROUGHT = [("run 1", 50), ("run 1", 70), ("run 2", 90), ("run 2", 80), ("run 3", 60)]
NEWS = {"": SnapshotNews(None, 50), "run 1": SnapshotNews(70, 60), "run 2": SnapshotNews(90, 60), "run 3": None}


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    rows = [{"cluster": "c", "run_id": run, "timestamp_ms": time_ms} for run, time_ms in BROUGHT]
    others = [{"cluster": "other", "run_id": run, "timestamp_ms": ms} for run, ms in (("run 0", 99), ("run 9", 1))]
    write(tmp_path, {END_OFFSETS: [*rows, *others], SNAPSHOT_SETTINGS: [*rows[:4], *others]})
    return tmp_path


@pytest.mark.parametrize("after", NEWS)
def test_news_are_the_first_new_and_the_last_known_snapshot(brought: Path, after: str) -> None:
    assert snapshot_news(FolderReader(str(brought)), "end_offsets", "c", after) == NEWS[after]


def test_a_snapshot_tells_of_settings_since_the_one_before(brought: Path) -> None:
    tables = FolderReader(str(brought))
    assert [settings_news_ms(tables, "c", after) for after in ("", "run 1", "run 2")] == [-1, 70, None]
