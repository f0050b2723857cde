"""What the log tells of every group equals what the broker's Admin client said, but for what no log can know."""

from collections import Counter

import pytest

from tests.differential.checkpoints import Difference, Tally, compare
from tests.differential.decoded import Line
from tests.shared_data import CORPUS

REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")


def reason(difference: Difference, rebalancing: set[tuple[str, str]]) -> str | None:
    """Why the log cannot know this; None if it should have."""
    _, group_id, part, admin, log = difference
    if (difference.label, group_id) in rebalancing:
        return "a classic rebalance that has begun is in the coordinator's memory only"
    if part == "share_offsets" and log is None:
        return "no share state log was given"
    if part == "existence" and admin and not log and admin["listing"]["isSimpleConsumerGroup"]:
        return "a refused commit leaves an empty group in the coordinator's memory"
    if part == "nul" and group_id == "":
        return "the recorder split the group id at its NUL character: not Admin's"
    if part == "describe_consumer" and isinstance(admin, dict) and "is not a classic group" in admin.get("error", ""):
        return "a broker in the middle of its upgrade did not have the new protocol enabled"
    if part == "describe_streams" and log is not None and admin == _unconfigured(log):
        return "a coordinator that has just loaded a group counts internal topics at its next heartbeat only"
    return None


def _unconfigured(streams: Line) -> Line:
    """The group as a coordinator describes it before it knows how many partitions its internal topics need."""
    topics = ("stateChangelogTopics", "repartitionSourceTopics")
    return streams | {
        "subtopologies": [
            each | {kind: {name: topic | {"partitions": 0} for name, topic in each[kind].items()} for kind in topics}
            for each in streams["subtopologies"]
        ]
    }


def rebalancing_groups(tally: Tally) -> set[tuple[str, str]]:
    """Checkpoints and groups where Admin saw a classic rebalance under way."""
    return {
        (each.label, each.group_id)
        for each in tally.differences
        if each.part == "listing" and each.admin["groupState"] in REBALANCING
    }


# The compacted variants have no share state log; what Admin said of share offsets cannot be compared there.
@pytest.mark.parametrize(
    ("corpus", "most_differences"),
    [
        ("scenarios", 63),
        ("scenarios/compacted_keep", 4),
        ("scenarios/compacted_drop", 4),
        ("upgrade", 1),
        ("misc", 7),
        ("wild", 4),
    ],
)
def test_every_group_at_every_checkpoint(corpus: str, most_differences: int) -> None:
    tally = compare(CORPUS / corpus)
    rebalancing = rebalancing_groups(tally)
    reasons = Counter(reason(each, rebalancing) for each in tally.differences)
    print(f"\n{corpus}: {tally.equal} of {tally.compared} equal")
    for cause, count in reasons.items():
        print(f"  {count}: {cause}")
    assert [each for each in tally.differences if reason(each, rebalancing) is None] == []
    assert len(tally.differences) <= most_differences
