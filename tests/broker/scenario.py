"""What happens to the groups, step by step, and what the broker's Admin client said of them in between."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.kafka import Clients, Line

SETTLE_S = 180
QUIET_S = 1.5

ORDERS, CLASSIC, SHARED, STREAMS, PAID = "orders", "reports", "thumbnails", "word-count", "payments"
"""The groups: consumer, classic, share and streams; and one that only commits, in transactions."""


class Event(NamedTuple):
    """What was done, the groups that rebalanced by it, the causes any of which those may have, and when (ms)."""

    what: str
    groups: tuple[str, ...]
    causes: frozenset[str]
    began_ms: int
    ended_ms: int


@dataclass
class Scenario:
    """Drives the clients, and keeps what was done and what Admin said."""

    clients: Clients
    servers: str
    home: Path
    events: list[Event] = field(default_factory=list)
    seen: list[Line] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)

    def event(
        self, what: str, groups: str, causes: str, act: Callable[[], Any], members: Mapping[str, int] | None = None
    ) -> None:
        """Do it, and wait until all groups have settled, the named ones with so many members."""
        began = _now_ms()
        act()
        self.members |= members or {}
        self.seen.append(self.settled(what))
        self.events.append(Event(what, tuple(groups.split()), frozenset(causes.split()), began, _now_ms()))

    def settled(self, what: str) -> Line:
        """What Admin says once every group is where it is going, and nothing was written for a while."""
        end, before = time.monotonic() + SETTLE_S, None
        while time.monotonic() < end:
            said = self.clients.do("describe")
            if said["stable"] and before == said["ends"] and self._as_wanted(said["groups"]):
                return {"what": what, **said}
            before = said["ends"]
            time.sleep(QUIET_S)
        raise RuntimeError(f"{what}: the groups did not settle within {SETTLE_S} s: {said['groups']}")

    def _as_wanted(self, groups: Line) -> bool:
        return all(
            group_id in groups and _is_settled(groups[group_id], count) for group_id, count in self.members.items()
        )


def _is_settled(group: Line, members: int) -> bool:
    described = next(value for part, value in group.items() if part.startswith("describe"))
    state = "STABLE" if members else "EMPTY"
    return len(described["members"]) == members and described["groupState"] == state


def _now_ms() -> int:
    return round(time.time() * 1000)


def first_half(run: Scenario) -> None:
    """Groups of every type come into being and grow."""
    do = run.clients.do
    for topic, partitions in (("orders", 4), ("images", 2), ("lines", 3)):
        do("create", topic=topic, partitions=partitions)
    for topic in ("orders", "lines"):
        do("produce", topic=topic, count=20)
    consumer = {"group": ORDERS, "topics": ["orders"], "settings": {"group.protocol": "consumer"}}
    joined = "member_joined"
    run.event("o1 joins", ORDERS, joined, lambda: do("consumer", name="o1", **consumer), {ORDERS: 1})
    run.event("o2 joins", ORDERS, joined, lambda: do("consumer", name="o2", **consumer), {ORDERS: 2})
    static = {**consumer, "settings": {"group.protocol": "consumer", "group.instance.id": "till-3"}}
    run.event("o3 joins", ORDERS, joined, lambda: do("consumer", name="o3", **static), {ORDERS: 3})
    cooperative = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    settings = {"partition.assignment.strategy": cooperative, "session.timeout.ms": "12000"}
    classic = {"group": CLASSIC, "topics": ["orders"], "settings": {"group.protocol": "classic", **settings}}
    grown = "member_joined partitions_revoked"
    run.event("r1 joins", CLASSIC, joined, lambda: do("consumer", name="r1", **classic), {CLASSIC: 1})
    run.event("r2 joins", CLASSIC, grown, lambda: do("consumer", name="r2", **classic), {CLASSIC: 2})
    share = {"group": SHARED, "topics": ["images"]}
    first = "member_joined share_state_initialized"
    run.event("s1 joins", SHARED, first, lambda: do("share", name="s1", **share), {SHARED: 1})
    run.event("s2 joins", SHARED, joined, lambda: do("share", name="s2", **share), {SHARED: 2})
    streams = {"group": STREAMS, "topics": ["lines"], "state": str(run.home / "streams")}
    run.event(
        "w1 joins", STREAMS, "member_joined topic_created", lambda: do("streams", name="w1", **streams), {STREAMS: 1}
    )


def second_half(run: Scenario) -> None:
    """Members leave, crash and return, a topic grows, transactions end; at last everybody goes."""
    do = run.clients.do
    gone = "member_left_or_expired"
    consumer = {"group": ORDERS, "topics": ["orders"], "settings": {"group.protocol": "consumer"}}
    run.event("o2 leaves", ORDERS, gone, lambda: do("close", name="o2"), {ORDERS: 2})
    doomed = Clients(run.servers, run.home)
    joins = {ORDERS: 3}
    run.event("o4 joins", ORDERS, "member_joined", lambda: doomed.do("consumer", name="o4", **consumer), joins)
    run.event("o4 crashes", ORDERS, gone, doomed.kill, {ORDERS: 2})
    static = {**consumer, "settings": {"group.protocol": "consumer", "group.instance.id": "till-3"}}

    def bounce() -> None:
        do("close", name="o3")
        do("consumer", name="o3", **static)

    run.event("o3 bounces", "", "", bounce)
    grow = {"topic": "orders", "partitions": 6}
    run.event("orders grows", f"{ORDERS} {CLASSIC}", "topic_grown", lambda: do("grow", **grow))
    run.event("r2 leaves", CLASSIC, gone, lambda: do("close", name="r2"), {CLASSIC: 1})
    do("produce", topic="images", count=10)
    run.event("s1 leaves", SHARED, gone, lambda: do("close", name="s1"), {SHARED: 1})
    paid = {"name": "till", "group": PAID, "topic": "orders"}
    run.event("3 is committed", "", "", lambda: do("transaction", **paid, offset=3, commit=True))
    run.event("4 is aborted", "", "", lambda: do("transaction", **paid, offset=4, commit=False))
    ends = (("o1", ORDERS, 1), ("o3", ORDERS, 0), ("r1", CLASSIC, 0), ("s2", SHARED, 0), ("w1", STREAMS, 0))
    for name, group, left in ends:
        cause = "static_member_left" if name == "o3" else gone
        run.event(f"{name} leaves", group, cause, partial(do, "close", name=name), {group: left})
