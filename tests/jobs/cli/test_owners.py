"""``owners``: since when, until when, in which epoch, by which record; and every owner over time."""

import json
import shutil
from itertools import pairwise

import pytest

from coordinator_core.history.knowledge import Knowledge
from jobs.formatting import parse_time
from tests.commands import rows_of_command, run_command
from tests.core.builders import GroupLog, consumer_member
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, write_segment

TOPICS = ["b-range-x1", "a-coop-x8"]


def answer(*arguments):
    return rows_of_command("owners", *arguments, "--log", SAMPLE_LOGS)


@pytest.mark.parametrize("topic", TOPICS)
def test_owners_at_a_moment_are_the_intervals_of_the_history_that_hold_then(topic):
    intervals = answer(topic, "--history")
    assert len(intervals) > 5
    moments = sorted({parse_time(each["since"]) for each in intervals})
    for before, after in list(pairwise(moments))[::4]:
        moment = (before + after) // 2
        held = {
            (each["group_id"], each["partition"], each["member_id"], each["since"], each["until"], each["log"])
            for each in answer(topic, "--at", str(moment))
        }
        assert held == {
            (each["group_id"], each["partition"], each["member_id"], each["since"], each["until"], each["log"])
            for each in intervals
            if parse_time(each["since"]) <= moment and (each["until"] is None or parse_time(each["until"]) > moment)
        }


def test_an_owner_comes_with_epoch_since_until_and_the_records_that_prove_it():
    (owner,) = answer("b-range-x1", "0", "--at", "2026-11-21T10:29:17Z")
    shown = {name: owner[name] for name in ("member_id", "epoch", "since", "until", "log", "until_log")}
    assert shown == {
        "member_id": "koilbNHcSWy_NPcjAFkhig",
        "epoch": 6,
        "since": "2026-11-21T10:29:16.038+00:00",
        "until": "2026-11-21T10:29:22.926+00:00",
        "log": "3:101",
        "until_log": "3:148",
    }


def test_the_moment_may_be_an_end_offset_of_the_log():
    (owner,) = answer("b-range-x1", "0", "--at-offset", "3:102")
    assert (owner["epoch"], owner["log"]) == (6, "3:101")
    assert answer("b-range-x1", "0", "--at-offset", "3:101") == []


def test_since_when_and_in_which_epoch_is_unknown_where_records_are_lost(tmp_path):
    """Another member may have had the partition meanwhile. Before a hole by compaction no key is there twice."""
    log = GroupLog()
    generations = [log.classic(number, [consumer_member("a", [0], [0], number)]) for number in (1, 2, 3, 4)]
    for place, given in (("whole", generations), ("cut", [*generations[:2], generations[3]])):
        write_segment(tmp_path / place / "__consumer_offsets-0", [batch(each) for each in given])
    ask = ["owners", "t", "--json", "--log"]
    whole, cut = (json.loads(run_command(*ask, tmp_path / place).stdout) for place in ("whole", "cut"))
    assert (whole["epoch"], whole["since"] is None) == (1, False)
    assert (cut["epoch"], cut["since"], cut["member_id"]) == (None, None, "a")


@pytest.mark.parametrize("over_time", [(), ("--history",)])
@pytest.mark.parametrize(("given", "is_told"), [((0, 1, 3), True), ((0, 1, 2, 3), False)])
def test_what_is_not_known_of_the_past_has_its_reason(tmp_path, monkeypatch, over_time, given, is_told):
    """As of a dump by a consumer, which may lack ends of transactions; also where the moment itself is certain."""
    monkeypatch.setattr(Knowledge, "about_history", lambda known: ["lacks ends"])
    log = GroupLog()
    generations = [log.classic(number, [consumer_member("a", [0], [0], number)]) for number in (1, 2, 3, 4)]
    write_segment(tmp_path / "__consumer_offsets-0", [batch(generations[number]) for number in given])
    asked = run_command("owners", "t", *over_time, "--json", "--log", tmp_path)
    assert asked.stderr.count("lacks ends") == is_told


def test_history_and_a_moment_exclude_each_other():
    result = run_command("owners", "x", "--history", "--at", "0", "--log", SAMPLE_LOGS)
    assert result.exit_code == 2
    assert "either --history or a moment" in result.stderr


# --- a streams group that reads by pattern ---------------------------------------------------------------------------

BY_PATTERN = """
lasts: 3m
cluster: {brokers: 1, partitions: 1, profile: kip-1071}
topics:
  ev-a: {partitions: 3}
  ev-b: {partitions: 5, created: 1m}
  ev-c: {partitions: 2, created: 80s, deleted: 150s}
groups:
  rx: {type: streams, regex: ev-.*, members: 3}
"""


@pytest.fixture(scope="module")
def by_pattern(tmp_path_factory):
    """The folders of a scenario's logs, whole and without the metadata log."""
    at = tmp_path_factory.mktemp("pattern")
    (at / "scenario.yaml").write_text(BY_PATTERN)
    result = run_command("simulate", at / "scenario.yaml", "--out", at / "whole", "--quiet")
    assert result.exit_code == 0, result.stderr
    shutil.copytree(at / "whole" / "__consumer_offsets-0", at / "groups" / "__consumer_offsets-0")
    return at


def asked(folder, *arguments):
    return run_command("owners", *arguments, "--log", folder, "--json")


@pytest.mark.parametrize(
    "question",
    [["ev-never-existed"], ["ev-never-existed", "--history"], ["ev-b", "--at", "2026-01-01T00:00:50Z"], ["ev-c"]],
    ids=" ".join,
)
def test_a_topic_that_is_not_there_has_no_owners_by_pattern(question, by_pattern):
    result = asked(by_pattern / "whole", *question)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"no topic or connector '{question[0]}'" in result.stderr


def test_owners_by_pattern_have_only_partitions_that_the_topic_has(by_pattern):
    def rows(*question):
        found = [json.loads(line) for line in asked(by_pattern / "whole", *question).stdout.splitlines()]
        return [(each["partition"], each["since"] is not None, each["until"]) for each in found]

    assert rows("ev-a") == [(0, True, None), (1, True, None), (2, True, None)]
    older = [(number, False, None) for number in range(3)]
    assert rows("ev-b") == [*older, (3, True, None), (4, True, None)]
    deleted = "2026-01-01T00:02:30.000+00:00"
    assert rows("ev-c", "--at", "2026-01-01T00:02:00Z") == [(0, False, deleted), (1, False, deleted)]
    assert rows("ev-c", "--history") == rows("ev-c", "--at", "2026-01-01T00:02:00Z")


def test_without_topics_it_is_unknown_what_tasks_read_by_pattern(by_pattern):
    result = asked(by_pattern / "groups", "ev-b")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["role"], each["partition"], each["since"]) for each in found] == [("unknown", None, None)] * 3
    assert "no topics are known of that moment" in result.stderr
    assert asked(by_pattern / "groups", "ev-b", "--history").stdout == ""
