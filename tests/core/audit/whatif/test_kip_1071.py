"""What-if and owners of streams groups that do what KIP-1071 defines, on the logs of its worked examples."""

import pytest

from coordinator_core.audit.targets.rounds import rounds
from coordinator_core.audit.whatif.replay import ANY_LAG, Comparison, WhatIf, WhatIfOutcome, what_if
from coordinator_core.errors import InputError
from coordinator_core.groups.group import Group
from coordinator_core.groups.owners import owners
from tests.core.audit.transcribed import KIP_1071, group_records, played
from tests.core.coordinator.transcript import GROUP


def compared(name: str, change: WhatIf) -> Comparison:
    play = played(name)
    return what_if(list(rounds(group_records(play), Group(GROUP, from_start=True), play.history, KIP_1071)), change)


def supposed(name: str, change: WhatIf) -> WhatIfOutcome:
    return compared(name, change).hypothetical


def test_nothing_changed_moves_the_tasks_that_warmed_up() -> None:
    found = compared("streams_warmup", WhatIf())
    assert (found.actual.rebalances, found.actual.moved) == (4, 2)
    assert (found.hypothetical.rebalances, found.hypothetical.moved) == (4, 2)


def test_without_warm_up_tasks_nothing_moves_to_an_empty_disk() -> None:
    assert supposed("streams_warmup", WhatIf(warmups=0)).moved == 0


def test_if_any_lag_is_acceptable_tasks_move_at_once() -> None:
    assert supposed("streams_warmup", WhatIf(warmups=0, recovery_lag=ANY_LAG)).moved == 2


def test_what_the_log_cannot_tell_is_an_error() -> None:
    with pytest.raises(InputError, match="the log has no task offsets"):
        supposed("streams_warmup", WhatIf(recovery_lag=5))
    with pytest.raises(InputError, match="the assignor 'sticky' has no warm-up tasks"):
        supposed("streams_topology_update", WhatIf(warmups=1))


def test_members_with_an_older_topology_get_nothing_in_the_supposed_rounds_either() -> None:
    found = compared("streams_topology_update", WhatIf())
    assert (found.actual.moved, found.actual.rebalances) == (25, 9)
    assert found.hypothetical == found.actual


def test_rounds_of_a_topology_with_regular_expressions_are_known() -> None:
    assert supposed("streams_regex", WhatIf(standbys=1)).rebalances == 2


@pytest.mark.parametrize(
    ("topic", "partitions"), [("orders-us", [0, 1, 2]), ("orders-eu", [0, 1]), ("audit", [0]), ("unrelated", [])]
)
def test_owners_of_a_topic_that_a_regular_expression_matches(topic: str, partitions: list[int]) -> None:
    play, group = played("streams_regex"), Group(GROUP, from_start=True)
    for record in group_records(play):
        group.apply(record)
    found = owners([group], play.topics, topic)
    assert [(row.member_id, row.partition, row.role) for row in found] == [("A", each, "active") for each in partitions]
