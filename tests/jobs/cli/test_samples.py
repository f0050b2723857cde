"""The shipped sample is what its README says."""

import gzip
import json

import pytest

from tests.commands import run_command, text_of_command
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples"


@pytest.mark.parametrize(
    ("options", "known"),
    [((), "decoded.jsonl.gz"), (("--topic", "__share_group_state"), "decoded_share_state.jsonl.gz")],
)
def test_dump_prints_what_is_known(options, known):
    assert (
        text_of_command("dump", SAMPLES / "logs", *options)
        == gzip.decompress((SAMPLES / "known" / known).read_bytes()).decode()
    )


INCIDENT = SAMPLES / "incident"


def test_the_recorded_incident_has_the_causes_of_the_first_and_its_broker_log_decides_those_that_are_open():
    def kinds(*options):
        return [
            [each["kind"] for each in json.loads(line)["causes"]]
            for line in text_of_command("rebalances", "--group", "B-range-5175", "--json", *options).splitlines()
        ]

    first, again = kinds("--log", SAMPLES / "logs"), kinds("--log", INCIDENT)
    assert again[:-1] == first[:-1]
    told = kinds("--log", INCIDENT, "--broker-log", INCIDENT / "server.log")
    decided = [(before, after) for before, after in zip(again, told, strict=True) if before != after]
    assert decided == [
        (["member_left_or_expired"], ["member_left"]),
        (["member_left_or_expired"], ["member_expired"]),
        (["member_left_or_expired"], ["member_left"]),
        (["member_left_or_expired"], ["member_left"]),
        (["static_member_left"], ["member_expired"]),
    ]


def test_the_timeline_of_a_group_has_the_lines_that_no_record_tells():
    options = ["--log", str(INCIDENT), "--broker-log", str(INCIDENT / "server.log"), "--json"]
    result = run_command("history", "B-range-5175", *options)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["kind"] for row in rows if row["table"] == "broker_events"] == ["coordinator_loaded"]
    shown = run_command("history", "B-range-5175", *options[:-1]).stdout.splitlines()
    assert "coordinator back" in shown[2]
    assert not [line for line in shown if "coordinator away" in line]
