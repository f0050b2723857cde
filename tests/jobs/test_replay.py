"""The tables of history: the rows of the fold without Spark, whenever and however often the job runs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.describe import describe
from jobs import decode, ingest, local, replay
from jobs.api import CoordinatorAudit
from jobs.cli.history import plain
from jobs.history_schema import FOLDED, HISTORY
from jobs.local import Moment
from jobs.local_history import history
from jobs.local_targets import audit_targets
from jobs.sources.dump import open_dump
from jobs.sources.files import LogPart, find_logs
from jobs.stored_log import stored_logs
from jobs.tables import Tables
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.nights import by_offset, decoded, in_nights, rows_of

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the samples: too long for the quick tier."""

CLUSTER = "sample"


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The samples, replayed in one run."""
    tables = Tables(spark, str(tmp_path_factory.mktemp("whole")))
    ingest.run(tables, open_dump(spark, [str(SAMPLE_LOGS)]), CLUSTER)
    decode.run(tables)
    replay.run(tables)
    return tables


def test_rows_are_those_of_the_fold_without_spark(whole):
    for logs in (find_logs([SAMPLE_LOGS]), stored_logs(whole, CLUSTER)):
        expected: dict[str, list[str]] = {name: [] for name in FOLDED.values()}
        for row in (*history(logs, pytest.fail), *audit_targets(logs, pytest.fail, AuditSettings())):
            expected[FOLDED[type(row)]].append(repr(plain(row)))
        for name in FOLDED.values():
            found = whole.read(HISTORY[name]).drop("cluster").collect()
            assert sorted(repr(row.asDict(recursive=True)) for row in found) == sorted(expected[name])


def descriptions(logs: Sequence[LogPart]) -> dict[str, object]:
    """Every group at the end of the logs, as the Admin client would describe it."""
    replayed = local.replay(logs, Moment(), pytest.fail)
    around = replayed.surroundings()
    return {
        group.group_id: describe(group, shard.offsets_of(group.group_id), around) for group, shard in replayed.groups()
    }


def test_groups_from_the_tables_are_those_from_the_segments(whole):
    assert descriptions(stored_logs(whole, CLUSTER)) == descriptions(find_logs([SAMPLE_LOGS]))


def test_views_as_of_a_time(whole):
    audit = CoordinatorAudit(whole.spark, whole.home, CLUSTER)
    row = audit.assignments.where("kind = 'current' AND topic IS NOT NULL AND until IS NOT NULL").first()
    found = audit.owners_at(row.since.timestamp_ms, row.topic, row.group_id).where(F.col("partition") == row.partition)
    assert row.member_id in {owner.member_id for owner in found.collect()}


class KilledError(Exception):
    """Stands for the end of a process."""


class Mortal(Tables):
    """Tables that die before their nth merge."""

    def __init__(self, spark: SparkSession, home: str, dies_at: int) -> None:
        super().__init__(spark, home)
        self._left = dies_at

    def merge(self, *arguments: object, **options: object) -> None:
        self._left -= 1
        if self._left == 0:
            raise KilledError
        super().merge(*arguments, **options)


@pytest.mark.long
def test_nights_and_deaths_give_the_tables_of_one_pass(whole, tmp_path):
    nights = ["night 1", "night 2"]
    nightly = in_nights(whole, tmp_path, by_offset(whole, nights, random.Random(5)))
    decoded(nightly, "night 1")
    replay.run(nightly)
    decoded(nightly, "night 2")
    with pytest.raises(KilledError):
        replay.run(Mortal(nightly.spark, nightly.home, 4))
    replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


@pytest.mark.long
def test_records_that_come_late_make_their_groups_begin_anew(whole, tmp_path):
    shuffled = F.concat(F.lit("night "), (F.hash("log_partition", "log_offset") % 2 + 2).cast("string"))
    late = in_nights(whole, tmp_path, shuffled)
    for night in ("night 1", "night 2"):
        decoded(late, night)
        replay.run(late)
    decoded(late, "night 3")
    (again,) = replay.run(late)
    assert again.rebuilt > 0
    assert rows_of(late) == rows_of(whole)
