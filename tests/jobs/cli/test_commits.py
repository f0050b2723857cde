"""``commits``: the steps of committed offsets on a real log, against what the test's clients did."""

import gzip
import json

import pytest

from tests.commands import run_command
from tests.jobs.conftest import ROOT, SAMPLE_LOGS


def run(*arguments):
    return run_command(*arguments, "--log", SAMPLE_LOGS)


def steps(*arguments):
    result = run("commits", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def events():
    with gzip.open(ROOT / "data" / "samples" / "known" / "events.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_offsets_that_a_request_deleted_are_told_from_those_of_a_deleted_group(events):
    deleted = [each for each in events if each["event"] == "offsets-delete"]
    assert len(deleted) == 3
    for event in deleted:
        removed = [row for row in steps(event["group"]) if row["cause"] == "offsets deleted"]
        assert [f"[{row['topic']}-{row['partition']}]" for row in removed] == [event["tps"]]
        assert abs(removed[0]["since"]["timestamp_ms"] - event["ts"]) < 1_000
    for event in (each for each in events if each["event"] == "group-delete"):
        assert "group deleted" in {row["cause"] for row in steps(event["group"])}


def test_options_choose_steps_by_partition_and_time():
    every = steps("A-coop-a2d7")
    chosen = steps("A-coop-a2d7", "--topic", "a-coop-x8", "--partition", "1")
    assert chosen == [row for row in every if (row["topic"], row["partition"]) == ("a-coop-x8", 1)]
    middle = chosen[1]["since"]["timestamp_ms"]
    assert steps("A-coop-a2d7", "--topic", "a-coop-x8", "--partition", "1", "--until", str(middle)) == chosen[:2]
    later = steps("A-coop-a2d7", "--topic", "a-coop-x8", "--partition", "1", "--since", str(middle + 1))
    assert later == [row for row in chosen if row["until"]["timestamp_ms"] > middle]


def test_what_is_not_there_is_an_error():
    assert "no history of group 'nobody'" in run("commits", "nobody").stderr
    result = run("commits", "A-coop-a2d7", "--topic", "nothing")
    assert (result.exit_code, result.stdout) == (1, "")


def test_a_timeline_has_first_commits_removals_and_offsets_that_went_back():
    lines = run("history", "A-topicdel").stdout
    assert "first commits" in lines
    assert "cause topic deleted" in lines
    assert "offsets rewound" in run("history", "C-classic").stdout
    rows = [json.loads(line) for line in run("history", "A-topicdel", "--json").stdout.splitlines()]
    kinds = [row["kind"] for row in rows if row["table"] == "commit_steps"]
    assert sorted(kinds) == ["first", "first", "first", "removed", "removed"]
