"""A scenario: the cluster, its topics, its groups and what happens to them; the model of a scenario file.

Times are whole milliseconds from the scenario's start; a file writes them as ``250ms``, ``30s``, ``5m``, ``2h`` or
``1d``, or as a plain number of milliseconds.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from coordinator_core.groups import re2
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import Family
from coordinator_core.simulator.scenario_events import (
    Chaos,
    Duration,
    Event,
    Few,
    Many,
    Part,
    Positive,
    Share,
    Versions,
)

_NUMBER = "{n}"
_DIGIT = re.compile("[0-9]")
MOST_TASKS_IN_RECORDS = 128
"""Tasks of one connector that the records of Connect on KIP-848 can name: the task id is an int8, from 0 on."""


class ScenarioTopic(Part):
    """A topic, or ``count`` topics if its name contains ``{n}``.

    ``grows`` maps times to partition counts. ``rate`` is the number of records per second and partition: committed
    offsets grow at this rate.
    """

    partitions: Few = 1
    replicas: Few = 1
    count: Many = 1
    created: Duration = 0
    deleted: Positive | None = None
    grows: dict[Positive, Few] = {}
    rate: Annotated[float, Field(ge=0, le=1e6)] = 10.0


class ScenarioTransactions(Part):
    """Members commit in transactions, one for each commit (KIP-447).

    Each transaction ends after ``lasts``; the share ``aborts`` of them is aborted, the share ``left_open`` never ends.
    If its member crashes or hangs, it is aborted ``timeout`` after it began.
    """

    lasts: Positive = 50
    timeout: Positive = 60_000
    aborts: Share = 0.01
    left_open: Share = 0.0


class ScenarioCommits(Part):
    """How members commit: all partitions that they own, at the interval ``every``, and once more when they leave.

    Members of share groups fetch records and acknowledge them after this interval. If it is longer than the lock of the
    records, all of them are given up in the end.
    """

    every: Positive = 5_000
    when_leaving: bool = True
    transactions: ScenarioTransactions | None = None

    @model_validator(mode="after")
    def _one_at_a_time(self) -> Self:
        if self.transactions is not None and self.transactions.lasts >= self.every:
            raise ValueError("a transaction has to be over before the next commit")
        return self


class ScenarioDelivery(Part):
    """What members of a share group do with the records that they get, if not accept them.

    They release the share ``releases`` of them and reject the share ``rejects``. Of the share ``forgets`` they say
    nothing, so that its locks end. ``poison`` is the share of the topic's records that each member releases, until the
    delivery limit is reached. ``aborted`` is the share of the topic's records whose transaction was aborted: with
    ``share.isolation.level`` ``read_committed`` no member gets them. Lock duration, delivery limit and
    ``share.auto.offset.reset`` are among the group's ``config``.
    """

    releases: Share = 0.0
    rejects: Share = 0.0
    forgets: Share = 0.0
    poison: Share = 0.0
    aborted: Share = 0.0

    @model_validator(mode="after")
    def _at_most_all(self) -> Self:
        if self.releases + self.rejects + self.forgets > 1:
            raise ValueError("more than all records are not accepted")
        return self


class Streams(Part):
    """The topology of a streams group: one subtopology that reads the topics; with ``repartition`` a second one.

    With the profile ``kip-1071`` members report task offsets: each task writes ``changes`` records per second to its
    changelog, and a process restores ``restores`` records per second of each of its tasks. Its disk survives restarts.
    """

    stateful: bool = False
    repartition: Few | None = None
    standbys: Annotated[int, Field(ge=0, le=2)] = 0
    changes: Annotated[float, Field(gt=0, le=1e6)] = 1_000.0
    restores: Annotated[float, Field(gt=0, le=1e9)] = 20_000.0

    @model_validator(mode="after")
    def _catches_up(self) -> Self:
        if self.restores <= self.changes:
            raise ValueError("a task that restores fewer records than are written never catches up")
        return self


_WORKERS = ("connect", "connect-kip-848")
"""Types of groups of Connect workers: on the classic protocol, and on KIP-848."""

_STREAMS = ("streams", "classic-streams")
"""Types of groups of Kafka Streams: on the protocol of KIP-1071, and on the classic protocol."""

GroupKind = Literal["consumer", "classic", "share", "streams", "classic-streams", "connect", "connect-kip-848"]

ASSIGNORS: dict[str, tuple[str, ...]] = {
    "consumer": ("uniform", "range"),
    "classic": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "connect": ("default", "compatible", "sessioned"),
    "connect-kip-848": ("default", "compatible", "sessioned"),
    "share": (),
    "streams": (),
    "classic-streams": (),
}
"""The assignors that a group of each type can name; without a name the first is used (consumer groups: the
broker's).
"""


class ScenarioGroup(Part):
    """A group, or ``count`` groups if its name contains ``{n}``; ``{n}`` in names of topics stands for the same number.

    Members join one after the other at the interval ``step``, from ``starts`` on; with ``spread`` each group begins at
    some time within it. ``static`` members have instance ids, members ``by_rack`` have a rack. ``revocation`` is the
    longest time that a member takes to give up partitions, ``metadata_age`` the longest time until a client notices
    changed topics.

    Groups of type ``connect`` are those of Kafka, ``connect-kip-848`` the proposed ones, which have a separate log;
    ``delay`` is how long the work of a worker that left waits for it. An event ``migrate`` restarts the members one
    after the other with the other protocol: ``consumer`` or ``classic``, ``connect-kip-848`` or ``connect``.

    Streams groups: an event ``shutdown`` is a member that asks to shut down the application. With the profile
    ``kip-1071`` of the cluster they may have a regex and static members, an event ``topology`` restarts the members one
    after the other with the next topology epoch, and ``migrate`` moves the threads of a group of type
    ``classic-streams`` to ``streams``, or back.
    """

    type: GroupKind
    count: Many = 1
    topics: list[str] = []
    regex: str | None = None
    members: Annotated[int, Field(ge=0, le=100_000)] = 1
    starts: Duration = 1_000
    spread: Duration = 0
    step: Duration = 200
    static: bool = False
    by_rack: bool = False
    assignor: str | None = None
    session_timeout: Positive | None = None
    rebalance_timeout: Positive = 60_000
    heartbeat: Positive = 5_000
    revocation: Positive = 200
    metadata_age: Positive = 30_000
    commits: ScenarioCommits | None = ScenarioCommits()
    delivery: ScenarioDelivery = ScenarioDelivery()
    connectors: dict[str, Annotated[int, Field(ge=0, le=10_000)]] = {}
    delay: Duration = 60_000
    versions: Versions = (0, 2)
    streams: Streams = Streams()
    config: dict[str, str] = {}
    events: list[Event] = []
    chaos: Chaos | None = None

    @property
    def needs_kip_1071(self) -> str | None:
        """Return what of the group only KIP-1071 defines; None: nothing."""
        if self.type not in _STREAMS:
            return None
        if any(event.migrate is not None for event in self.events):
            return "a migration of Kafka Streams"
        if self.regex is not None:
            return "a regex of a streams group"
        if self.static:
            return "a static member of a streams group"
        return "a new topology" if any(event.topology is not None for event in self.events) else None

    @property
    def family(self) -> Family:
        """Return the log that contains the group."""
        return Family.CONNECT if self.type == "connect-kip-848" else Family.GROUP

    @property
    def migrates_workers(self) -> bool:
        """Whether its workers move to KIP-848 or back: then the group is in two logs."""
        return self.type in _WORKERS and any(event.migrate is not None for event in self.events)

    @property
    def families(self) -> frozenset[Family]:
        """The logs that the group is in."""
        return frozenset((Family.GROUP, Family.CONNECT)) if self.migrates_workers else frozenset((self.family,))

    @property
    def configs(self) -> dict[str, str]:
        """Return the group's own settings, in the form of its brokers."""
        configs = dict(self.config)
        if self.type in ("consumer", "share", "streams") and self.session_timeout is not None:
            configs[f"{self.type}.session.timeout.ms"] = str(self.session_timeout)
        if self.type in _STREAMS and self.streams.standbys:
            configs["streams.num.standby.replicas"] = str(self.streams.standbys)
        return configs

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        known = ASSIGNORS[self.type]
        for named in (self.assignor, *(event.assignor for event in self.events)):
            if named is not None and named not in known:
                raise ValueError(f"no assignor {named!r} for {self.type} groups; known: {', '.join(known) or 'none'}")
        if self.regex is not None and (self.type not in ("consumer", "streams") or self.topics):
            raise ValueError("only consumer and streams groups can have a regex, and then no topics")
        if self.type in ("connect", "connect-kip-848"):
            if self.topics:
                raise ValueError("Connect groups have connectors, no topics")
        elif not self.topics and self.regex is None:
            raise ValueError("a group needs topics")
        for connectors in (self.connectors, *(event.connectors or {} for event in self.events)):
            for name, tasks in connectors.items():
                if Family.CONNECT in self.families and tasks > MOST_TASKS_IN_RECORDS:
                    raise ValueError(
                        f"connector {name} has {tasks} tasks: records of Connect on KIP-848 have room for "
                        f"{MOST_TASKS_IN_RECORDS} (int8 task id)"
                    )
        if self.family is Family.CONNECT and (self.session_timeout is not None or self.config):
            raise ValueError("the coordinator sets the session timeout of Connect groups on KIP-848, not the scenario")
        if self.static and self.type not in ("consumer", "classic", "streams"):
            raise ValueError(f"{self.type} groups have no static members")
        if self.type != "share" and self.delivery != ScenarioDelivery():
            raise ValueError(f"members of {self.type} groups acknowledge no deliveries")
        for event in self.events:
            self._allows(event)
        return self

    def _allows(self, event: Event) -> None:
        only = {
            "migrate": ("consumer", "classic", "streams", "classic-streams", "connect", "connect-kip-848"),
            "connectors": ("connect", "connect-kip-848"),
            "subscribe": ("consumer", "classic", "share"),
            "assignor": ("consumer", "classic", "connect-kip-848"),
            "topology": ("streams",),
            "shutdown": ("streams",),
        }.get(event.action)
        if only is not None and self.type not in only:
            raise ValueError(f"{event.action} is for {' and '.join(only)} groups, not for {self.type} groups")
        if event.deploy is not None and event.deploy.versions is not None and self.family is not Family.CONNECT:
            raise ValueError(f"workers on KIP-848 have versions, members of {self.type} groups have none")
        for kinds in (_WORKERS, _STREAMS):
            if event.migrate is not None and (event.migrate in kinds) != (self.type in kinds):
                raise ValueError(f"members of {self.type} groups cannot migrate to {event.migrate}")
        if event.delete and self.migrates_workers:
            raise ValueError("a group of workers that migrates cannot be deleted")
        if event.action == "replace" and not self.static:
            raise ValueError("replace is for static members")


class Outage(Part):
    """A broker is down for a while. The next replica that is up leads its partitions, and remains leader afterwards."""

    at: Positive
    broker: Annotated[int, Field(ge=0)]
    lasts: Positive = 60_000


class Cluster(Part):
    """The brokers with their racks, the coordinators' settings, and the number of partitions of each log.

    ``share_partitions`` is the number for the share state. A coordinator that takes over needs the time ``loading`` to
    read its partition. With the ``profile`` ``kip-1071`` streams groups do what KIP-1071 defines beyond the release:
    warm-up tasks, topology updates, regexes, static members.
    """

    brokers: Few = 3
    racks: list[str] = []
    partitions: Few = 4
    share_partitions: Few = 2
    profile: Literal["kafka-4.3.1", "kip-1071"] = "kafka-4.3.1"
    config: dict[str, Any] = {}
    outages: list[Outage] = []
    loading: Positive = 500

    @model_validator(mode="after")
    def _one_outage_at_a_time(self) -> Self:
        for number, outage in enumerate(self.outages):
            if outage.broker >= self.brokers:
                raise ValueError(f"no broker has the number {outage.broker}; the last one is {self.brokers - 1}")
            if self.brokers < 2:
                raise ValueError("an outage needs another broker to take over")
            for other in self.outages[:number]:
                if outage.at <= other.at + other.lasts and other.at <= outage.at + outage.lasts:
                    raise ValueError("one outage has to be over before the next one begins")
        return self


class Scenario(Part):
    """A whole scenario; ``topics`` and ``groups`` are by name."""

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    lasts: Positive = 600_000
    cluster: Cluster = Cluster()
    topics: dict[str, ScenarioTopic] = {}
    groups: dict[str, ScenarioGroup] = {}

    @property
    def start_ms(self) -> int:
        """Return the scenario's start, in milliseconds since the epoch; a time without a zone is UTC."""
        start = self.start if self.start.tzinfo else self.start.replace(tzinfo=UTC)
        return round(start.timestamp() * 1_000)

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for kind, entries in (("topic", self.topics), ("group", self.groups)):
            for name, entry in entries.items():
                if (entry.count > 1) != (_NUMBER in name):
                    raise ValueError(
                        f"{kind} {name}: {_NUMBER} in the name needs a count above 1, and the other way round"
                    )
            _require_own_names(kind, {name: entry.count for name, entry in entries.items()})
        for name, topic in self.topics.items():
            if topic.replicas > self.cluster.brokers:
                raise ValueError(f"topic {name}: {topic.replicas} replicas on {self.cluster.brokers} brokers")
            counts = [topic.partitions, *(topic.grows[at] for at in sorted(topic.grows))]
            if sorted(set(counts)) != counts:
                raise ValueError(f"topic {name}: its partition counts {counts} do not increase")
        for name, group in self.groups.items():
            asked = [*group.topics, *(topic for event in group.events for topic in event.subscribe or ())]
            missing = [topic for topic in asked if topic not in self.topics]
            if missing:
                raise ValueError(f"group {name}: no topic is named {missing[0]}")
            if group.needs_kip_1071 is not None and self.cluster.profile != "kip-1071":
                raise ValueError(f"group {name}: {group.needs_kip_1071} needs the profile kip-1071 of the cluster")
        return self

    @property
    def logs(self) -> list[tuple[Family, int]]:
        """Return the log partitions of coordinators; those for workers and share groups only if the scenario has
        such groups.
        """
        counts = {Family.GROUP: self.cluster.partitions}
        if any(Family.CONNECT in group.families for group in self.groups.values()):
            counts[Family.CONNECT] = self.cluster.partitions
        if any(group.type == "share" for group in self.groups.values()):
            counts[Family.SHARE] = self.cluster.share_partitions
        return [(family, partition) for family, count in counts.items() for partition in range(count)]

    def instances(
        self, partition: int, family: Family = Family.GROUP, only: GroupKind | None = None
    ) -> Iterator[tuple[str, int, ScenarioGroup]]:
        """Yield the groups of one log partition: id, number and script; ``only`` those of one type."""
        for name, group in self.groups.items():
            if family not in group.families or only not in (None, group.type):
                continue
            for number, group_id in enumerate(self.ids(name)):
                if log_partition_of(group_id, self.cluster.partitions) == partition:
                    yield group_id, number, group

    def ids(self, name: str) -> Iterator[str]:
        """Yield the ids of the groups with this name, by number."""
        return _names(name, self.groups[name].count)

    def topics_of(self, group: ScenarioGroup) -> list[ScenarioTopic]:
        """Return the topics that the group reads, by name or by its regex."""
        if group.regex is None:
            return [self.topics[name] for name in group.topics]
        expanded = ((topic, each) for name, topic in self.topics.items() for each in _names(name, topic.count))
        # By identity: many names may be of one topic, which cannot be hashed, as it has a dict.
        matched = {id(topic): topic for topic, name in expanded if re2.matching(group.regex, [name])}
        return list(matched.values())

    def topic_name(self, name: str, number: int) -> str:
        """Return the topic that the name stands for in the group with this number."""
        return name.replace(_NUMBER, str(number % self.topics[name].count))


def _names(name: str, count: int) -> Iterator[str]:
    """Yield the names that a name in the scenario stands for, by number."""
    return (name.replace(_NUMBER, str(number)) for number in range(count))


def _require_own_names(kind: str, counts: Mapping[str, int]) -> None:
    """Raise ValueError where two names of the scenario stand for the same name."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in counts:
        alike[_DIGIT.sub("", name.replace(_NUMBER, ""))].append(name)
    for names in alike.values():
        # Most are like no other one: a scenario may have millions of groups, which are not to be named for nothing.
        owners: dict[str, str] = {}
        for name in names if len(names) > 1 else ():
            for each in _names(name, counts[name]):
                if owners.setdefault(each, name) != name:
                    raise ValueError(f"{kind} {name}: {owners[each]} also stands for {each}")
