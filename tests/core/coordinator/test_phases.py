"""Requests to a coordinator that still loads its partition, and to a broker that does not coordinate it."""

import pytest

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.memory import CoordinatorPhase
from coordinator_core.coordinator.protocol import ErrorCode, Request

TOPICS = TopicImage.of(())
CODES = {
    CoordinatorPhase.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    CoordinatorPhase.RESIGNED: ErrorCode.NOT_COORDINATOR,
}


@pytest.mark.parametrize("phase", CODES)
@pytest.mark.parametrize("api", sorted(coordinator.REQUESTS.keys() - {"Heartbeat"}))
def test_every_request_is_refused(api: str, phase: CoordinatorPhase) -> None:
    memory = coordinator.new_state(phase=phase)
    outcome = coordinator.handle(memory, Request(api, 0, "client", {"groupId": "g"}), TOPICS, 0, iter(()))
    assert outcome.error is not None
    assert (outcome.error.code, outcome.response, outcome.records) == (CODES[phase], None, [])


@pytest.mark.parametrize("memory", [coordinator.new_state(), ConnectCoordinatorState()])
def test_heartbeats_of_classic_groups_are_answered_while_it_loads(memory: coordinator.CoordinatorState) -> None:
    beat = Request("Heartbeat", 4, "client", {"groupId": "g", "generationId": 1, "memberId": "m"})
    memory.phase = CoordinatorPhase.LOADING
    assert coordinator.handle(memory, beat, TOPICS, 0, iter(())).response == {"throttleTimeMs": 0, "errorCode": 0}
    memory.phase = CoordinatorPhase.RESIGNED
    refused = coordinator.handle(memory, beat, TOPICS, 0, iter(())).error
    assert refused is not None
    assert refused.code is ErrorCode.NOT_COORDINATOR


def test_groups_cannot_be_deleted_either_until_the_coordinator_took_over() -> None:
    memory = coordinator.new_state(phase=CoordinatorPhase.LOADING)
    refused = coordinator.delete_group(memory, TOPICS, 0, "g").error
    assert refused is not None
    assert refused.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.take_over(memory, TOPICS, 0)
    unknown = coordinator.delete_group(memory, TOPICS, 0, "g").error
    assert unknown is not None
    assert unknown.code is ErrorCode.GROUP_ID_NOT_FOUND
