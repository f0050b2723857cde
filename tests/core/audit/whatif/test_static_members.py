"""What if members were static: those that come back in time keep their name, under whatever member id they come."""

import pytest

from coordinator_core.assignors.inputs import AssignedGroupType
from coordinator_core.audit.targets.rounds import Round, RoundMember
from coordinator_core.audit.whatif.replay import WhatIf, what_if
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.records import LogPosition

TOPICS = TopicImage.of([Topic("t", "t-id", 4)], {})
TIMEOUT_MS = 45_000


def a_round(second: int, **clients: str) -> Round:
    """A round of members, each with the name of its client, that read four partitions."""
    members = {member_id: RoundMember((client, "host"), ("t",)) for member_id, client in clients.items()}
    return Round(LogPosition(0, second, second * 1000), AssignedGroupType.CONSUMER, "uniform", members, TOPICS, {})


@pytest.mark.parametrize(
    ("back", "member_id", "rebalances"), [(40, "b", 1), (40, "b2", 1), (100, "b", 3), (100, "b2", 3)]
)
def test_a_client_that_is_away_for_less_than_the_timeout_stays(back: int, member_id: str, rebalances: int) -> None:
    """A client on KIP-848 comes back under its own member id."""
    happened = [a_round(1, a="x", b="y"), a_round(10, a="x"), a_round(10 + back, **{"a": "x", member_id: "y"})]
    assert what_if(happened, WhatIf(static_timeout_ms=TIMEOUT_MS)).hypothetical.rebalances == rebalances


def test_two_members_of_one_client_do_not_share_a_name() -> None:
    """One comes back under its own id, another one comes within the timeout."""
    happened = [
        a_round(1, a="x", b="y"),
        a_round(10, a="x"),
        a_round(20, a="x", b="y"),
        a_round(30, a="x", b="y", c="y"),
    ]
    outcome = what_if(happened, WhatIf(static_timeout_ms=TIMEOUT_MS)).hypothetical
    assert (outcome.rebalances, outcome.worst_imbalance) == (2, 1), "four partitions for three members"
