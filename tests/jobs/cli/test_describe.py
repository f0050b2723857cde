"""The commands that look at log folders directly, from segment files to what is printed."""

import json
import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.control import COMMIT
from jobs.cli.describe import _limited
from tests.commands import rows_of_command, run_command
from tests.core.builders import GroupLog, classic_member
from tests.core.random_coordinator import RandomCoordinator, segment
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, marker, write_segment
from tests.shared_data import ROOT

ORDERS = "b3JkZXJzIHRvcGljIGlkIQ"
ASSIGNMENT = bytes.fromhex("0001 00000001 0006 6f7264657273 00000002 00000000 00000001 ffffffff")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A consumer group that grows by a member, a classic group, a simple group with a transaction; and the topic."""
    log = GroupLog("payments")
    first = log.join("a", 2, {ORDERS: [0, 1]})
    second = [
        log.member("b"),
        log.epoch(3),
        log.target("a", {ORDERS: [0]}),
        log.target("b", {ORDERS: [1]}),
        log.target_epoch(3),
        log.current("b", 3, state=2),
        log.current("a", 2, {ORDERS: [0]}, {ORDERS: [1]}, state=1),
    ]
    write_segment(tmp_path / "__consumer_offsets-0", [batch(*first), batch(*second)])
    billing, simple = GroupLog("billing"), GroupLog("simple")
    classic = billing.classic(1, [classic_member("c", b"\x00", ASSIGNMENT)])
    simple.offset = 1
    commit, pending = simple.commit("orders", 0, 5), simple.commit("orders", 0, 9)
    write_segment(
        tmp_path / "__consumer_offsets-1",
        [batch(classic), batch(commit), batch(pending, producer_id=7), marker(COMMIT, 7, 3, 3_000)],
    )
    write_segment(tmp_path / "__cluster_metadata-0", [batch(*topic_records(), family=Family.METADATA)])
    return tmp_path


def topic_records() -> list[CoordinatorRecord]:
    topic = {"name": "orders", "topicId": ORDERS}
    partitions = [
        {
            "partitionId": partition,
            "topicId": ORDERS,
            "replicas": [1],
            "isr": [1],
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": 1,
            "leaderRecoveryState": 0,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
        }
        for partition in (0, 1)
    ]
    values = [(2, topic), *((3, partition) for partition in partitions)]
    return [
        CoordinatorRecord(LogPosition(0, offset, 0), kind, {}, value, 0) for offset, (kind, value) in enumerate(values)
    ]


def test_groups(folder: Path) -> None:
    assert [
        (each["group"], each["type"], each["state"], each["epoch"])
        for each in rows_of_command("groups", "--log", folder)
    ] == [
        ("billing", "CLASSIC", "STABLE", 1),
        ("payments", "CONSUMER", "RECONCILING", 3),
        ("simple", "CLASSIC", "EMPTY", None),
    ]


def test_groups_of_a_type_or_a_state(folder: Path) -> None:
    def listed(*options: str) -> list[str]:
        return [line["group"] for line in rows_of_command("groups", "--log", folder, *options)]

    assert listed("--type", "consumer") == ["payments"]
    assert listed("--type", "classic", "--state", "Stable") == ["billing"]
    assert listed("--state", "empty,reconciling") == ["payments", "simple"]
    assert listed("--state", "not_ready") == []
    wrong = run_command("groups", "--log", folder, "--state", "gone")
    assert wrong.exit_code == 2
    assert "invalid --state 'gone': use EMPTY, ASSIGNING" in wrong.stderr
    for state, way_out in (("dead", "the command history"), ("PreparingRebalance", "when a rebalance ends")):
        not_shown = run_command("groups", "--log", folder, "--state", f"{state},stable")
        assert not_shown.exit_code == 0
        assert f"no record shows a group in state {state.upper()}" in not_shown.stderr
        assert way_out in " ".join(not_shown.stderr.split())
        assert "billing" in not_shown.stdout
    assert listed("--state", "dead") == []


@pytest.mark.parametrize(
    ("wanted", "listed", "warned"),
    [
        ({"EMPTY"}, ["a"], ["the state of 1 groups is unknown: they are not listed"]),
        ({"EMPTY", "UNKNOWN"}, ["a", "c"], []),
    ],
)
def test_groups_whose_state_is_unknown_are_left_out_with_a_word_unless_they_are_asked_for(
    wanted: set[str], listed: list[str], warned: list[str]
) -> None:
    told: list[str] = []
    source: Any = SimpleNamespace(console=SimpleNamespace(warn=told.append))
    listing: Any = [{"group": name, "state": state} for name, state in (("a", "Empty"), ("b", "Stable"), ("c", None))]
    assert [line["group"] for line in _limited(source, listing, "state", wanted)] == listed
    assert told == warned


def test_describe_now_and_at_an_offset_and_at_a_time(folder: Path) -> None:
    (now,) = rows_of_command("describe", "payments", "--log", folder)
    described = now["describe_consumer"]
    assert (described["groupEpoch"], described["groupState"]) == (3, "RECONCILING")
    held = {each["consumerId"]: each["assignment"]["topicPartitions"] for each in described["members"]}
    assert held == {"a": ["orders-0", "orders-1"], "b": []}
    for moment in (("--at-offset", "0:5"), ("--at", "4000"), ("--at", "1970-01-01T00:00:04.5Z")):
        (then,) = rows_of_command("describe", "payments", "--log", folder, *moment)
        assert then["describe_consumer"]["groupState"] == "STABLE", moment
        assert [each["consumerId"] for each in then["describe_consumer"]["members"]] == ["a"]


def test_an_offset_inside_a_batch_and_one_beyond_the_end(folder: Path) -> None:
    (then,) = rows_of_command("describe", "payments", "--log", folder, "--at-offset", "0:7")
    assert (then["describe_consumer"]["groupState"], len(then["describe_consumer"]["members"])) == ("ASSIGNING", 2)
    at_the_end = ("--at-offset", "0:12", "--at-offset", "1:4")
    assert rows_of_command("describe", "--all", "--log", folder, *at_the_end) == rows_of_command(
        "describe", "--all", "--log", folder
    )
    result = run_command("describe", "payments", "--log", folder, "--at-offset", "0:13", "--json")
    assert "from these offsets on the log is complete: __consumer_offsets-0 13 (lost up to 12)" in result.stderr, (
        "what was at 12 is not there"
    )
    assert json.loads(result.stdout)["certainty"] == "possibly there"


def test_a_topic_that_ends_after_the_offset_is_still_there(folder: Path) -> None:
    removal = CoordinatorRecord(LogPosition(0, 3, 4_500), 9, {}, {"topicId": ORDERS}, 0)
    nothing = CoordinatorRecord(LogPosition(0, 4, 60_000), 20, {}, {}, 0)
    batches = [batch(*each, family=Family.METADATA) for each in (topic_records(), [removal], [nothing])]
    write_segment(folder / "__cluster_metadata-0", batches)
    for moment, named in (
        (("--at-offset", "0:5"), True),
        (("--at", "4400"), True),
        (("--at", "4600"), False),
        ((), False),
    ):
        (then,) = rows_of_command("describe", "payments", "--log", folder, *moment)
        held = then["describe_consumer"]["members"][0]["assignment"]["topicPartitions"]
        assert held == (["orders-0", "orders-1"] if named else []), moment


def test_describe_all_gives_one_line_for_each_group(folder: Path) -> None:
    described = rows_of_command("describe", "--all", "--log", folder / "__consumer_offsets-1")
    assert [each["group"] for each in described] == ["billing", "simple"]
    member = described[0]["describe_classic"]["members"][0]
    assert member["assignment"] == {"topicPartitions": ["orders-0", "orders-1"]}
    assert described[1]["offsets"] == {"orders-0": {"leaderEpoch": None, "metadata": "", "offset": 9}}


def test_offsets_before_and_after_the_end_of_a_transaction(folder: Path) -> None:
    before = rows_of_command("offsets", "simple", "--log", folder, "--at-offset", "1:3")
    assert [(each["status"], each["offset"]) for each in before] == [("committed", 5), ("pending", 9)]
    after = rows_of_command("offsets", "simple", "--log", folder)
    assert [(each["status"], each["offset"], each["logOffset"]) for each in after] == [("committed", 9, 2)]


def test_owners(folder: Path) -> None:
    held = rows_of_command("owners", "orders", "--log", folder)
    assert [(each["partition"], each["group_id"], each["member_id"], each["role"]) for each in held] == [
        (0, "billing", "c", "assigned"),
        (0, "payments", "a", "assigned"),
        (1, "billing", "c", "assigned"),
        (1, "payments", "a", "revoking"),
    ]
    assert [each["partition"] for each in rows_of_command("owners", "orders", 1, "--log", folder)] == [1, 1]


def test_tables_for_people(folder: Path) -> None:
    for command in (["groups"], ["describe", "--all"], ["offsets", "simple"], ["owners", "orders"]):
        result = run_command(*command, "--log", folder)
        assert result.exit_code == 0
    described = run_command("describe", "payments", "--log", folder).stdout
    assert "RECONCILING" in described
    assert "orders 0-1" in described


def test_a_streams_group_has_its_subtopologies() -> None:
    table = run_command("describe", "E-count", "--log", ROOT / "data" / "samples" / "logs").stdout
    assert "subtopologies (1)" in table
    assert "e-in2\tE-count-cnt-changelog (4)" in table


def test_without_the_metadata_log_topics_have_ids(folder: Path) -> None:
    (described,) = rows_of_command("describe", "payments", "--log", folder / "__consumer_offsets-0")
    held = [each["assignment"]["topicPartitions"] for each in described["describe_consumer"]["members"]]
    assert held == [[f"{ORDERS}-0", f"{ORDERS}-1"], []]


def test_overlapping_dumps_count_once(folder: Path) -> None:
    once = rows_of_command("describe", "--all", "--log", folder)
    assert rows_of_command("describe", "--all", "--log", folder, "--log", folder / "__consumer_offsets-0") == once


def test_the_logs_of_two_clusters_are_not_mixed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    once = rows_of_command("describe", "--all", "--log", folder)
    other = tmp_path_factory.mktemp("other") / "__consumer_offsets-0"
    foreign = GroupLog("foreign")
    write_segment(other, [batch(*foreign.join("z", 2, {ORDERS: [0]}), *foreign.join("y", 3, {ORDERS: [1]}))])
    write_segment(other, [batch(*foreign.join("x", 4, {ORDERS: [1]}))], base_offset=foreign.offset)
    result = run_command("describe", "--all", "--json", "--log", folder, "--log", other)
    assert [json.loads(line) for line in result.stdout.splitlines()] == once
    assert result.stderr.count("this is another log, and left out") == 1


def test_two_metadata_logs_are_of_two_clusters(tmp_path: Path) -> None:
    """A controller changes nothing that it wrote, and logs of groups that only one cluster has would be mixed."""
    for name, other in (("logs", SAMPLE_LOGS), ("other", SAMPLE_LOGS.parent / "incident")):
        shutil.copytree(other / "__cluster_metadata-0", tmp_path / name / "__cluster_metadata-0")
    shutil.copytree(SAMPLE_LOGS / "__consumer_offsets-0", tmp_path / "logs" / "__consumer_offsets-0")
    shutil.copytree(SAMPLE_LOGS.parent / "incident" / "__consumer_offsets-3", tmp_path / "other/__consumer_offsets-3")
    result = run_command("groups", "--log", tmp_path)
    assert result.exit_code == 1
    assert "of another cluster; give the logs of one cluster at a time" in " ".join(result.stderr.split())


def test_a_damaged_batch_is_told_and_left_out(folder: Path) -> None:
    path = folder / "__consumer_offsets-1" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    result = run_command("offsets", "simple", "--log", folder)
    assert result.exit_code == 0
    assert f"{path} at byte" in result.stderr
    (left,) = rows_of_command("offsets", "simple", "--log", folder)
    assert (left["status"], left["offset"]) == ("unknown", None), "the marker was in the damaged batch"
    assert result.stderr.count("the log lacks records, and this answer lacks what they said") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("describe", "nobody"), 1, "error: no group 'nobody' at the end of these logs"),
        (("owners", "nothing"), 1, "error: no trace of a topic or connector 'nothing' at the end of these logs"),
        (("describe", "payments", "--end-offsets", "/no/file"), 1, "error: /no/file: No such file or directory"),
        (("groups", "--at", "yesterday"), 2, "'yesterday': use ISO 8601"),
        (("groups", "--at-offset", "0"), 2, "'0': use PARTITION:OFFSET"),
        (("groups", "--at-offset", "0:1", "--at-offset", "0:2"), 2, "names partition 0 twice"),
    ],
)
def test_what_cannot_be_answered_is_one_line(folder: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run_command(*arguments, "--log", folder)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_all_groups_are_a_line_each_for_people_too(folder: Path) -> None:
    result = run_command("describe", "--all", "--log", folder)
    described = {each["group"]: each for each in rows_of_command("describe", "--all", "--log", folder)}
    assert result.stdout.startswith(f"groups ({len(described)})")
    rows = {words[0]: words for line in result.stdout.splitlines() if (words := line.split()) and words[0] in described}
    assert rows.keys() == described.keys()
    for group_id, each in described.items():
        assert rows[group_id][1] == each["listing"]["type"]
        assert rows[group_id][-1] == str(len(each["offsets"]) if not each["unknownOffsets"] else "unknown")


def test_either_a_group_or_all(folder: Path) -> None:
    assert run_command("describe", "--log", folder).exit_code == 2
    assert run_command("describe", "payments", "--all", "--log", folder).exit_code == 2


def test_lag_where_end_offsets_are_given(folder, tmp_path):
    ends = tmp_path / "ends.jsonl"
    rows = [{"topic": "orders", "partition": 0, "timestamp_ms": time, "end_offset": 5 + time} for time in (20, 10)]
    ends.write_text("\n".join(map(json.dumps, rows)))
    (line,) = rows_of_command("offsets", "simple", "--log", folder, "--end-offsets", ends)
    assert (line["endOffset"], line["lag"]) == (25, 25 - line["offset"])
    (line,) = rows_of_command("offsets", "simple", "--log", folder)
    assert (line["endOffset"], line["lag"]) == (None, None)
    ends.write_text('{"topic": "orders"}')
    assert "partition is missing" in run_command("offsets", "simple", "--log", folder, "--end-offsets", ends).stderr


def test_a_connect_group_of_a_log_of_its_own_says_what_is_certain(tmp_path: Path) -> None:
    log = RandomCoordinator(Random(7), Family.CONNECT).run(12)
    folder = tmp_path / "__worker_offsets-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(segment(log, Family.CONNECT))
    described = rows_of_command("describe", "--all", "--log", tmp_path)
    assert {each["certainty"] for each in described} == {"certain"}
    assert not any("offsets" in each for each in described)
    for each in described:
        assert run_command("describe", each["group"], "--log", tmp_path).exit_code == 0
