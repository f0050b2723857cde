"""Snapshots of a cluster: rows of an Admin client that plays a cluster, and what the questions make of them."""

import json
from concurrent.futures import Future
from types import SimpleNamespace

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from deltalake import write_deltalake

from coordinator_core.audit.rows import Verdict
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.wire.api_versions import BrokerFeatures
from jobs.relations.settings import USED_SETTINGS
from jobs.relations.topics import stored_topics, topic_news_ms
from jobs.sources import broker_features, cluster_snapshot, kafka_reports, snapshot_files
from jobs.sources.broker_features import FeatureAnswer
from jobs.sources.end_offsets import newest_ends
from jobs.sources.files import Family, find_logs
from jobs.sources.topics import topic_history
from jobs.tables.folder_reader import FolderReader
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS
from tests.commands import rows_of_command, run_command, text_of_command
from tests.jobs.conftest import SAMPLE_LOGS

LOG = [str(folder) for folder in sorted(SAMPLE_LOGS.iterdir()) if "metadata" not in folder.name]


FEATURES = BrokerFeatures({"metadata.version": 30, "group.version": 1}, {"metadata.version": 29})


def done(value):
    future: Future = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Cluster:
    """Two topics; partition 1 of ``orders`` has no leader. ``refused`` are the kinds of resources without configs."""

    racks = ("a", None)
    topics = ("pay", "orders")

    def __init__(self, refused=()):
        self.refused = refused

    def describe_cluster(self, request_timeout):
        nodes = [SimpleNamespace(id=number, host="b", port=9092) for number in (1, 2)]
        return done(SimpleNamespace(cluster_id="C", nodes=nodes))

    def list_topics(self, timeout):
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

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
        entries = {
            "BROKER": {"group.consumer.assignors": "range,uniform", "log.dirs": "/data"},
            "GROUP": {"consumer.session.timeout.ms": "45000", "streams.num.standby.replicas": None},
        }
        answers = {}
        for resource in resources:
            kind = resource.restype.name
            found = {name: SimpleNamespace(value=value) for name, value in entries[kind].items()}
            answers[resource] = done(REFUSED if kind in self.refused else found)
        return answers


REFUSED = KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "no right"))


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of two brokers, the second of which does not say what it supports."""
    played = Cluster()
    answers = [FeatureAnswer(1, FEATURES, None), FeatureAnswer(2, None, "b:9092: closed")]
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", lambda config: played)
    monkeypatch.setattr(broker_features, "ask", lambda brokers, config: answers[: len(brokers)])
    return played


def taken(time_ms=5, warn=lambda message: None):
    return cluster_snapshot.take({"bootstrap.servers": "b:9092"}, time_ms, warn)


def settings_in(rows):
    of_resources = [row for row in rows if "resource" in row]
    return {(row["resource_type"], row["resource"]): (row["configs"], row["missing"]) for row in of_resources}


def test_a_row_for_each_partition_with_the_id_as_kafka_writes_it():
    assert list(cluster_snapshot.rows(Cluster(), "C", 5)) == [
        dict(zip(cluster_snapshot.ROW, ("orders", "-_orders", 0, ["a", None], 5, 7, "C"), strict=True)),
        dict(zip(cluster_snapshot.ROW, ("orders", "-_orders", 1, ["a", None], 5, None, "C"), strict=True)),
        dict(zip(cluster_snapshot.ROW, ("pay", "-_pay", 0, ["a", None], 5, 7, "C"), strict=True)),
    ]


def test_a_topic_that_is_deleted_while_topics_are_described_is_not_there(monkeypatch):
    whole, described = list(cluster_snapshot.rows(Cluster(), "C", 5)), Cluster._topic
    gone = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    monkeypatch.setattr(Cluster, "_topic", lambda self, name: gone if name == "pay" else described(self, name))
    assert list(cluster_snapshot.rows(Cluster(), "C", 5)) == whole[:2]
    monkeypatch.setattr(Cluster, "_topic", lambda self, name: REFUSED)
    with pytest.raises(KafkaException):
        list(cluster_snapshot.rows(Cluster(), "C", 5))


def test_settings_and_features_are_rows_without_a_topic(cluster):
    warnings = []
    rows = taken(warn=warnings.append)
    assert settings_in(rows) == {
        ("SUPPORTED_FEATURES", "1"): ({"metadata.version": "30", "group.version": "1"}, None),
        ("SUPPORTED_FEATURES", "2"): (None, "b:9092: closed"),
        ("FINALIZED_FEATURES", ""): ({"metadata.version": "29"}, None),
        ("BROKER", "1"): ({"group.consumer.assignors": "range,uniform"}, None),
        ("BROKER", "2"): ({"group.consumer.assignors": "range,uniform"}, None),
        ("GROUP", "g"): ({"consumer.session.timeout.ms": "45000"}, None),
    }
    assert {(row["timestamp_ms"], row["cluster_id"]) for row in rows} == {(5, "C")}
    assert {tuple(row) for row in rows} == {cluster_snapshot.ROW, cluster_snapshot.SETTINGS_ROW}
    assert warnings == ["the snapshot has no features of broker 2: b:9092: closed"]


def test_what_a_cluster_refuses_is_a_warning_and_the_rest_is_stored(cluster):
    cluster.refused, cluster.topics = ("BROKER", "GROUP"), ()
    warnings = []
    rows = taken(warn=warnings.append)
    assert [kind for kind, _ in settings_in(rows)] == ["SUPPORTED_FEATURES"] * 2 + ["FINALIZED_FEATURES"]
    assert warnings == [
        "the cluster shows no topics: it has none, or this user may not describe them",
        "the snapshot has no features of broker 2: b:9092: closed",
        "the snapshot has no configs of brokers: no right",
        "the snapshot has no configs of groups: no right",
    ]


def test_brokers_without_kraft_have_no_level_of_metadata_version():
    old = FeatureAnswer(1, BrokerFeatures({}, None), None)
    rows = list(cluster_snapshot.feature_rows([old]))
    assert [row["missing"] for row in rows] == [cluster_snapshot.NOT_KRAFT, cluster_snapshot.NOBODY]
    assert snapshot_files.settings_of({**row, "timestamp_ms": 1} for row in rows).levels_at(1) is None


def test_the_file_grows_and_gives_topics_end_offsets_and_settings(cluster, tmp_path):
    out = tmp_path / "cluster.jsonl"
    counts = {"topics": 2, "partitions": 3, "groups": 1, "brokers": 2, "features": {"metadata.version": "29"}}
    for _ in range(2):
        result = run_command("snapshot", "kafka://broker:9092", "--out", out, "--json")
        assert json.loads(result.stdout) == {"file": str(out), **counts}
    assert len(out.read_text().splitlines()) == 18
    ends = {partition: end.offset for partition, end in newest_ends(out).items()}
    assert ends == {TopicPartition("orders", 0): 7, TopicPartition("pay", 0): 7}
    history = snapshot_files.read_topics(out)
    assert {(each.name, each.id, each.partitions, each.racks) for each in history.image_at(None).by_name.values()} == {
        ("orders", "-_orders", 2, (("a",), ("a",))),
        ("pay", "-_pay", 1, (("a",),)),
    }
    at = history.last_seen_ms
    assert history.broker_levels(at) == (29, None)  # the broker that did not say may be newer
    assert history.group_config("g", "consumer.session.timeout.ms", at) == "45000"
    assert history.default_assignor(at) == "range"


def changed(row):
    """A row in which brokers have got newer, and the group another timeout."""
    newer = {"30": "31", "45000": "9000"}
    configs = {name: newer.get(value, value) for name, value in (row["configs"] or {}).items()}
    return {**row, "configs": configs or None, "missing": None if row["resource"] == "2" else row["missing"]}


def as_tables(rows, folder):
    """The rows as ``ingest`` stores them."""
    partitions = [{**row, "cluster": "c"} for row in rows if "topic" in row]
    settings = [
        {**row, "cluster": "c", "name": name, "value": value}
        for row in rows
        if "resource" in row
        for name, value in [*(row["configs"] or {}).items(), *([("missing", row["missing"])] if row["missing"] else [])]
    ]
    for table, found in ((END_OFFSETS, partitions), (SNAPSHOT_SETTINGS, settings)):
        write_deltalake(f"{folder}/{table.name}", pa.Table.from_pylist(found, table.schema))


def test_snapshots_in_the_tables_show_what_their_file_shows(cluster, tmp_path):
    rows = [*taken(5), *taken(7)]
    rows += [{**row, "timestamp_ms": 9} for row in taken() if row.get("topic") == "orders"]
    rows += [changed(row) for row in taken(11) if "resource" in row]
    file = tmp_path / "cluster.jsonl"
    snapshot_files.append(file, rows)
    as_tables(rows, tmp_path / "tables")
    found = stored_topics(FolderReader(str(tmp_path / "tables")), "c")
    assert list(found.intervals()) == list(snapshot_files.read_topics(file).intervals())
    assert {each.topic for each in found.intervals()} == {"orders", "pay"}
    told = snapshot_files.read_topics(file)
    assert found.snapshots.levels == told.snapshots.levels == [((29, None), 5, 7), ((31, 31), 11, 11)]
    for time_ms in range(4, 13):
        assert found.broker_levels(time_ms) == told.broker_levels(time_ms)
        assert found.default_assignor(time_ms) == told.default_assignor(time_ms)
        for config in USED_SETTINGS:
            assert found.group_config("g", config, time_ms) == told.group_config("g", config, time_ms)
    timeouts = [told.group_config("g", "consumer.session.timeout.ms", time_ms) for time_ms in (6, 8, 11)]
    assert timeouts == ["45000", None, "9000"]
    assert stored_topics(FolderReader(str(tmp_path / "tables")), "other") is None


@pytest.mark.parametrize(
    ("later", "news_ms"),
    [
        ([], None),
        ([9], 7),  # nothing is new but that what held at 7 goes on
        ([6], -1),  # between snapshots that are known: they have to be read again
    ],
)
def test_groups_since_the_snapshot_before_a_new_one_are_replayed_again(cluster, tmp_path, later, news_ms):
    known = [{**row, "run_id": "1"} for time_ms in (5, 7) for row in taken(time_ms)]
    as_tables([*known, *({**row, "run_id": "2"} for time_ms in later for row in taken(time_ms))], tmp_path)
    assert topic_news_ms(FolderReader(str(tmp_path)), "c", "1", "2") == news_ms


def test_other_topics_in_a_new_snapshot_are_news_for_all_times(cluster, tmp_path):
    rows = [{**row, "run_id": "1"} for row in taken(5)]
    cluster.topics = ("orders",)
    as_tables([*rows, *({**row, "run_id": "2"} for row in taken(7))], tmp_path)
    assert topic_news_ms(FolderReader(str(tmp_path)), "c", "1", "2") == -1


@pytest.mark.parametrize("url", ["broker:9092", "kafka://", "kafka://broker:9092/__consumer_offsets"])
def test_a_wrong_address_is_a_usage_error(url, tmp_path):
    result = run_command("snapshot", url, "--out", tmp_path / "x")
    assert (result.exit_code, result.stderr) == (2, f"error: invalid URL {url!r}: use kafka://HOST:PORT[,HOST:PORT]\n")


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka_reports, "PATIENCE_S", 0.1)
    result = run_command("snapshot", "kafka://127.0.0.1:1", "--out", tmp_path / "x", "--quiet")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: 127.0.0.1:1: ")
    assert "Connection refused" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "contains no snapshot"), ("{}", "line 1 is not a row of a snapshot"), ("x\n", "line 1 is not a row")],
)
def test_a_file_that_is_not_a_snapshot_is_an_error(text, said, tmp_path):
    file = tmp_path / "topics.jsonl"
    file.write_text(text)
    result = run_command("groups", "--topics", file, *(each for log in LOG for each in ("--log", log)))
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
    rows = map(json.loads, text_of_command("audit", "--json", *arguments).splitlines())
    return {(row["group_id"], row["epoch"], row["at"]["offset"]): row["verdict"] for row in rows if "verdict" in row}


@pytest.mark.parametrize("every", [1, 7, 1000])
def test_verdicts_with_snapshots_are_those_of_the_metadata_log_or_unknown(every, tmp_path):
    """A sparse snapshot leaves more unknown, or proves an assignment sound that is identical, and makes none wrong."""
    metadata = [file for file in find_logs([SAMPLE_LOGS]) if file.family is Family.METADATA]
    file = tmp_path / "topics.jsonl"
    snapshot_files.append(file, listed(topic_history(metadata, pytest.fail), every))
    proven = verdicts("--log", str(SAMPLE_LOGS))
    found = verdicts("--topics", str(file), *(each for log in LOG for each in ("--log", log)))
    assert found.keys() == proven.keys()
    weaker = {Verdict.IDENTICAL: Verdict.SOUND}
    differing = {key for key in found if found[key] not in (proven[key], Verdict.UNKNOWN, weaker.get(proven[key]))}
    assert differing == set()
    identical = sum(verdict == Verdict.IDENTICAL for verdict in found.values())
    assert identical >= (0.9 if every == 1 else 0.2) * len(proven)


def with_settings(folder):
    """A file of two snapshots long before and after the samples: brokers of 4.1 whose default is range."""
    file = folder / "settings.jsonl"
    for time_ms in (0, 1 << 50):
        kinds = {"SUPPORTED_FEATURES": {"metadata.version": "27"}, "BROKER": {"group.consumer.assignors": "range"}}
        place = {"resource": "1", "missing": None, "timestamp_ms": time_ms, "cluster_id": "C"}
        snapshot_files.append(file, [{"resource_type": kind, "configs": of, **place} for kind, of in kinds.items()])
    return str(file)


def test_settings_of_snapshots_count_beside_the_metadata_log(tmp_path):
    """Topics come from the metadata log then, and so does the release: brokers have registered there."""
    options = ["--log", str(SAMPLE_LOGS), "--topics", with_settings(tmp_path)]
    result = run_command("audit", "--json", *options)
    assert "settings.jsonl are not used: the logs contain the metadata log" in result.stderr
    rows = [row for row in map(json.loads, result.stdout.splitlines()) if "verdict" in row]
    proven = verdicts("--log", str(SAMPLE_LOGS))
    assert len(rows) == len(proven)
    doubts = [row for row in rows if row["verdict"] != proven[row["group_id"], row["epoch"], row["at"]["offset"]]]
    assert len(doubts) > 3
    assert {(row["verdict"], row["assignor"]) for row in doubts} == {("unknown", "range")}
    described = rows_of_command("describe", "--all", *options)
    assigned = {(each.get("describe_consumer") or {}).get("partitionAssignor") for each in described}
    assert "range" in assigned


@pytest.mark.parametrize(
    ("supported", "asked"),
    [
        ([{}], False),
        ([{"metadata.version": 21}], False),
        ([{"metadata.version": 22}], True),
        ([None], True),
        ([], True),
    ],
)
def test_brokers_before_4_0_are_not_asked_for_configs_of_groups(supported, asked):
    answers = [
        FeatureAnswer(number, None if levels is None else BrokerFeatures(levels, None), None)
        for number, levels in enumerate(supported)
    ]
    assert cluster_snapshot.have_group_configs(answers) is asked
    older = FeatureAnswer(9, BrokerFeatures({"metadata.version": 7}, None), None)
    assert not cluster_snapshot.have_group_configs([*answers, older])
