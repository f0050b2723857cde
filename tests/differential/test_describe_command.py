"""The command ``describe`` on the recorded segments, as a user runs it, says what the broker's Admin client said."""

import json
from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.groups.describe import POSSIBLY_THERE
from tests.commands import text_of_command
from tests.differential.checkpoints import Difference, Tally, compare_groups
from tests.differential.decoded import Line, read_lines
from tests.differential.test_checkpoints import reason, rebalancing_groups
from tests.shared_data import CORPUS

EVERY = 7
"""Which of the stable checkpoints are looked at; the last one is in any case."""


def described(logs: Path, checkpoint: Line) -> dict[str, Line]:
    arguments = ["describe", "--all", "--json", "--log", str(logs)]
    for partition, end in checkpoint["co_end"].items():
        arguments += ["--at-offset", f"{partition}:{end}"]
    lines = [json.loads(line) for line in text_of_command(*arguments).splitlines()]
    return {line.pop("group"): line for line in lines}


def explained(difference: Difference, rebalancing: set[tuple[str, str]]) -> str | None:
    """Why the logs cannot know this: beyond ``reason``, the end of a data partition, and so the lag; and the brokers'
    settings.
    """
    if difference.part == "describe_consumer" and difference.log == {**difference.admin, "partitionAssignor": None}:
        return "no snapshot shows the brokers' assignors"
    if difference.part == "share_offsets" and difference.log is not None:
        said = {name: each and {**each, "lag": None} for name, each in difference.admin.items()}
        return "no end offsets were given" if said == difference.log else None
    if difference.part == "existence" and difference.log is not None:
        possible = difference.log["certainty"] == POSSIBLY_THERE
        return "compaction removed what would say whether the group was there" if possible else None
    return reason(difference, rebalancing)


@pytest.mark.parametrize(
    "corpus", ["scenarios", "scenarios/compacted_keep", "scenarios/compacted_drop", "upgrade", "misc", "wild"]
)
def test_every_group_is_described(corpus: str) -> None:
    checkpoints = [each for each in read_lines(CORPUS / corpus / "checkpoints.jsonl.gz") if each["stable"]]
    tally = Tally()
    for checkpoint in [*checkpoints[:-1:EVERY], checkpoints[-1]]:
        compare_groups(checkpoint, described(CORPUS / corpus / "logs", checkpoint), tally)
    rebalancing = rebalancing_groups(tally)
    print(f"\n{corpus}: {tally.equal} of {tally.compared} equal")
    for cause, count in Counter(explained(each, rebalancing) for each in tally.differences).items():
        print(f"  {count}: {cause}")
    assert [each for each in tally.differences if explained(each, rebalancing) is None] == []
    assert tally.compared > 100
