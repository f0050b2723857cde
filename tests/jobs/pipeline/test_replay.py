"""The tables of history: the rows of the fold without Spark, whenever and however often the job runs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.violations import Rule
from coordinator_core.records import RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import decode_key, encode_key
from jobs.api import CoordinatorAudit
from jobs.formatting import plain
from jobs.pipeline import replay
from jobs.pipeline.group_history import histories
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, sample_rows, take
from tests.jobs.logs import write_segment
from tests.jobs.split_nights import by_offset, decoded, in_nights, rows_of

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the samples: too long for the quick tier."""

CLUSTER = "sample"


@pytest.fixture
def whole(sample: CoordinatorAudit) -> Tables:
    """The samples, replayed in one run."""
    return sample.tables


def test_histories_are_those_of_the_logs(sample):
    expected = {
        each.group_id: each for each in group_histories(find_logs([SAMPLE_LOGS]), pytest.fail, audit=AuditSettings())
    }
    found = {each.group_id: each for each in histories(sample.tables, CLUSTER)}
    assert found == {group_id: replace(each, share_partitions=[]) for group_id, each in expected.items()}


def test_commits_between_gaps_are_judged_as_in_the_log(spark, tmp_path):
    """Few commits reach the fold in Spark, and what the rules say of all of them is the same; so is where gaps are."""
    write_segment(tmp_path / f"{TOPIC}-0", _strange_log())
    tables = Tables(spark, str(tmp_path / "tables"))
    take(tables, CLUSTER, tmp_path / f"{TOPIC}-0")
    replay.run(tables)
    logs = group_histories(find_logs([tmp_path / f"{TOPIC}-0"]), pytest.fail, audit=AuditSettings())
    expected = {each.group_id: each.violations for each in logs}
    found = {each.group_id: each.violations for each in histories(tables, CLUSTER)}
    assert found == expected
    assert Counter(row.rule for rows in found.values() for row in rows)[Rule.COMMIT_BY_NO_OWNER] > 10


def _strange_log() -> Iterator[bytes]:
    """A partition of the sample with every third commit of a partition that nobody has, and holes here and there."""
    for number, row in enumerate(sample_rows()):
        if row["log_partition"] != 0 or row["kind"] != "record" or number % 41 == 0:
            continue
        key = row["key"]
        record_type, fields = decode_key(key)
        if record_type == RecordType.OFFSET_COMMIT and number % 3 == 0:
            key = encode_key(record_type, fields | {"partition": 9_990 + number % 9})
        yield encode_batch([NewRecord(row["log_offset"], row["timestamp_ms"], key, row["value"])])


def test_findings_are_those_of_the_logs(sample):
    limits = sample.settings.findings
    logs = group_histories(find_logs([SAMPLE_LOGS]), pytest.fail, audit=AuditSettings())
    expected = sorted(repr(plain(row)) for history in logs for row in findings(history, limits))
    found = sample.table("findings").drop("cluster").collect()
    assert sorted(repr(row.asDict(recursive=True)) for row in found) == expected


def test_views_as_of_a_time(sample):
    row = sample.assignments.where("kind = 'current' AND topic IS NOT NULL AND until IS NOT NULL").first()
    found = sample.owners_at(row.since.timestamp_ms, row.topic, row.group_id).where(F.col("partition") == row.partition)
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


def test_nights_and_deaths_give_the_tables_of_one_pass(whole, tmp_path):
    nights = ["night 1", "night 2"]
    nightly = in_nights(whole, tmp_path, by_offset(whole, nights, random.Random(5)))
    decoded(nightly, "night 1")
    replay.run(nightly)
    decoded(nightly, "night 2")
    with pytest.raises(KilledError):
        replay.run(Mortal(nightly.spark, nightly.location, 4))
    replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


SHUFFLED = "concat('night ', 2 + abs(hash(log_partition, log_offset)) % 2)"
TOPICS_LAST = "if(log_topic = '__cluster_metadata', 'night 3', 'night 2')"


@pytest.mark.parametrize("night", [SHUFFLED, TOPICS_LAST], ids=["records", "topics"])
def test_what_comes_late_makes_its_groups_begin_anew(whole, tmp_path, night):
    late = in_nights(whole, tmp_path, F.expr(night))
    for each in ("night 2", "night 3"):
        decoded(late, each)
        (again,) = replay.run(late)
    assert again.rebuilt > 0
    assert rows_of(late) == rows_of(whole)


def test_states_of_another_version_are_made_again(whole, tmp_path):
    """The states of an earlier release are of no use: each group is replayed again, from its first record."""
    tables = in_nights(whole, tmp_path, by_offset(whole, ["night 1", "night 2"], random.Random(3)))
    decoded(tables, "night 1")
    replay.run(tables)
    states = tables.read(GROUP_STATES)
    groups = states.count()
    old = {"version": F.lit("5.5.3.1"), "state": F.lit('{"group":{"version":1},"history":{"version":5}}')}
    tables.replace(GROUP_STATES, states.withColumns(old))
    decoded(tables, "night 2")
    (again,) = replay.run(tables)
    assert again.rebuilt == groups > 0
    assert rows_of(tables) == rows_of(whole)
