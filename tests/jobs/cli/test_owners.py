"""``owners``: since when, until when, in which epoch, by which record; and every owner over time."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from jobs.cli.app import app
from jobs.times import parse_time
from tests.jobs.conftest import SAMPLE_LOGS

TOPICS = ["b-range-x1", "a-coop-x8"]


def answer(*arguments):
    result = CliRunner().invoke(app, ["owners", *arguments, "--log", str(SAMPLE_LOGS), "--json"])
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


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


def test_history_and_a_moment_exclude_each_other():
    result = CliRunner().invoke(app, ["owners", "x", "--history", "--at", "0", "--log", str(SAMPLE_LOGS)])
    assert result.exit_code == 2
    assert "either --history or a moment" in result.stderr
