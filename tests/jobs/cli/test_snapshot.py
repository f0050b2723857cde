"""Snapshots of a cluster: rows of an Admin client that plays a cluster, and what the questions make of them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.pandas.types import to_arrow_schema
from typer.testing import CliRunner

from coordinator_core.audit.rows import Verdict
from coordinator_core.groups.offsets import TopicPartition
from jobs.cli.app import app
from jobs.sources import cluster_snapshot, stored_topics
from jobs.sources.end_offsets import newest_ends
from jobs.sources.files import Family, find_logs
from jobs.sources.topics import topic_history
from jobs.tables.folder_reader import FolderReader
from jobs.tables.snapshots import END_OFFSETS
from tests.jobs.conftest import SAMPLE_LOGS

LOG = [str(folder) for folder in sorted(SAMPLE_LOGS.iterdir()) if "metadata" not in folder.name]


def done(value):
    return SimpleNamespace(result=lambda: value)


class Cluster:
    """Two topics; partition 1 of ``orders`` has no leader."""

    racks = ("a", None)

    def describe_cluster(self, request_timeout):
        return done(SimpleNamespace(cluster_id="C"))

    def list_topics(self, timeout):
        return SimpleNamespace(topics=dict.fromkeys(("pay", "orders")))

    def describe_topics(self, topics, request_timeout):
        return {name: done(self._topic(name)) for name in topics.topic_names}

    def _topic(self, name):
        replicas = [SimpleNamespace(rack=rack) for rack in self.racks]
        count = {"orders": 2, "pay": 1}[name]
        partitions = [
            SimpleNamespace(id=number, replicas=replicas, leader=None if number else "broker")
            for number in reversed(range(count))
        ]
        return SimpleNamespace(topic_id=f"+/{name}", partitions=partitions)

    def list_offsets(self, wanted, request_timeout):
        return {partition: done(SimpleNamespace(offset=7 + partition.partition)) for partition in wanted}

    def list_consumer_groups(self, request_timeout):
        return done(SimpleNamespace(valid=[SimpleNamespace(group_id="g")]))

    def describe_configs(self, resources, request_timeout):
        entries = {"consumer.heartbeat.interval.ms": "5000", "streams.num.standby.replicas": None}
        found = {name: SimpleNamespace(value=value) for name, value in entries.items()}
        return {resource: done(found) for resource in resources}


def taken():
    return [*cluster_snapshot.rows(Cluster(), 5), *cluster_snapshot.group_rows(Cluster(), 5, "C")]


def run(*arguments):
    return CliRunner().invoke(app, [*arguments])


def test_a_row_for_each_partition_with_the_id_as_kafka_writes_it():
    assert list(cluster_snapshot.rows(Cluster(), 5)) == [
        dict(zip(cluster_snapshot.ROW, ("orders", "-_orders", 0, ["a", None], 5, 7, "C"), strict=True)),
        dict(zip(cluster_snapshot.ROW, ("orders", "-_orders", 1, ["a", None], 5, None, "C"), strict=True)),
        dict(zip(cluster_snapshot.ROW, ("pay", "-_pay", 0, ["a", None], 5, 7, "C"), strict=True)),
    ]


def test_configs_of_groups_are_rows_without_a_topic():
    (row,) = cluster_snapshot.group_rows(Cluster(), 5, "C")
    assert row["configs"] == {"consumer.heartbeat.interval.ms": "5000"}
    assert (row["resource_type"], row["resource"], "topic" in row) == ("GROUP", "g", False)


def test_the_file_grows_and_gives_topics_and_end_offsets(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_snapshot, "take", lambda config, time_ms, warn: taken())
    out = tmp_path / "cluster.jsonl"
    for _ in range(2):
        result = run("snapshot", "kafka://broker:9092", "--out", str(out), "--json")
        assert json.loads(result.stdout) == {"file": str(out), "topics": 2, "partitions": 3, "groups": 1}
    assert len(out.read_text().splitlines()) == 8
    assert newest_ends(out) == {TopicPartition("orders", 0): 7, TopicPartition("pay", 0): 7}
    topics = cluster_snapshot.read_topics(out).image_at(None)
    assert {(each.name, each.id, each.partitions, each.racks) for each in topics.by_name.values()} == {
        ("orders", "-_orders", 2, (("a",), ("a",))),
        ("pay", "-_pay", 1, (("a",),)),
    }


def test_topics_of_snapshots_in_the_tables_are_those_of_the_file(tmp_path):
    rows = list(cluster_snapshot.rows(Cluster(), 5))
    rows += [{**row, "timestamp_ms": 9} for row in rows if row["topic"] == "orders"]
    file = tmp_path / "cluster.jsonl"
    cluster_snapshot.append(file, rows)
    stored = pa.Table.from_pylist([{**row, "cluster": "c"} for row in rows], to_arrow_schema(END_OFFSETS.schema))
    write_deltalake(str(tmp_path / "tables" / END_OFFSETS.name), stored)
    found = stored_topics.read(FolderReader(str(tmp_path / "tables")), "c")
    assert list(found.intervals()) == list(cluster_snapshot.read_topics(file).intervals())
    assert {each.topic for each in found.intervals()} == {"orders", "pay"}
    assert stored_topics.read(FolderReader(str(tmp_path / "tables")), "other") is None


@pytest.mark.parametrize("url", ["broker:9092", "kafka://", "kafka://broker:9092/__consumer_offsets"])
def test_a_wrong_address_is_a_usage_error(url, tmp_path):
    result = run("snapshot", url, "--out", str(tmp_path / "x"))
    assert (result.exit_code, result.stderr) == (
        2,
        f"error: invalid URL {url!r}: use kafka://HOST:PORT[,HOST:PORT]\n",
    )


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_snapshot, "TIMEOUT_S", 1.0)
    result = run("snapshot", "kafka://127.0.0.1:1", "--out", str(tmp_path / "x"), "--quiet")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: 127.0.0.1:1: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "contains no snapshot"), ("{}", "line 1 is not a row of a snapshot"), ("x\n", "line 1 is not a row")],
)
def test_a_file_that_is_not_a_snapshot_is_an_error(text, said, tmp_path):
    file = tmp_path / "topics.jsonl"
    file.write_text(text)
    result = run("groups", "--topics", str(file), *(each for log in LOG for each in ("--log", log)))
    assert result.exit_code == 1
    assert said in result.stderr


def listed(history, every):
    """What snapshots would have shown at every n-th change of the topics."""
    for position in (*history.positions[::every], history.positions[-1]):
        for topic in history.image_at(position.timestamp_ms).by_name.values():
            for partition in range(topic.partitions):
                racks = list(topic.racks[partition]) if topic.racks else [None]
                row = (topic.name, topic.id, partition, racks, position.timestamp_ms, None, "C")
                yield dict(zip(cluster_snapshot.ROW, row, strict=True))


def verdicts(*arguments):
    result = run("audit", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    rows = map(json.loads, result.stdout.splitlines())
    return {(row["group_id"], row["epoch"], row["at"]["offset"]): row["verdict"] for row in rows if "verdict" in row}


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_verdicts_with_snapshots_are_those_of_the_metadata_log_or_unknown(every, tmp_path):
    """A sparse snapshot leaves more unknown, and makes nothing wrong."""
    metadata = [file for file in find_logs([SAMPLE_LOGS]) if file.family is Family.METADATA]
    file = tmp_path / "topics.jsonl"
    cluster_snapshot.append(file, listed(topic_history(metadata, pytest.fail), every))
    proven = verdicts("--log", str(SAMPLE_LOGS))
    found = verdicts("--topics", str(file), *(each for log in LOG for each in ("--log", log)))
    assert found.keys() == proven.keys()
    differing = {key for key in found if found[key] not in (proven[key], Verdict.UNKNOWN)}
    assert differing == set()
    identical = sum(verdict == Verdict.IDENTICAL for verdict in found.values())
    assert identical >= (0.9 if every == 1 else 0.2) * len(proven)
