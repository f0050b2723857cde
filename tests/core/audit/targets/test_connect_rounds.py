"""Rounds of classic Connect groups: only what a configuration can explain is left to the config topic."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from coordinator_core.assignors.inputs import ConnectGroupSpec, ConnectorTask, WorkerSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Fields
from tests.core.audit.targets.verdicts import audit_group
from tests.core.history.logs import GroupLog, generation, worker

WHOLE = Coverage({0: [(0, 100)]})
RIGHT = {"w1": worker(3, {"c": [-1, 0]}), "w2": worker(3, {"c": [1]})}


def audited(*rounds: dict[str, Fields], coverage: Coverage = WHOLE) -> list[TargetAuditRow]:
    log = GroupLog()
    for number, workers in enumerate(rounds, 1):
        log.write(generation(number, workers, "compatible", protocolType="connect"))
    return list(audit_group(log.records, Group("g", from_start=True), None, None, coverage))


def test_a_round_shows_the_configuration_that_it_assigns() -> None:
    (row,) = audited(RIGHT)
    assert (row.verdict, row.fitted) == (
        Verdict.IDENTICAL,
        "configuration that the round shows, a leader without memory",
    )


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ({"c": [-1, 1]}, {"c": [0]}, "task c-0: w1 expected, w2 recorded"),
        ({"c": [-1]}, {"c": [0, 1]}, "task c-0: w1 expected, w2 recorded"),
        ({"c": [0]}, {"c": [-1, 1]}, "connector c: w1 expected, w2 recorded"),
    ],
)
def test_no_configuration_explains_work_with_the_wrong_worker(
    first: dict[str, list[int]], second: dict[str, list[int]], difference: str
) -> None:
    swapped = {"w1": worker(3, first), "w2": worker(3, second)}
    (row,) = audited(swapped)
    assert (row.verdict, row.differences[0]) == (Verdict.DIVERGENT, difference)
    (row,) = audited(swapped, coverage=Coverage({0: [(5, 100)]}))
    assert row.verdict is Verdict.UNKNOWN, "what the leader kept from rounds that are not in the log"


def test_work_that_is_listed_or_given_twice_is_invalid() -> None:
    twice = {"w1": worker(3, {"c": [-1, 0, 0]}), "w2": worker(3, {"c": [1]})}
    both = {"w1": worker(3, {"c": [-1, 0]}), "w2": worker(3, {"c": [0, 1]})}
    assert [row.verdict for each in (twice, both) for row in audited(each)] == [Verdict.INVALID, Verdict.INVALID]


@pytest.mark.parametrize(("offset", "verdict"), [(3, Verdict.DIVERGENT), (4, Verdict.IDENTICAL)])
def test_at_one_offset_of_the_config_topic_there_is_one_configuration(offset: int, verdict: Verdict) -> None:
    """Task 1 is stopped: at another offset it may be configured no more."""
    later = {"w1": worker(offset, {}, had={"c": [-1, 0]}), "w2": worker(offset, {}, had={"c": [1]}, revoked={"c": [1]})}
    assert [row.verdict for row in audited(RIGHT, later)] == [Verdict.IDENTICAL, verdict]


@pytest.mark.parametrize(
    ("third", "verdict"),
    [
        ({"w1": worker(4, {}, had={"c": [-1, 0]}), "w2": worker(4, {})}, Verdict.IDENTICAL),
        ({"w1": worker(4, {}, had={"c": [-1, 0]}), "w2": worker(4, {"a": [-1]})}, Verdict.IDENTICAL),
        ({"w1": worker(4, {"a": [-1]}, had={"c": [-1, 0]}), "w2": worker(4, {})}, Verdict.DIVERGENT),
        ({"w1": worker(4, {}, had={"c": [-1, 0]}), "w2": worker(4, {"b": [-1]})}, Verdict.DIVERGENT),
    ],
)
def test_a_connector_that_is_stopped_may_be_gone_or_is_to_move(third: dict[str, Fields], verdict: Verdict) -> None:
    """Connector a goes to the other worker in the third round, without tasks, or it is configured no more: the second
    round fits both.
    """
    first = {"w1": worker(3, {"a": [-1, 0], "c": [-1, 0]}), "w2": worker(3, {"b": [-1, 0]})}
    second = {
        "w1": worker(4, {}, had={"a": [-1, 0], "c": [-1, 0]}, revoked={"a": [-1, 0]}),
        "w2": worker(4, {}, had={"b": [-1, 0]}, revoked={"b": [-1, 0]}),
    }
    assert [row.verdict for row in audited(first, second, third)] == [*[Verdict.IDENTICAL] * 2, verdict]


def test_of_very_many_configurations_that_of_removed_connectors_is_tried() -> None:
    """Each of three connectors may have lost any number of its tasks, or is gone."""
    before, after = dict.fromkeys("abcd", 20), {"d": 20}
    idle = WorkerSpec("u", 3)
    first = ConnectGroupSpec({"w1": idle, "w2": idle}, "w1", before, 3, 1, -1, 0, 0)
    given = assign("compatible", first, TopicImage.of(()))
    ran = {name: WorkerSpec("u", 4, work.connectors, work.tasks) for name, work in given.members.items()}
    second = replace(
        first,
        members=ran,
        connectors=after,
        config_offset=4,
        generation=2,
        last_completed_generation=1,
        memory=given.memory,
    )
    taken = assign("compatible", second, TopicImage.of(()))
    rounds = [
        {name: worker(3, listed(work.connectors, work.tasks)) for name, work in given.members.items()},
        {
            name: worker(
                4,
                listed(work.connectors, work.tasks),
                had=listed(ran[name].connectors, ran[name].tasks),
                revoked=listed(work.revoked_connectors, work.revoked_tasks),
            )
            for name, work in taken.members.items()
        },
    ]
    assert [row.verdict for row in audited(*rounds)] == [Verdict.IDENTICAL] * 2


def listed(connectors: Sequence[str], tasks: Sequence[ConnectorTask]) -> dict[str, list[int]]:
    """Return work by connector, as a worker's blob has it: the connector itself is number -1."""
    found: dict[str, list[int]] = {connector: [-1] for connector in connectors}
    for connector, number in tasks:
        found.setdefault(connector, []).append(number)
    return found
