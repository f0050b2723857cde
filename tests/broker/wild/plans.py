"""What the groups of a random life are like: how members join them, and what may be configured."""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from tests.broker.kafka import Line

PACKAGE = "org.apache.kafka.clients.consumer."
ASSIGNORS = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor")
TOPICS = ("a", "b", "c", "d", "ev-1", "ev-2")
PATTERNS = ("ev-.*", "[ab]", ".*-1|c", "ev-[0-9]+")
CONFIGURED: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    "consumer": [
        ("consumer.session.timeout.ms", (3000, 6000, None)),
        ("consumer.heartbeat.interval.ms", (300, 1000, None)),
    ],
    "share": [
        ("share.session.timeout.ms", (3000, None)),
        ("share.record.lock.duration.ms", (15000, None)),
        ("share.auto.offset.reset", ("earliest", "latest", None)),
    ],
    "streams": [
        ("streams.num.standby.replicas", (0, 1, 2, None)),
        ("streams.session.timeout.ms", (3000, None)),
    ],
}


@dataclass
class Plan:
    """One group: its kind, how its members differ, and how many there may be."""

    group: str
    kind: str
    most: int
    assignors: tuple[str, ...] = ()
    remote: str | None = None
    topics: tuple[str, ...] = TOPICS
    is_equal: bool = False
    has_regex: bool = False
    has_static: bool = False
    commits: tuple[str, ...] = ("plain", "plain", "none", "transaction")
    shape: str = "stateful"
    standbys: int = 0

    def newcomer(self, chance: random.Random, number: int, held: AbstractSet[str | None]) -> Line:
        """The order that lets a new member join; ``held`` are the instance ids in use."""
        if self.kind in ("streams", "classic_streams"):
            return self._application(chance)
        settings: dict[str, Any] = {"auto.offset.reset": chance.choice(("earliest", "latest"))}
        order: Line = {"settings": settings, "seed": number, **self.subscription(chance)}
        if self.kind == "share":
            del settings["auto.offset.reset"]
            return {"do": "wild_share", **order}
        if self.kind == "classic":
            names = ",".join(PACKAGE + each for each in self.assignors)
            settings |= {"group.protocol": "classic", "partition.assignment.strategy": names}
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 700}
        else:
            settings["group.protocol"] = "consumer"
            if self.remote:
                settings["group.remote.assignor"] = self.remote
        if chance.random() < 0.3:
            settings["max.poll.interval.ms"] = 5000 if self.kind == "consumer" else 7000
        if chance.random() < 0.3:
            settings["client.rack"] = chance.choice(("rack-a", "rack-b"))
        if self.has_static and chance.random() < 0.6:
            instance = f"i{chance.randrange(3)}"
            if instance not in held or chance.random() < 0.15:
                settings["group.instance.id"] = instance
        return {"do": "wild_consumer", "commits": chance.choice(self.commits), **order}

    def subscription(self, chance: random.Random) -> Line:
        """Topics or a pattern for a member."""
        if self.has_regex and chance.random() < 0.6:
            return {"pattern": chance.choice(PATTERNS)} | ({"client_side": True} if chance.random() < 0.2 else {})
        if self.is_equal:
            return {"topics": list(self.topics)}
        return {"topics": sorted(chance.sample(self.topics, chance.randint(1, min(4, len(self.topics)))))}

    def _application(self, chance: random.Random) -> Line:
        settings: dict[str, Any] = {"num.stream.threads": chance.choice((1, 1, 2))}
        settings["group.protocol"] = "streams" if self.kind == "streams" else "classic"
        if self.kind != "streams":
            settings["num.standby.replicas"] = self.standbys
        topics = ["in", "in2"] if self.shape in ("joined", "repartitioned") else ["in"]
        return {
            "do": "wild_streams",
            "topics": topics,
            "other": "in2",
            "to": "out",
            "shape": self.shape,
            "settings": settings,
        }


def plans(chance: random.Random) -> list[Plan]:
    """Groups of all kinds; which assignors, subscriptions and shapes is up to chance."""
    found = []
    ways = [(each,) for each in ASSIGNORS]
    ways += [("CooperativeStickyAssignor", "RangeAssignor"), ("StickyAssignor", "RangeAssignor")]
    for number in range(3):
        plan = Plan(f"classic{number}", "classic", chance.randint(2, 7), chance.choice(ways))
        plan.has_static, plan.is_equal = chance.random() < 0.5, chance.random() < 0.3
        found.append(plan)
    for number in range(3):
        plan = Plan(
            f"modern{number}", "consumer", chance.randint(2, 8), remote=chance.choice((None, "uniform", "range"))
        )
        plan.has_static, plan.is_equal = chance.random() < 0.5, chance.random() < 0.3
        plan.has_regex = chance.random() < 0.6
        found.append(plan)
    found.append(Plan("shared", "share", chance.randint(2, 5), topics=TOPICS[: chance.randint(2, 6)]))
    for number, shape in enumerate(chance.sample(("stateful", "repartitioned", "joined", "stateless"), 2)):
        found.append(Plan(f"streams{number}", "streams", 3, shape=shape))
    shape = chance.choice(("stateful", "repartitioned"))
    found.append(Plan("oldstreams", "classic_streams", 2, shape=shape, standbys=chance.randint(0, 1)))
    return found
