"""How long the coordinator model takes for a heartbeat that changes nothing; the goal is under 20 microseconds.

python -m benchmarks.heartbeat
"""

from __future__ import annotations

import time
import timeit
from typing import Any

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups import coordinator
from coordinator_core.groups.memory import Memory
from coordinator_core.groups.protocol import Request

MEMBERS = 100
GOAL_US = 20.0
NOW = 1_000_000


def beat(memory: Memory, topics: TopicImage, data: dict[str, Any]) -> coordinator.Outcome:
    """One heartbeat."""
    request = Request("ConsumerGroupHeartbeat", 1, "client", data)
    return coordinator.handle(memory, request, topics, NOW, iter(()))


def settled_group(memory: Memory, topics: TopicImage) -> dict[str, Any]:
    """A group in which everybody has what they are to have; the heartbeat of one of its members."""
    memory.publish(1, created=list(topics.by_name))
    memory.configure_group("g", {"consumer.assignment.interval.ms": 0})
    base: dict[str, Any] = {"groupId": "g", "instanceId": None, "rackId": None, "serverAssignor": None}
    joined = base | {"rebalanceTimeoutMs": 60_000, "subscribedTopicNames": ["orders"], "subscribedTopicRegex": None}
    epochs: dict[str, int] = {}
    owned: dict[str, list[Any]] = {}
    beats = base | {"rebalanceTimeoutMs": -1, "subscribedTopicNames": None, "subscribedTopicRegex": None}
    for _ in range(4):
        for member_id in (f"member-{number}" for number in range(MEMBERS)):
            epoch = epochs.get(member_id, 0)
            data = (beats if epoch else joined) | {
                "memberId": member_id,
                "memberEpoch": epoch,
                "topicPartitions": owned.get(member_id, []),
            }
            response = beat(memory, topics, data).response
            assert response is not None
            epochs[member_id] = response["memberEpoch"]
            if response["assignment"] is not None:
                owned[member_id] = response["assignment"]["topicPartitions"]
    return beats | {"memberId": "member-0", "memberEpoch": epochs["member-0"], "topicPartitions": owned["member-0"]}


def main() -> None:
    """Print the best of several runs."""
    topics = TopicImage.of([Topic("orders", "orders".ljust(22, "A"), 10 * MEMBERS)], version=1)
    memory = Memory()
    data = settled_group(memory, topics)
    outcome = beat(memory, topics, data)
    assert outcome.response is not None
    assert not outcome.records
    runs = 20_000
    times = timeit.repeat(lambda: beat(memory, topics, data), timer=time.process_time, number=runs, repeat=5)
    best = min(times) / runs * 1e6
    print(f"heartbeat without change, {MEMBERS} members: {best:.1f} us (goal {GOAL_US:.0f})")


if __name__ == "__main__":
    main()
