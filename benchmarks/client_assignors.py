"""How fast the assignors of classic groups are: ``python -m benchmarks.client_assignors``.

Prints one JSON line an assignor and kind of subscription: seconds for the first assignment of 1,000 members and 10,000
partitions, and for one more member joining when all have said what they own.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

from coordinator_core.assignors.client.leader import leader_order
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.wire.embedded import encode_blob

MEMBERS, TOPICS, PARTITIONS = 1_000, 100, 100
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def timed(name: str, members: dict[str, ClassicMemberSpec], image: TopicImage) -> tuple[float, dict[str, Any]]:
    start = time.perf_counter()
    assigned = assign(name, ClassicGroupSpec(leader_order(members)), image)
    return time.perf_counter() - start, dict(assigned.members)


def joining_again(member: ClassicMemberSpec, owned: list[tuple[str, int]]) -> ClassicMemberSpec:
    """The member with what it owns, as both sticky assignors read it."""
    topics: dict[str, list[int]] = {}
    for topic, number in owned:
        topics.setdefault(topic, []).append(number)
    previous = [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]
    user_data = encode_blob("StickyAssignorUserData", 1, {"previousAssignment": previous, "generation": 1})
    return ClassicMemberSpec(member.topics, owned=owned, generation=1, user_data=user_data)


def main() -> None:
    """Measure every assignor with equal and with differing subscriptions."""
    names = [f"topic-{number}" for number in range(TOPICS)]
    image = TopicImage.of(Topic(name, name, PARTITIONS) for name in names)
    for name in ASSIGNORS:
        for share in (1, 4):
            chance = random.Random(1)
            fresh = {
                f"consumer-{number}-{chance.getrandbits(40)}": ClassicMemberSpec(
                    sorted(chance.sample(names, TOPICS // share))
                )
                for number in range(MEMBERS + 1)
            }
            newcomer, spec = fresh.popitem()
            first, work = timed(name, fresh, image)
            again = {member: joining_again(fresh[member], work[member]) for member in fresh}
            joined, _ = timed(name, again | {newcomer: spec}, image)
            print(json.dumps({"assignor": name, "topics": TOPICS // share, "first_s": first, "join_s": joined}))


if __name__ == "__main__":
    main()
