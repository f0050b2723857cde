"""Members that leave, die and are too slow, one after the other, at a broker that writes its own log; and the truth.

``python -m tests.broker.witness FOLDER [RELEASE]`` records it. ``pytest tests/broker/test_witness.py`` holds what is
said of each departure against what was done.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.broker_log.lines import NEEDLES
from tests.broker.kafka import KAFKA, Clients, Line, broker, free_ports
from tests.broker.scenario import QUIET_S, SETTLE_S

CONSUMER, CLASSIC, SHARED, STREAMS, MIXED = "payments", "billing", "thumbnails", "word-count", "ledger"
SESSION_MS = 6_000
CHANGED = {
    **{f"group.{kind}.session.timeout.ms": str(SESSION_MS) for kind in ("consumer", "share", "streams")},
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5000",
    "group.initial.rebalance.delay.ms": "300",
}
KEPT = ("__consumer_offsets-*", "__cluster_metadata-*", "__share_group_state-*")


class Departure(NamedTuple):
    """A member that went: its group, its client id, how it went (a ``CauseKind``), and words that are to be said."""

    group: str
    client: str
    how: str
    words: str


@dataclass
class Script:
    """Drives the clients, and keeps what was done."""

    servers: str
    home: Path
    has: frozenset[str]
    clients: Clients
    done: list[Departure] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    others: list[Clients] = field(default_factory=list)

    def apart(self) -> Clients:
        """A process of clients of its own, which can be stopped and killed."""
        self.others.append(wild_clients(self.servers, self.home, len(self.others)))
        return self.others[-1]

    def prepare(self) -> None:
        """Create the topics."""
        for topic, partitions in (("orders", 4), ("images", 2), ("lines", 3), ("lines2", 1), ("out", 1)):
            self.clients.do("create", topic=topic, partitions=partitions)
        self.clients.do("produce", topic="orders", count=40)

    def end(self) -> None:
        """End the processes that were killed or stopped."""
        for other in self.others:
            other.process.kill()

    def settle(self, group: str, members: int) -> None:
        """Wait until the group has so many members, and is stable."""
        end = time.monotonic() + SETTLE_S
        before: object = None
        while time.monotonic() < end:
            try:
                said = self.clients.do("describe")
            except RuntimeError as error:  # a group of another type by now: it was converted meanwhile
                before = error
                continue
            parts = said["groups"].get(group, {})
            described = next((value for part, value in parts.items() if part.startswith("describe")), None)
            # A group without members and offsets is soon removed.
            found = (len(described["members"]), described["groupState"]) if described else (0, "EMPTY")
            if found == before == (members, "STABLE" if members else "EMPTY"):
                return
            before = found
            time.sleep(QUIET_S / 3)
        raise RuntimeError(f"{group} did not settle at {members} members within {SETTLE_S} s: {before}")

    def join(self, group: str, name: str, clients: Clients | None = None, **settings: Any) -> None:
        """A member joins, and the group settles."""
        members = self.members[group] = self.members.get(group, 0) + 1
        (clients or self.clients).do(**_order(self.home, group, name, settings))
        self.settle(group, members)

    def gone(self, group: str, name: str, how: str, act: Callable[[], Any], words: str = "") -> None:
        """A member goes, and the group settles without it."""
        self.members[group] -= 1
        act()
        self.done.append(Departure(group, name, how, words))
        self.settle(group, self.members[group])


def wild_clients(servers: str, home: Path, number: int | None = None) -> Clients:
    """A process of clients; what they see goes to a file that nothing here reads."""
    seen = home / f"events-{'main' if number is None else number}.jsonl"
    return Clients(servers, home, main="WildClients", arguments=[str(seen)])


def _order(home: Path, group: str, name: str, settings: dict[str, Any]) -> Line:
    base: Line = {"group": group, "name": name, "topics": ["orders"], "seed": 7}
    if group == SHARED:
        return {"order": "wild_share", **base, "topics": ["images"], "settings": settings}
    if group == STREAMS:
        more: Line = {"other": "lines2", "to": "out", "shape": "stateless", "state": str(home / name)}
        return {"order": "wild_streams", **base, **more, "topics": ["lines"], "settings": {"group.protocol": "streams"}}
    protocol: dict[str, Any] = {"group.protocol": "consumer"}
    if settings.get("group.protocol", group) in (CLASSIC, "classic"):
        cooperative = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
        protocol = {"group.protocol": "classic", "partition.assignment.strategy": cooperative}
        protocol |= {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "500"}
    return {"order": "wild_consumer", **base, "commits": "plain", "settings": protocol | settings}


def consumers(run: Script) -> None:
    """Members of a consumer group: one leaves, one dies, a static one leaves for good, one does not revoke in time."""
    do = run.clients.do
    run.join(CONSUMER, "c1")
    run.join(CONSUMER, "c2")
    run.gone(CONSUMER, "c2", "member_left", partial(do, "close", name="c2"))
    doomed = run.apart()
    run.join(CONSUMER, "c3", doomed)
    run.gone(CONSUMER, "c3", "member_expired", doomed.kill, "session")
    run.join(CONSUMER, "c4", **{"group.instance.id": "till-4"})
    run.gone(CONSUMER, "c4", "member_expired", partial(do, "close", name="c4"), "session")
    if ADMIN in run.has:
        frozen = run.apart()
        run.join(CONSUMER, "c5", frozen, **{"group.instance.id": "till-5"})

        def removed() -> None:
            os.kill(frozen.process.pid, signal.SIGSTOP)  # it would join again at once
            do("remove_static", group=CONSUMER, instance="till-5")

        run.gone(CONSUMER, "c5", "member_left", removed, "removed by an admin")
        frozen.kill()
    if ADMIN in run.has:
        do("configure", group=CONSUMER, settings={"consumer.session.timeout.ms": "45000"})
    slow = run.apart()
    run.join(CONSUMER, "c6", slow, **{"max.poll.interval.ms": "8000"})

    def stuck() -> None:
        slow.do("pause", name="c6", ms=30_000)
        time.sleep(0.3)
        for name in ("c7", "c12"):  # so that each of the four members has one of four partitions
            do(**_order(run.home, CONSUMER, name, {}))
            run.members[CONSUMER] += 1
        time.sleep(5.5)  # it is asked for partitions now, and would leave by itself soon
        os.kill(slow.process.pid, signal.SIGSTOP)

    run.gone(CONSUMER, "c6", "member_timed_out", stuck, "8000 ms")
    slow.kill()
    if ADMIN in run.has:
        do("configure", group=CONSUMER, settings={"consumer.session.timeout.ms": None})
    run.join(CONSUMER, "c9", **{"max.poll.interval.ms": "3000"})
    run.gone(CONSUMER, "c9", "member_left", partial(do, "pause", name="c9", ms=12_000))
    do("close", name="c9")
    run.join(CONSUMER, "c10", **{"group.instance.id": "till-10"})
    do(**_order(run.home, CONSUMER, "c11", {"group.instance.id": "till-10"}))  # turned away
    time.sleep(2)
    do("close", name="c11")
    run.gone(CONSUMER, "c10", "member_expired", partial(do, "close", name="c10"), "session")
    run.gone(CONSUMER, "c12", "member_left", partial(do, "close", name="c12"))
    run.gone(CONSUMER, "c7", "member_left", partial(do, "close", name="c7"))
    run.gone(CONSUMER, "c1", "member_left", partial(do, "close", name="c1"))


def classics(run: Script) -> None:
    """The same in a classic group, whose clients say why they leave; one does not join a rebalance in time."""
    do = run.clients.do
    run.join(CLASSIC, "b1", **{"max.poll.interval.ms": "5000"})
    run.join(CLASSIC, "b2")
    run.gone(CLASSIC, "b2", "member_left", partial(do, "close", name="b2"), "the consumer is being closed")
    doomed = run.apart()
    run.join(CLASSIC, "b3", doomed)
    run.gone(CLASSIC, "b3", "member_expired", doomed.kill, "session")
    run.join(CLASSIC, "b4", **{"max.poll.interval.ms": "3000"})
    run.gone(CLASSIC, "b4", "member_left", partial(do, "pause", name="b4", ms=12_000), "poll timeout has expired")
    do("close", name="b4")
    late = run.apart()
    run.join(CLASSIC, "b5", late, **{"max.poll.interval.ms": "5000", "session.timeout.ms": "45000"})

    def silent() -> None:
        late.kill()
        do(**_order(run.home, CLASSIC, "b6", {"max.poll.interval.ms": "5000"}))
        run.members[CLASSIC] += 1

    run.gone(CLASSIC, "b5", "member_timed_out", silent, "rebalance timeout")
    run.gone(CLASSIC, "b6", "member_left", partial(do, "close", name="b6"), "the consumer is being closed")
    run.join(CLASSIC, "b9", **{"group.instance.id": "desk-9"})
    do(**_order(run.home, CLASSIC, "b10", {"group.instance.id": "desk-9"}))  # takes it over
    run.settle(CLASSIC, 2)
    time.sleep(1.5)
    do("close", name="b9")
    # The coordinator keeps the client id of the member that was replaced.
    run.gone(CLASSIC, "b9", "member_expired", partial(do, "close", name="b10"), "session")
    run.gone(CLASSIC, "b1", "member_left", partial(do, "close", name="b1"), "the consumer is being closed")


def shares(run: Script) -> None:
    """A share group: one leaves, one dies."""
    do = run.clients.do
    run.join(SHARED, "s1")
    run.join(SHARED, "s2")
    run.gone(SHARED, "s2", "member_left", partial(do, "close", name="s2"))
    doomed = run.apart()
    run.join(SHARED, "s3", doomed)
    run.gone(SHARED, "s3", "member_expired", doomed.kill, "session")
    run.gone(SHARED, "s1", "member_left", partial(do, "close", name="s1"))


def streams(run: Script) -> None:
    """A streams group: one leaves, one dies."""
    do = run.clients.do
    run.join(STREAMS, "w1")
    run.join(STREAMS, "w2")
    run.gone(STREAMS, "w2", "member_left", partial(do, "close", name="w2"))
    doomed = run.apart()
    run.join(STREAMS, "w3", doomed)
    run.gone(STREAMS, "w3", "member_expired", doomed.kill, "session")
    run.gone(STREAMS, "w1", "member_left", partial(do, "close", name="w1"))


def conversions(run: Script) -> None:
    """A group with members of both protocols: it is upgraded by a consumer, and downgraded when that one goes."""
    do = run.clients.do
    classic = {"group.protocol": "classic"}
    run.join(MIXED, "m1", **classic)
    run.join(MIXED, "m2")
    doomed = run.apart()
    run.join(MIXED, "m3", doomed, **classic)
    run.gone(MIXED, "m3", "member_expired", doomed.kill, "session")
    run.join(MIXED, "m4", **classic)
    run.gone(MIXED, "m4", "member_left", partial(do, "close", name="m4"))
    run.gone(MIXED, "m2", "member_left", partial(do, "close", name="m2"))
    doomed = run.apart()
    run.join(MIXED, "m5", doomed)
    run.gone(MIXED, "m5", "member_expired", doomed.kill, "session")
    run.gone(MIXED, "m1", "member_left", partial(do, "close", name="m1"), "the consumer is being closed")


PARTS = {"consumer": consumers, "classic": classics, "share": shares, "streams": streams, "mixed": conversions}


ADMIN = "admin"
"""Requests of an administrator to a consumer group: to remove a static member, to change settings."""
HAS = {
    "3.9.1": frozenset(("consumer", "classic", "mixed")),
    "3.9.1-old": frozenset(("classic",)),
    "4.0.0": frozenset(("consumer", "classic", "mixed", ADMIN)),
}
"""The parts of the script that a release has; others have all. Before 4.0, brokers had another coordinator, too."""
OLD = "-old"


def record(home: Path, out: Path, release: str = KAFKA, *, until_expiry: bool = True) -> list[Departure]:
    """Run the parts of the script that the release has, and copy the logs to ``out``; what was done is ``truth.json``.

    With ``until_expiry`` the script waits until the offsets of groups without members have expired, over a minute.
    The broker stops and starts once in between: its coordinators are away for that time, and refuse conversions then.
    """
    has = HAS.get(release, frozenset((*PARTS, ADMIN)))
    first, second = free_ports(2)
    ports = (first, second)
    log = home / "server.log"
    protocols = sorted(has - {"mixed", ADMIN})
    changed = {**CHANGED, "group.coordinator.rebalance.protocols": ",".join(protocols)}
    if release.endswith(OLD):
        changed["group.coordinator.new.enable"] = "false"
    release = release.removesuffix(OLD)
    done: list[Departure] = []
    with broker(home, release, ports, {**changed, MIGRATION: "bidirectional"}, log) as servers:
        clients = wild_clients(servers, home)
        run = Script(servers, home, has, clients)
        run.prepare()
        for name, part in PARTS.items():
            if name in has:
                part(run)
        clients.close()
        done += run.done
        run.end()
    with broker(home, release, ports, {**changed, MIGRATION: "disabled"}, log) as servers:
        clients = wild_clients(servers, home)
        run = Script(servers, home, has, clients)
        run.join(CLASSIC, "b8")
        clients.do(**_order(home, CLASSIC, "b11", {"group.protocol": "consumer"}))  # refused
        time.sleep(2)
        clients.do("close", name="b11")
        run.gone(CLASSIC, "b8", "member_left", partial(clients.do, "close", name="b8"), "the consumer is being closed")
        if "consumer" in has:
            run.join(CONSUMER, "c8")
            clients.do("delete_offset", group=CONSUMER, topic="lines", partition=0)
            run.gone(CONSUMER, "c8", "member_left", partial(clients.do, "close", name="c8"))
        if until_expiry:
            time.sleep(75)
        clients.close()
        done += run.done
    keep(home, out, done)
    return done


MIGRATION = "group.consumer.migration.policy"


def keep_lines(log: Path, out: Path) -> None:
    """Copy the lines of a broker's log that are about its coordinator, or its end; others tell its settings."""
    with log.open("rb") as lines, out.open("wb") as kept:
        kept.writelines(line for line in lines if any(needle in line for needle in NEEDLES))


def keep(home: Path, out: Path, done: list[Departure]) -> None:
    """Copy the logs of the coordinator and the brokers to ``out``, and what was done."""
    out.mkdir(parents=True, exist_ok=True)
    for pattern in KEPT:
        for folder in (home / "data").glob(pattern):
            shutil.copytree(folder, out / folder.name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.swap"))
    for log in home.glob("server*.log"):
        keep_lines(log, out / log.name)
    (out / "truth.json").write_text(json.dumps([each._asdict() for each in done], indent=1))
