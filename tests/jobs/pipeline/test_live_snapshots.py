"""A running cluster whose log is read: snapshots before and after, which a night stores by itself."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.pipeline import runs, snapshots
from jobs.relations.offsets import newest_ends
from jobs.relations.settings import read_settings, settings_news_ms
from jobs.sources import cluster_snapshot
from jobs.sources.dump import live_servers
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader

LIVE = ["kafka://a:1,b:2/__consumer_offsets", "/dump", "kafka://a:1,b:2/__share_group_state"]


class Cluster:
    """A cluster of one partition whose end offset is the number of snapshots; ``down`` are those that fail."""

    def __init__(self, down: tuple[int, ...] = ()) -> None:
        self.down, self.asked = down, []

    def take(self, config: dict[str, str], time_ms: int, warn: Any) -> list[dict[str, Any]]:
        self.asked.append(config)
        if len(self.asked) in self.down:
            raise InputError("a:1,b:2: refused")
        warn("it has no configs of groups")
        row = ("orders", "id", 0, [None], time_ms, len(self.asked), "C")
        level = {"resource_type": "SUPPORTED_FEATURES", "resource": "1", "configs": {"metadata.version": "30"}}
        return [dict(zip(cluster_snapshot.ROW, row, strict=True)), {**level, "missing": None, "timestamp_ms": time_ms}]


@pytest.mark.parametrize(
    ("down", "stored", "last", "warned"),
    [
        ((), 2, 2, ["it has no configs of groups"]),
        ((1,), 0, None, ["no snapshot of the cluster was taken: a:1,b:2: refused"]),
        ((2,), 1, 1, ["it has no configs of groups", "no snapshot of the cluster was taken: a:1,b:2: refused"]),
    ],
)
def test_a_snapshot_before_and_after_the_log_is_read(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    down: tuple[int, ...],
    stored: int,
    last: int | None,
    warned: list[str],
) -> None:
    cluster, tables, warnings = Cluster(down), Tables(spark, str(tmp_path)), []
    monkeypatch.setattr(cluster_snapshot, "take", cluster.take)
    with snapshots.around(tables, LIVE, {"sasl.username": "u"}, "c", warnings.append) as taken:
        read = runs.new_run_id()
    assert (taken.count, warnings) == (stored, warned)
    assert {tuple(sorted(config.items())) for config in cluster.asked} == {
        (("bootstrap.servers", "a:1,b:2"), ("sasl.username", "u"))
    }
    found = FolderReader(str(tmp_path))
    assert [end.offset for end in newest_ends(found, "c", None).values()] == ([] if last is None else [last])
    assert len(read_settings(found, "c").levels) == (stored > 0)
    # The replay of the log has seen both of them: they are no news for the next night.
    assert settings_news_ms(found, "c", read) is None


def test_without_a_running_cluster_nothing_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    assert live_servers(LIVE) == ["a:1,b:2"]
    with snapshots.around(Tables(spark, str(tmp_path)), ["/dump"], {}, "c", pytest.fail) as taken:
        pass
    assert (taken.count, list(tmp_path.iterdir())) == (0, [])
