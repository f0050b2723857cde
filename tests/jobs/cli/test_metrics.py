"""Metrics: what a Prometheus server reads from them is what the other commands answer."""

import json
import shutil
import subprocess
from collections import Counter
from datetime import datetime

import pytest
import yaml
from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as families

from coordinator_core.audit.finding_rows import FindingKind, make_finding
from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.groups.certainty import Certainty
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.records import Family, LogPosition
from jobs.metrics.families import PARTITION_STATUS, GroupFacts, MetricNames
from jobs.sources.log_reader import LogReader
from tests.commands import run_command, text_of_command
from tests.core.builders import GroupLog
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, write_segment
from tests.matrix.removals import without_topic
from tests.shared_data import ROOT

LOG = ["--log", str(SAMPLE_LOGS)]
ALERTS = ROOT / "docs" / "howto" / "alert-rules.yml"
PROMTOOL = shutil.which("promtool")


def run(*arguments):
    return text_of_command(*arguments, *LOG)


def samples(text, parse=families):
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()) if value != "default")): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def test_metrics_are_what_groups_rebalances_and_offsets_answer():
    read = samples(run("metrics"))
    groups = [json.loads(line) for line in run("groups", "--json").splitlines()]
    assert len(groups) > 20
    for group in groups:
        name = group["group"]
        group_type = group["type"] or "unknown"
        assert read["coordinator_audit_group_info", name, group["state"] or "unknown", group_type] == 1
        assert read.get(("coordinator_audit_group_members", name, group_type)) == group["members"]
        assert read.get(("coordinator_audit_group_epoch", name, group_type)) == group["epoch"]
    rebalances = [json.loads(line) for line in run("rebalances", "--json").splitlines()]
    counted = sum(value for key, value in read.items() if key[0] == "coordinator_audit_rebalances_total")
    assert counted == len(rebalances) > 100
    offsets = [json.loads(line) for line in run("offsets", "A-coop-a2d7", "--json").splitlines()]
    committed = {
        (each["topic"], each["partition"]): each["offset"] for each in offsets if each["status"] == "committed"
    }
    of_group = {key: value for key, value in read.items() if "A-coop-a2d7" in key and key[0].endswith("group_offset")}
    assert of_group == {
        ("kafka_consumergroup_group_offset", "A-coop-a2d7", str(partition), topic): offset
        for (topic, partition), offset in committed.items()
    }


def test_each_state_of_each_type_has_a_sample():
    read = samples(run("metrics"))
    groups = [json.loads(line) for line in run("groups", "--json").splitlines()]
    states = Counter((each["state"] or "unknown", each["type"] or "unknown") for each in groups)
    counted = {key[1:]: value for key, value in read.items() if key[0] == "coordinator_audit_groups"}
    assert {key: value for key, value in counted.items() if value} == states
    assert counted["NOT_READY", "STREAMS"] == 0
    assert ("PREPARING_REBALANCE", "CLASSIC") not in counted, "which no log shows"


def test_the_names_of_brokers_count_groups_and_rebalances():
    read = samples(run("metrics", "--names", "kafka"))
    prefix = "kafka_server_group_coordinator_metrics_"
    groups = [json.loads(line) for line in run("groups", "--json").splitlines()]
    rebalances = [json.loads(line) for line in run("rebalances", "--json").splitlines()]
    for name in ("consumer", "share", "streams", "classic"):
        of_type = [each for each in groups if each["type"] == name.upper()]
        assert read[f"{prefix}group_count", name] == len(of_type)
        by_state = {key[1]: value for key, value in read.items() if key[0] == f"{prefix}{name}_group_count"}
        states = Counter(each["state"] or "unknown" for each in of_type)
        assert {state.upper(): count for state, count in by_state.items() if count} == {
            state.upper(): count for state, count in states.items()
        }
        counted = sum(each["group_type"] == name.upper() for each in rebalances)
        sensor = "group_completed" if name == "classic" else f"{name}_group"
        assert read[(f"{prefix}{sensor}_rebalance_count",)] == counted
    streams = {key[1] for key in read if key[0] == f"{prefix}streams_group_count"}
    assert streams == {"empty", "not_ready", "assigning", "reconciling", "stable", "dead", "unknown"}
    assert read[f"{prefix}group_count", "connect"] == 0
    assert not [key for key in read if key[0].startswith("kafka_consumergroup")]


def test_metrics_at_a_moment():
    rows = sorted(
        (json.loads(line) for line in run("rebalances", "--json").splitlines()),
        key=lambda row: row["at"]["timestamp_ms"],
    )
    chosen = next(
        row
        for row in rows[len(rows) // 2 :]
        if (row["finished"] or row["at"])["timestamp_ms"] > row["at"]["timestamp_ms"]
    )
    moment = chosen["at"]["timestamp_ms"]
    text = run("metrics", "--names", "kafka", "--at", str(moment))
    read = samples(text)
    past = [row for row in rows if row["at"]["timestamp_ms"] <= moment]
    assert read[("coordinator_audit_moment_timestamp_seconds",)] == moment / 1000
    counts = {key: value for key, value in read.items() if key[0] == "coordinator_audit_rebalances_total"}
    assert sum(counts.values()) == len(past) < len(rows)
    assert counts["coordinator_audit_rebalances_total", chosen["group_id"], "open", chosen["group_type"]] == 1
    kind = chosen["group_type"].lower()
    recent = sum(
        row["at"]["timestamp_ms"] > moment - 60_000 and row["group_type"] == chosen["group_type"] for row in past
    )
    assert read[(f"kafka_server_group_coordinator_metrics_{kind}_group_rebalance_rate",)] == pytest.approx(recent / 60)
    groups = [json.loads(line) for line in run("groups", "--json", "--at", str(moment)).splitlines()]
    assert sum(value for key, value in read.items() if key[0] == "coordinator_audit_groups") == len(groups)
    assert not [key for key in read if key[0] == "coordinator_audit_finding_score"]


def test_openmetrics_has_the_same_samples():
    assert samples(run("metrics", "--format", "openmetrics"), openmetrics_families) == samples(run("metrics"))


def test_a_file_appears_whole(tmp_path):
    out = tmp_path / "coordinator.prom"
    out.write_text("older\n")
    assert run("metrics", "--out", str(out)) == ""
    assert samples(out.read_text(encoding="utf-8")) == samples(run("metrics"))
    assert list(tmp_path.iterdir()) == [out]


def a_group(group_id, offsets, **certainty):
    at = LogPosition(0, 1, 2)
    commits = {
        TopicPartition(topic, partition): Commit(offset, -1, "", 5, None, None, at)
        for (topic, partition), offset in offsets.items()
    }
    return GroupThen(Group(group_id), GroupOffsets(commits), Certainty(**certainty))


def of_facts(names, groups, ends):
    facts = GroupFacts("c", [names], groups, {TopicPartition(*key): EndOffset(0, end) for key, end in ends.items()})
    return samples(exposition.generate_latest(facts.registry()).decode())


@pytest.mark.parametrize(
    ("names", "lag", "total"),
    [
        (MetricNames.LAG_EXPORTER, "kafka_consumergroup_group_lag", "kafka_consumergroup_group_sum_lag"),
        (MetricNames.BURROW, "burrow_kafka_consumer_partition_lag", "burrow_kafka_consumer_lag_total"),
        (
            MetricNames.KMINION,
            "kminion_kafka_consumer_group_topic_partition_lag",
            "kminion_kafka_consumer_group_topic_lag",
        ),
    ],
)
def test_lag_has_a_sum_only_where_every_end_is_known(names, lag, total):
    group = a_group("g", {("t", 0): 10, ("t", 1): 20})
    whole = of_facts(names, [group], {("t", 0): 15, ("t", 1): 18})
    assert sorted(value for key, value in whole.items() if key[0] == lag) == [0, 5]
    assert [value for key, value in whole.items() if key[0] == total] == [5]
    partly = of_facts(names, [group], {("t", 0): 15})
    assert [value for key, value in partly.items() if key[0] == lag] == [5]
    assert not [key for key in partly if key[0] == total]


def point(group_id, partition, status):
    known = dict.fromkeys(LagPoint._fields)
    return LagPoint(**{**known, "group_id": group_id, "topic": "t", "partition": partition, "status": status})


@pytest.mark.parametrize(
    ("statuses", "of_partitions", "of_group"),
    [
        (["OK", "OK"], [1, 1], 1),
        (["OK", "WARN"], [1, 2], 2),
        (["STOP", "WARN"], [4, 2], 3),
        (["STALL", "UNKNOWN"], [5], 3),  # nothing is worse than ERR
        (["REWIND"], [6], 3),
        (["OK", "UNKNOWN"], [1], None),
        (["WARN", "UNKNOWN"], [2], None),
        ([], [], None),
    ],
)
def test_the_status_has_burrows_numbers(statuses, of_partitions, of_group):
    lag = [point("g", number, status) for number, status in enumerate(statuses)]
    facts = GroupFacts("c", [MetricNames.BURROW], [], {TopicPartition("t", 0): EndOffset(0, 7)}, lag=lag)
    read = samples(exposition.generate_latest(facts.registry()).decode())
    assert [value for key, value in read.items() if key[0] == "burrow_kafka_topic_partition_status"] == of_partitions
    assert read.get(("burrow_kafka_consumer_status", "c", "g")) == of_group
    assert read["burrow_kafka_topic_partition_offset", "c", "0", "t"] == 7


def test_the_status_is_that_of_the_newest_snapshot(tmp_path):
    rows = [json.loads(line) for line in run("offsets", "A-coop-a2d7", "--json").splitlines()]
    last_ms = max(int(datetime.fromisoformat(row["committed"]).timestamp() * 1000) for row in rows)
    ends = tmp_path / "ends.jsonl"
    with ends.open("w", encoding="utf-8") as out:
        for time_ms, more in ((last_ms - 10_000, 0), (last_ms, 5)):
            for row in rows:
                end = {"timestamp_ms": time_ms, "end_offset": (row["offset"] or 0) + more}
                out.write(json.dumps({"topic": row["topic"], "partition": row["partition"], **end}) + "\n")
    read = samples(run("metrics", "--names", "burrow", "--end-offsets", str(ends)))
    asked = run("offsets", "A-coop-a2d7", "--lag-history", "--end-offsets", str(ends), "--json").splitlines()
    newest = {(each["topic"], each["partition"]): each["status"] for each in map(json.loads, asked)}
    found = {
        (key[3], int(key[2])): value
        for key, value in read.items()
        if key[0] == "burrow_kafka_topic_partition_status" and key[1] == "A-coop-a2d7"
    }
    assert found == {key: PARTITION_STATUS[status] for key, status in newest.items() if status in PARTITION_STATUS}
    assert set(newest.values()) - {"OK"}


def test_an_offset_that_the_log_does_not_prove_has_no_sample():
    partition = TopicPartition("t", 0)
    group = a_group("g", {("t", 0): 10, ("t", 1): 20}, unknown_offsets=frozenset({partition}))
    read = of_facts(MetricNames.LAG_EXPORTER, [group], {})
    assert [key for key in read if key[0] == "kafka_consumergroup_group_offset"] == [
        ("kafka_consumergroup_group_offset", "c", "g", "1", "t")
    ]


def test_findings_about_deliveries_rest_on_the_share_state_log(tmp_path):
    """Without it none is found, and no one may take that for an all-clear."""
    shutil.copytree(SAMPLE_LOGS, tmp_path / "logs")
    for lacks in (False, True):
        if lacks:
            without_topic("__share_group_state")(tmp_path / "logs")
        result = run_command("metrics", "--log", tmp_path / "logs")
        assert samples(result.stdout)[("coordinator_audit_logs_complete",)] == (0 if lacks else 1)
        assert ("the share state log (__share_group_state) was not given" in result.stderr) == lacks


def test_a_share_group_and_a_connect_group_of_one_id_have_series_of_their_own():
    """They live in two logs. A series that comes twice makes Prometheus refuse the whole page."""
    shared, workers = Group("g"), Group("g", family=Family.CONNECT)
    shared.state, workers.state = ShareGroup(group_epoch=7), ConnectGroup(group_epoch=9)
    groups = [GroupThen(each, GroupOffsets({}), Certainty()) for each in (shared, workers)]
    facts = GroupFacts("c", list(MetricNames), groups)
    for text, parse in (
        (exposition.generate_latest(facts.registry()), families),
        (openmetrics_exposition.generate_latest(facts.registry()), openmetrics_families),
    ):
        series = [
            (sample.name, *sorted(sample.labels.items()))
            for family in parse(text.decode())
            for sample in family.samples
        ]
        assert len(series) == len(set(series))
    read = samples(exposition.generate_latest(facts.registry()).decode())
    assert read["coordinator_audit_group_epoch", "c", "g", "SHARE"] == 7
    assert read["coordinator_audit_group_epoch", "c", "g", "CONNECT"] == 9


@pytest.mark.parametrize("names", MetricNames)
def test_a_group_in_two_partitions_of_the_log_has_each_series_once(names):
    """Once the log has more partitions, the records of some groups go to another one; the old ones stay."""
    before, now = (a_group("g", {("t", 0): offset}) for offset in (10, 20))
    facts = GroupFacts("c", [names], [before, now], {TopicPartition("t", 0): EndOffset(0, 25)})
    lines = exposition.generate_latest(facts.registry()).decode().splitlines()
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    if names is MetricNames.LAG_EXPORTER:
        read = samples("\n".join(lines) + "\n")
        assert read["kafka_consumergroup_group_lag", "c", "g", "0", "t"] == 5


def test_hostile_names_stay_one_label():
    name = 'a"b\\c\nd} 7'
    read = of_facts(MetricNames.LAG_EXPORTER, [a_group(name, {(name, 0): 10})], {})
    assert read["kafka_consumergroup_group_offset", "c", name, "0", name] == 10


def test_the_example_dashboard_asks_for_metrics_that_exist():
    dashboard = json.loads((ROOT / "docs" / "howto" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    known = {line.split()[2] for line in run("metrics").splitlines() if line.startswith("# TYPE ")}
    assert len(asked) >= 6
    assert "Rebalances now" in {panel["title"] for panel in dashboard["panels"]}
    for expression in asked:
        assert any(name in expression for name in known), expression


def test_the_example_alerts_ask_for_metrics_that_exist():
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    asked = {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}
    known = {line.split()[2] for line in run("metrics").splitlines() if line.startswith("# TYPE ")}
    without_ends = {"kafka_consumergroup_group_sum_lag"}
    assert len(asked) >= 5
    for alert, expression in asked.items():
        assert any(name in expression for name in known | without_ends), alert


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
@pytest.mark.parametrize("names", MetricNames)
def test_promtool_accepts_the_metrics(names):
    printed = run("metrics", "--names", names.value)
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=printed, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_accepts_the_example_alerts():
    checked = subprocess.run([PROMTOOL, "check", "rules", ALERTS], text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_findings_that_go_on_are_counted_by_their_level():
    found = [
        make_finding(kind, 1, 1, "", [], since_ms=1, until_ms=2, group_id=group_id, is_open=is_open, complete=True)
        for kind, group_id, is_open in (
            (FindingKind.UNASSIGNED_PARTITIONS, "g", True),
            (FindingKind.UNASSIGNED_PARTITIONS, "g", True),
            (FindingKind.UNASSIGNED_PARTITIONS, "g", False),
            (FindingKind.SLOW_REBALANCE, "g", False),
            (FindingKind.COORDINATOR_AWAY, None, True),
        )
    ]
    facts = GroupFacts("c", [MetricNames.LAG_EXPORTER], [], {}, findings=found)
    read = samples(exposition.generate_latest(facts.registry()).decode())
    assert {key[2:]: value for key, value in read.items() if key[0] == "coordinator_audit_findings_open"} == {
        ("g", "unassigned_partitions", "alarm"): 2,
        ("g", "slow_rebalance", "warning"): 0,
        ("", "coordinator_away", "alarm"): 1,
    }


@pytest.mark.parametrize("names", [MetricNames.KMINION, MetricNames.KAFKA])
def test_names_that_prometheus_keeps_for_histograms_have_no_type(names):
    types = [line.split()[2:] for line in run("metrics", "--names", names.value).splitlines() if "# TYPE" in line]
    kept = {kind for name, kind in types if name.endswith(("_count", "_sum", "_bucket"))}
    assert kept == {"untyped"}


def test_the_cluster_is_that_of_the_answers_and_the_logs_are_read_twice(monkeypatch):
    passes = []
    read = LogReader.batches

    def counted(reader):
        passes.append(str(reader))
        return read(reader)

    monkeypatch.setattr(LogReader, "batches", counted)
    monkeypatch.setenv("COORDINATOR_AUDIT_CLUSTER", "prod")
    assert 'cluster_name="prod"' in run("metrics")
    assert passes.count("__consumer_offsets-0") == 2


def test_a_commit_beyond_the_end_is_a_negative_lag_and_a_finding(tmp_path):
    write_segment(tmp_path / "logs" / "__consumer_offsets-0", [batch(GroupLog("g").commit("t", 0, 100))])
    (tmp_path / "ends.txt").write_text("t:0:90\n")
    words = ["metrics", "--log", str(tmp_path / "logs"), "--end-offsets", str(tmp_path / "ends.txt")]
    text = run_command(*words).stdout
    assert 'kafka_consumergroup_group_lag{cluster_name="default",group="g",partition="0",topic="t"} -10.0' in text
    assert 'kind="committed_beyond_end",level="alarm"} 1.0' in text
