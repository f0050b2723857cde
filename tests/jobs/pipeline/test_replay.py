"""The tables of history: the rows of the fold without Spark, whenever and however often the job runs."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.all_findings import findings_of_cluster
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.rules import Rule
from coordinator_core.history.lost_records import NOTHING_LOST
from coordinator_core.records import RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import decode_key, encode_key
from jobs.api import CoordinatorAudit
from jobs.formatting import plain
from jobs.pipeline import findings as findings_job
from jobs.pipeline import made_findings, replay
from jobs.pipeline.on_spark import findings as on_spark
from jobs.queries.from_logs.history import group_histories
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.interface import RebalanceFilter
from jobs.relations import groups as groups_relation
from jobs.relations.replay import NOT_REPLAYED
from jobs.settings import EngineLimits
from jobs.sources.files import find_logs
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, REPLAYED
from jobs.tables.results import FINDINGS
from jobs.tables.spark_reader import sent
from jobs.tables.table import Table
from tests.core.audit.histories import all_shown
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, sample_rows, take
from tests.jobs.frames import assert_rows, assert_same
from tests.jobs.logs import write_segment
from tests.jobs.pipeline.spark_histories import histories
from tests.jobs.pipeline.test_findings_parts import here
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
    # Files say how far the partition of the group was read, tables how far all of them were.
    assert all(each.lost.read.items() <= found[group_id].lost.read.items() for group_id, each in expected.items())
    assert {group_id: replace(each, lost=NOTHING_LOST) for group_id, each in found.items()} == {
        group_id: replace(each, share_partitions=[], commit_counts=[], lost=NOTHING_LOST)
        for group_id, each in expected.items()
    }


def test_commits_between_gaps_are_judged_as_in_the_log(spark, tmp_path):
    """Few commits reach the fold in Spark, and what the rules say of all of them is the same; so is where gaps are."""
    write_segment(tmp_path / f"{TOPIC}-0", _strange_log())
    tables = Tables(spark, str(tmp_path / "tables"))
    take(tables, CLUSTER, tmp_path / f"{TOPIC}-0")
    replay.run(tables)
    warnings: list[str] = []
    logs = group_histories(find_logs([tmp_path / f"{TOPIC}-0"]), warnings.append, audit=AuditSettings())
    expected = {each.group_id: each.violations for each in logs}
    found = {each.group_id: each.violations for each in histories(tables, CLUSTER)}
    assert found == expected
    assert [warning.partition(",")[0] for warning in warnings] == [
        "the log lacks records",
        "no metadata log says how many partitions __consumer_offsets has: groups in partition 1 or higher",
        "the metadata log (__cluster_metadata) was not given: which topics there were",
        "the share state log (__share_group_state) was not given: the offsets and deliveries of share groups are not "
        "known",
    ]
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
    assert_rows(sample.table("findings").drop("cluster"), map(plain, findings_of_cluster(logs, limits, all_shown)))


@pytest.mark.parametrize(
    "compute",
    [partial(here, parts=1), partial(here, parts=3), on_spark.of_groups],
    ids=["here", "here in parts", "in Spark"],
)
def test_findings_of_groups_that_changed_complete_those_of_the_others(sample, compute):
    """Computed by this process or by Spark, of all groups or of some: the same rows. What about the cluster covers them
    comes later.
    """
    limits, about_groups = sample.settings.findings, "group_id IS NOT NULL"
    expected = sample.table("findings").where(about_groups).drop("covered")
    groups = sorted({row.group_id for row in expected.select("group_id").collect()})
    for changed in (None, groups[: len(groups) // 2], []):
        rows = compute(sample.tables, {CLUSTER: changed}, limits)
        found = sent(sample.tables.spark, rows) if isinstance(rows, pa.Table) else rows
        assert_same(found.where(about_groups).select(*expected.columns), expected)


def test_views_as_of_a_time(sample):
    row = sample.assignments.where("kind = 'current' AND topic IS NOT NULL AND until IS NOT NULL").first()
    found = sample.owners_at(row.since.timestamp_ms, row.topic, row.group_id).where(F.col("partition") == row.partition)
    assert not found.where(F.col("member_id") == row.member_id).isEmpty()


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


class Doomed(Tables):
    """Tables that die before their nth change of rows."""

    def __init__(self, spark: SparkSession, home: str, dies_at: int) -> None:
        super().__init__(spark, home)
        self._left = dies_at

    def _step(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise KilledError

    def replace(self, *arguments: Any, **options: Any) -> None:
        self._step()
        super().replace(*arguments, **options)

    def merge(self, *arguments: Any, **options: Any) -> None:
        self._step()
        super().merge(*arguments, **options)

    def delete(self, *arguments: Any, **options: Any) -> None:
        self._step()
        super().delete(*arguments, **options)


def warnings(tables: Tables) -> list[str]:
    """What is said with the rebalances in the tables."""
    said: list[str] = []
    StoredAnswers(FolderReader(tables.location), CLUSTER, AuditSettings(), said.append).rebalances(RebalanceFilter())
    return said


def test_a_forced_rebuild_that_is_killed_anywhere_warns_and_is_made_good(spark, tmp_path):
    """Before its first change nothing has happened; from then on the history lacks rows until a run has ended."""
    write_segment(tmp_path / f"{TOPIC}-0", islice(_strange_log(), 60))
    tables = Tables(spark, str(tmp_path / "tables"))
    take(tables, CLUSTER, tmp_path / f"{TOPIC}-0")
    replay.run(tables)
    expected = rows_of(tables)
    assert NOT_REPLAYED not in warnings(tables)
    for dies_at in (1, 2, 4):
        with pytest.raises(KilledError):
            replay.run(Doomed(spark, tables.location, dies_at), rebuild=True)
        assert (NOT_REPLAYED in warnings(tables)) == (dies_at > 1)
    replay.run(tables)
    assert NOT_REPLAYED not in warnings(tables)
    assert rows_of(tables) == expected


def test_nights_and_deaths_give_the_tables_of_one_pass(sample, whole, tmp_path):
    nights = ["night 1", "night 2"]
    nightly, limits = in_nights(whole, tmp_path, by_offset(whole, nights, random.Random(5))), sample.settings.findings
    decoded(nightly, "night 1")
    replay.run(nightly)
    findings_job.run(nightly, limits, "night")
    decoded(nightly, "night 2")
    with pytest.raises(KilledError):
        replay.run(Mortal(nightly.spark, nightly.location, 4))
    assert NOT_REPLAYED in warnings(nightly)
    replay.run(nightly)
    assert NOT_REPLAYED not in warnings(nightly)
    assert rows_of(nightly) == rows_of(whole)
    findings_job.run(nightly, limits, "night")
    assert_same(nightly.read(FINDINGS), whole.read(FINDINGS))


def test_a_replay_in_parts_is_that_of_one(whole, tmp_path, monkeypatch):
    """The second night is killed between two parts: the groups of the first begin again, and the others go on."""
    nightly = in_nights(whole, tmp_path, by_offset(whole, ["night 1", "night 2"], random.Random(8)))
    nightly.limits = EngineLimits(replayed_rows=50, replayed_parts=1_000)
    append, staged = Tables.append, list[str]()

    def noted(self: Tables, table: Table, *arguments: Any, **options: Any) -> None:
        if table is REPLAYED:
            staged.append(night)
            if staged.count("night 2") == 2:
                raise KilledError
        append(self, table, *arguments, **options)

    monkeypatch.setattr(Tables, "append", noted)
    night = "night 1"
    decoded(nightly, night)
    replay.run(nightly)
    assert len(staged) > 3
    night = "night 2"
    decoded(nightly, night)
    with pytest.raises(KilledError):
        replay.run(nightly)
    assert NOT_REPLAYED in warnings(nightly)
    replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


def test_a_night_of_few_log_partitions_leaves_the_findings_of_other_groups(sample, whole, tmp_path, monkeypatch):
    """Spark replays and merges the second night, this process the others; the third brings one log partition alone."""
    nights = ["night 1", "night 2", "night 3"]
    of_log = F.when((F.col("log_topic") != TOPIC) | (F.col("log_offset") < 300), "night 1")
    nightly = in_nights(whole, tmp_path, of_log.when(F.col("log_partition") > 0, "night 2").otherwise("night 3"))
    computed: list[set[str]] = []

    def noted(*given):
        found = list(groups_relation.gathered(*given))
        computed.append({each.group_id for each in found})
        return found

    monkeypatch.setattr(made_findings, "gathered", noted)
    for night in nights:
        in_spark = EngineLimits(replayed_rows=-1, staged_file_bytes=-1)
        nightly.limits = in_spark if night == "night 2" else EngineLimits()
        decoded(nightly, night)
        replay.run(nightly)
        findings_job.run(nightly, sample.settings.findings, night)
    assert rows_of(nightly) == rows_of(whole)
    assert_same(nightly.read(FINDINGS), whole.read(FINDINGS))
    assert 0 < len(computed[2]) < len(computed[1]) <= nightly.read(GROUP_STATES).count()


SHUFFLED = "concat('night ', 2 + abs(hash(log_partition, log_offset)) % 2)"
TOPICS_LAST = "if(log_topic = '__cluster_metadata', 'night 3', 'night 2')"
TOPICS_CUT = "if(log_topic = '__cluster_metadata' AND timestamp_ms > 1795257472000, 'night 3', 'night 2')"
"""Behind it no topic changes for 99 s, within which five groups have their last records."""


@pytest.mark.parametrize("night", [SHUFFLED, TOPICS_LAST, TOPICS_CUT], ids=["records", "topics", "end of topics"])
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
