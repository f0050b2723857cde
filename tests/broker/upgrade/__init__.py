"""One log that brokers of all releases write in turn on the same data directory, and what their clients held.

``pytest tests/broker/test_upgrade.py`` records such a log and audits it; ``python -m tests.broker.upgrade`` writes the
copy of it in ``tests/data/upgrade``. Both need a JDK and Maven.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.broker.kafka import STREAMS, Clients, Line, broker, free_ports

HERE = Path(__file__).parent
RELEASES = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""The releases in the order in which they write: the last patch of each that Maven has."""

ORDERS, RANGED, REPORTS, SHARED, WORDS = "orders", "shipments", "reports", "thumbnails", "word-count"
"""The groups: two consumer groups (uniform and range), a classic, a share and a streams group."""

STREAMS_APART = "streams"
"""What follows a release in the name of a process of its streams applications alone."""

SETTLE_S = 300
QUIET_S = 2.0
CLASSIC = {
    "group.protocol": "classic",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
CONSUMER = {"group.protocol": "consumer"}


class Stage(NamedTuple):
    """What a release writes besides the groups of all releases."""

    protocols: str
    has_share: bool = False
    has_streams: bool = False
    settings: tuple[tuple[str, str], ...] = ()


UNSTABLE = (("unstable.api.versions.enable", "true"), ("unstable.feature.versions.enable", "true"))
STAGES = {
    "3.9.2": Stage("classic,consumer"),
    "4.0.2": Stage("classic,consumer"),
    "4.1.2": Stage("classic,consumer,share,streams", True, True, UNSTABLE),
}
LATER = Stage("classic,consumer,share,streams", True, True)


class Upgrade:
    """Drives the clients of all releases; ``seen`` is what they held whenever the log was quiet."""

    def __init__(self, home: Path) -> None:
        self.home = home
        port, controller = free_ports(2)
        self.ports = port, controller
        self.seen: list[Line] = []
        self.clients: dict[str, Clients] = {}
        self.stages: list[str] = []

    def run(self, releases: tuple[str, ...] = RELEASES) -> None:
        """Let each release write; clients of the one before stay until those of the next have come."""
        with ExitStack() as at_end:
            at_end.callback(self._kill)
            for number, release in enumerate(releases):
                stage = STAGES.get(release, LATER)
                changed = dict(stage.settings) | {"group.coordinator.rebalance.protocols": stage.protocols}
                with broker(self.home, release, self.ports, changed) as servers:
                    self._write(servers, release, stage, releases[number - 1] if number else None)
                    if release == releases[-1]:
                        self._close(release)

    def _write(self, servers: str, release: str, stage: Stage, before: str | None) -> None:
        clients = self.clients[release] = Clients(servers, self.home, release, "UpgradeClients", HERE)
        do = clients.do
        self.stages.append(release)
        if before is None:
            for topic, partitions in (("orders", 4), ("parcels", 3), ("lines", 3), ("images", 2)):
                do("create", topic=topic, partitions=partitions)
        self.settle(release, "started")
        raised = do("features")
        self.seen.append({"release": release, "what": "features", "raised": raised})
        new = f"topic-{release}"
        do("create", topic=new, partitions=3)
        for name, topics, more in (
            (f"o1-{release}", ["orders", "parcels"], {}),
            (f"o2-{release}", ["orders", new], {}),
            (f"o3-{release}", ["orders", "parcels"], {"group.instance.id": "till-3"} if before is None else {}),
        ):
            do("consumer", name=name, group=ORDERS, topics=topics, settings=CONSUMER | more)
            self.settle(release, f"{name} joined")
        ranged = CONSUMER | {"group.remote.assignor": "range"}
        for name, group, settings in (
            (f"s1-{release}", RANGED, ranged),
            (f"s2-{release}", RANGED, ranged),
            (f"r1-{release}", REPORTS, CLASSIC),
            (f"r2-{release}", REPORTS, CLASSIC),
        ):
            do("consumer", name=name, group=group, topics=["orders", "parcels"], settings=settings)
        self.settle(release, "consumers joined")
        if stage.has_share:
            do("share", name=f"t1-{release}", group=SHARED, topics=["images"])
            self.settle(release, "t1 joined")
            do("share", name=f"t2-{release}", group=SHARED, topics=["images", "parcels"])
        if stage.has_streams:
            apps = self._apps(servers, release)
            for number in (1, 2):
                apps.do(
                    "streams",
                    name=f"w{number}-{release}",
                    group=WORDS,
                    topics=["lines"],
                    protocol="streams",
                    state=str(self.home / f"streams-{release}-{number}"),
                )
                self.settle(release, f"w{number} joined")
        do("produce", topic="orders", count=8)
        do("grow", topic="parcels", partitions=3 + len(self.stages))
        self.settle(release, "parcels grew")
        if before is not None:
            self._close(before)
            self.settle(release, f"{before} left")

    def _apps(self, servers: str, release: str) -> Clients:
        """The process of a release's streams applications: where Maven has none of it, one of those before."""
        older = STREAMS.get(release, release)
        if older == release:
            return self.clients[release]
        name = f"{release} {STREAMS_APART}"
        self.clients[name] = Clients(servers, self.home, older, "UpgradeClients", HERE)
        return self.clients[name]

    def _close(self, release: str) -> None:
        for name in (release, f"{release} {STREAMS_APART}"):
            if name in self.clients:
                self.clients.pop(name).close()

    def _kill(self) -> None:
        for clients in self.clients.values():
            clients.kill()

    def settle(self, release: str, what: str) -> None:
        """Wait until nothing was written for a while; keep what everybody holds then."""
        end, before = time.monotonic() + SETTLE_S, None
        quiet_since = time.monotonic()
        while time.monotonic() < end:
            said = {name: clients.do("holds") for name, clients in self.clients.items()}
            ends = next(iter(said.values()))["ends"]
            if ends != before:
                before, quiet_since = ends, time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_S:
                held = {name: holds for each in said.values() for name, holds in each["clients"].items()}
                at_ms = round(time.time() * 1000)
                self.seen.append({"release": release, "what": what, "at_ms": at_ms, "ends": ends, "clients": held})
                return
            time.sleep(0.3)
        raise RuntimeError(f"{release}, {what}: the log did not become quiet within {SETTLE_S} s")
