"""What the groups of a random life are like: how members join them, and what may be configured."""

import random
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
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
    "mixed": [("consumer.session.timeout.ms", (3000, None))],
    "share": [
        ("share.session.timeout.ms", (3000, None)),
        ("share.record.lock.duration.ms", (15000, None)),
        ("share.auto.offset.reset", ("earliest", "latest", None)),
    ],
    "streams": [("streams.num.standby.replicas", (0, 1, 2, None)), ("streams.session.timeout.ms", (3000, None))],
}
WAYS = (
    *((each,) for each in ASSIGNORS),
    ("CooperativeStickyAssignor", "RangeAssignor"),
    ("StickyAssignor", "RangeAssignor"),
)
"""Assignors that a member of a classic group offers, in its order."""
ROLLING = (
    (("CooperativeStickyAssignor", "RangeAssignor"), ("RangeAssignor",)),
    (("CooperativeStickyAssignor", "RangeAssignor"), ("RangeAssignor", "CooperativeStickyAssignor")),
    (("RoundRobinAssignor", "StickyAssignor"), ("StickyAssignor", "RangeAssignor"), ("StickyAssignor",)),
)
"""What the members of one group offer while it goes from one assignor to another."""
SHAPES = ("stateful", "repartitioned", "joined", "stateless")
OLD_STREAMS: tuple[Line, ...] = (
    {},
    {"acceptable.recovery.lag": 0, "max.warmup.replicas": 1, "probing.rebalance.interval.ms": 60_000},
    {"upgrade.from": "3.1"},
    {"upgrade.from": "2.3"},
    {"task.assignor.class": "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor"},
)
FOREIGN = (("range", "roundrobin"), ("cooperative-sticky",), ("roundrobin",), ("consumer",), ("range",))
"""Assignors of librdkafka, or its protocol of KIP-848."""
REBORN = ("classic", "consumer", "share", "streams", "mixed")
"""Kinds that the group "reborn" takes in turn."""


@dataclass
class Plan:
    """One group: its kind, how its members differ, and how many there may be."""

    group: str
    kind: str
    most: int
    ways: tuple[tuple[str, ...], ...] = ()
    remotes: tuple[str | None, ...] = (None,)
    topics: tuple[str, ...] = TOPICS
    is_equal: bool = False
    has_regex: bool = False
    has_static: bool = False
    commits: tuple[str, ...] = ("plain", "plain", "none", "transaction")
    shape: str = "stateful"
    standbys: int = 0
    old_settings: Line = field(default_factory=dict)
    has_tags: bool = False
    reshaped: float = 0.0

    def newcomer(self, chance: random.Random, number: int, held: AbstractSet[str | None]) -> Line:
        """The order that lets a new member join; ``held`` are the instance ids in use."""
        if self.kind in ("streams", "classic_streams"):
            return self._application(chance)
        if self.kind == "foreign":
            return self._foreigner(chance, number)
        settings: dict[str, Any] = {"auto.offset.reset": chance.choice(("earliest", "latest"))}
        order: Line = {"settings": settings, "seed": number, **self.subscription(chance)}
        if self.kind == "share":
            del settings["auto.offset.reset"]
            return {"do": "wild_share", **order}
        kind = self._protocol(chance)
        if kind == "classic":
            names = ",".join(PACKAGE + each for each in chance.choice(self.ways))
            settings |= {"group.protocol": "classic", "partition.assignment.strategy": names}
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 700}
        else:
            settings["group.protocol"] = "consumer"
            if remote := chance.choice(self.remotes):
                settings["group.remote.assignor"] = remote
        if chance.random() < 0.3:
            settings["max.poll.interval.ms"] = 5000 if kind == "consumer" else 7000
        if chance.random() < 0.3:
            settings["client.rack"] = chance.choice(("rack-a", "rack-b"))
        if self.has_static and chance.random() < 0.6:
            instance = f"i{chance.randrange(3)}"
            if instance not in held or chance.random() < 0.15:
                settings["group.instance.id"] = instance
        if kind == "classic" and "pattern" in order:
            order["client_side"] = True
        order |= {"commits": chance.choice(self.commits), "commits_revoked": chance.random() < 0.5}
        return {"do": "wild_consumer", **order}

    def _foreigner(self, chance: random.Random, number: int) -> Line:
        settings: dict[str, Any] = {"auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        if self.ways[0] == ("consumer",):
            settings = {"auto.offset.reset": "earliest", "group.protocol": "consumer"}
        else:
            settings |= {"partition.assignment.strategy": ",".join(self.ways[0]), "heartbeat.interval.ms": 500}
        if self.has_static and chance.random() < 0.4:
            settings["group.instance.id"] = f"f{number}"
        topics = self.subscription(chance)["topics"] if chance.random() < 0.8 else ["^ev-.*"]
        return {"do": "foreigner", "seed": number, "settings": settings, "topics": topics}

    def _protocol(self, chance: random.Random) -> str:
        return chance.choice(("classic", "consumer")) if self.kind == "mixed" else self.kind

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
            settings |= self.old_settings
        if self.has_tags:
            settings |= {"client.tag.zone": chance.choice("xyz"), "rack.aware.assignment.tags": "zone"}
        if chance.random() < 0.4:
            settings["application.server"] = f"host-{chance.randrange(3)}:{chance.randrange(1, 65_000)}"
        shape = chance.choice(SHAPES) if chance.random() < self.reshaped else self.shape
        topics = ["in", "in2"] if shape in ("joined", "repartitioned") else ["in"]
        return {
            "do": "wild_streams",
            "topics": topics,
            "other": "in2",
            "to": "out",
            "shape": shape,
            "settings": settings,
        }


def plans(chance: random.Random) -> list[Plan]:
    """Groups of all kinds; which assignors, subscriptions and shapes is up to chance."""
    found = []
    for number in range(3):
        plan = Plan(f"classic{number}", "classic", chance.randint(2, 7), (chance.choice(WAYS),))
        plan.has_static, plan.is_equal = chance.random() < 0.5, chance.random() < 0.3
        found.append(plan)
    found.append(Plan("rolling", "classic", chance.randint(3, 6), chance.choice(ROLLING), has_static=True))
    for number in range(3):
        remotes = chance.choice(((None,), ("uniform",), ("range",), (None, "uniform", "range")))
        plan = Plan(f"modern{number}", "consumer", chance.randint(2, 8), remotes=remotes)
        plan.has_static, plan.is_equal = chance.random() < 0.5, chance.random() < 0.3
        plan.has_regex = chance.random() < 0.6
        found.append(plan)
    for number in range(2):
        plan = Plan(f"mixed{number}", "mixed", chance.randint(2, 6), (*WAYS[:2], chance.choice(WAYS)))
        plan.has_static, plan.has_regex = chance.random() < 0.5, chance.random() < 0.3
        found.append(plan)
    found.append(Plan("shared", "share", chance.randint(2, 5), topics=TOPICS[: chance.randint(2, 6)]))
    for number, shape in enumerate(chance.sample(SHAPES, 2)):
        found.append(Plan(f"streams{number}", "streams", 3, shape=shape, reshaped=chance.choice((0, 0.2))))
    shape = chance.choice(("stateful", "repartitioned"))
    old = Plan("oldstreams", "classic_streams", 3, shape=shape, standbys=chance.randint(0, 1))
    old.old_settings, old.has_tags = chance.choice(OLD_STREAMS), chance.random() < 0.3
    found.append(old)
    for number in range(2):
        found.append(
            Plan(f"foreign{number}", "foreign", 4, (chance.choice(FOREIGN),), has_static=chance.random() < 0.5)
        )
    found.append(Plan("reborn", "consumer", 3, WAYS, (None, "range"), has_static=True))
    return found
