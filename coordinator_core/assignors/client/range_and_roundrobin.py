"""The assignors of consumers that deal partitions in order, whoever had them: range and round robin.

Range: each topic's partitions in consecutive ranges, by racks where that is possible. Round robin: partitions and
members in order, one each; who does not subscribe is skipped. What other clients than Kafka's do otherwise is data (see
``clients``), as are the orders in which their leaders go through the members: facts of each client's own code, proven
by recorded groups; a client without an entry orders as Kafka's does.

Source: Kafka 4.3.1 ``RangeAssignor`` (KIP-345 for static members, KIP-881 for racks) and ``RoundRobinAssignor``.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.client.racks import Racks, writes_a_rack
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import STRING, utf16
from coordinator_core.java.order import hash_order

MemberOrder = Callable[[LeaderView, Sequence[int]], list[int]]
"""Some members, listed as the JoinGroup response has them, in the order in which they are given partitions."""


def static_first(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """Static members by instance id, then dynamic ones by member id (Kafka's ``MemberInfo``, KIP-345)."""

    def key(m: int) -> tuple[bool, bytes]:
        instance_id = view.specs[m].instance_id
        return instance_id is None, utf16(view.members[m] if instance_id is None else instance_id)

    return sorted(joined, key=key)


def by_id(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """All by member id."""
    return sorted(joined)


def as_joined(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """In the order of the JoinGroup response."""
    return list(joined)


def two_static_by_instance(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """Two static members by instance id, any other two by member id (librdkafka).

    That is no order of all where the member ids of two static members are in the other order, and a dynamic one is
    between: the result is then that of the C library's merge sort.
    """

    def compare(one: int, other: int) -> int:
        a, b = view.specs[one].instance_id, view.specs[other].instance_id
        if a is None or b is None or a == b:
            return one - other
        return -1 if utf16(a) < utf16(b) else 1

    if not joined[1:]:
        return list(joined)
    middle = len(joined) // 2
    halves = deque(two_static_by_instance(view, joined[:middle])), deque(two_static_by_instance(view, joined[middle:]))
    merged = []
    while all(halves):
        merged.append(halves[compare(halves[0][0], halves[1][0]) > 0].popleft())
    return [*merged, *halves[0], *halves[1]]


def last_runs(view: LeaderView, joined: Sequence[int]) -> list[int]:
    """As ``static_first``, without the members that kafka-python loses: of the static members, and of the dynamic ones,
    those of the last run of neighbours among ``joined`` in the JoinGroup response are left.
    """
    runs: dict[bool, list[int]] = {}
    before: bool | None = None
    for m in joined:
        is_static = view.specs[m].instance_id is not None
        if is_static is not before:
            runs[is_static] = []
        runs[is_static].append(m)
        before = is_static
    return static_first(view, [m for run in runs.values() for m in run])


TopicOrder = Callable[[LeaderView, Sequence[int], str], list[int]]
"""The members that subscribe to a topic, in an order of that topic's own."""


def by_hash_of_topic(view: LeaderView, joined: Sequence[int], topic: str) -> list[int]:
    """By the FNV-1a hash of the topic and the member id, over their characters (sarama before 1.35)."""

    def key(m: int) -> int:
        value = 2_166_136_261
        for character in topic + view.members[m]:
            value = (value ^ ord(character)) * 16_777_619 & 0xFFFF_FFFF
        return value

    return sorted(joined, key=key)


Bound = Callable[[int, int, int], int]
"""The first partition of n of the range of member i of m."""


def rounded_down(i: int, partitions: int, members: int) -> int:
    """So that the last members get one more, and not the first ones (kafka-go)."""
    return i * partitions // members


def rounded(i: int, partitions: int, members: int) -> int:
    """To the nearest partition (sarama before 1.34.1)."""
    return int(i * (partitions / members) + 0.5)


@dataclass(frozen=True, slots=True)
class RangeProfile:
    """A range assignor.

    ``members`` is the order in which members are given their ranges, and ``of_topic`` that of each topic, where topics
    differ. ``by_racks``: racks count (KIP-881). ``together_by_racks``: of topics with the same members and numbers of
    partitions, partition n goes first to members in a rack, even where racks make no difference (librdkafka).
    ``bound``: where ranges begin, if not so that the first members get one more.
    """

    members: MemberOrder = static_first
    by_racks: bool = False
    together_by_racks: bool = False
    of_topic: TopicOrder | None = None
    bound: Bound | None = None

    def __call__(self, spec: ClassicGroupSpec, image: TopicImage) -> Assignment[Sequence[TopicPartition]]:
        """Assign ranges in a classic group; each member's partitions are in the order of the leader's list."""
        view = LeaderView(spec.members, image)
        knows_racks = self.by_racks and (not self.together_by_racks or writes_a_rack(spec))
        racks = Racks(view, image if knows_racks else None)
        work: list[list[int]] = [[] for _ in view.members]
        subscribers = self._subscribers(view)
        if self.bound is not None:
            for topic, members in subscribers.items():
                every, count = view.partitions.of_topic(topic), len(members)
                bounds = [self.bound(i, len(every), count) for i in range(count + 1)]
                for member, (first, end) in zip(members, pairwise(bounds), strict=True):
                    work[member] += every[first:end]
            return Assignment(view.result(work))
        shares = [_TopicShares(view, racks, topic, members) for topic, members in subscribers.items() if members]
        by_racks = self.together_by_racks or any(topic.by_racks for topic in shares)
        if by_racks:
            for alike in _copartitioned(shares):
                if len(alike) > 1:
                    _assign_together(alike, work, only_in_racks=self.together_by_racks)
                elif alike[0].by_racks:
                    alike[0].assign_ranges(work, alike[0].rack_matches)
        # Again without racks: what found no member in its own rack.
        for topic_shares in shares:
            topic_shares.assign_ranges(work, lambda member, partition: True)
        if by_racks:
            # Given in two passes they are out of order; Kafka sorts them only where racks counted.
            for partitions in work:
                partitions.sort()
        return Assignment(view.result(work))

    def _subscribers(self, view: LeaderView) -> dict[int, list[int]]:
        """Each topic's members in assignment order; topics as the leader's map of partitions iterates over them."""
        names = dict.fromkeys(name for m in view.order for name in view.specs[m].topics)
        index = view.partitions.index
        # Kafka fills one HashMap from the order of another: keys of one bucket keep the order of the first.
        existing = [name for name in hash_order(STRING, list(names)) if name in index]
        subscribers: dict[int, list[int]] = {index[name]: [] for name in hash_order(STRING, existing)}
        for m in view.order:
            for topic in dict.fromkeys(view.subscribed[m]):
                subscribers[topic].append(m)
        if self.of_topic is not None:
            every = view.partitions.topics
            return {topic: self.of_topic(view, joined, every[topic]) for topic, joined in subscribers.items()}
        # Most topics have the same subscribers: they are put in order once.
        ranked = {joined: self.members(view, joined) for joined in {tuple(members) for members in subscribers.values()}}
        return {topic: ranked[tuple(joined)] for topic, joined in subscribers.items()}


class _TopicShares:
    """One topic: who may take how many more of its partitions, and which are left."""

    def __init__(self, view: LeaderView, racks: Racks, topic: int, members: list[int]) -> None:
        self.members = members
        self.partitions = view.partitions.of_topic(topic)
        self.left: dict[int, None] = dict.fromkeys(self.partitions)
        self.taken = dict.fromkeys(members, 0)
        self.quota, self.extras = divmod(len(self.partitions), len(members))
        self.racks = racks
        self.by_racks = racks.matter(members, self.partitions)

    def room(self, member: int) -> int:
        """Return how many more partitions the member may take; one of the extras while any is left."""
        return max(0, self.quota + (self.extras > 0) - self.taken[member])

    def take(self, member: int, partitions: Sequence[int], work: list[list[int]]) -> None:
        work[member].extend(partitions)
        self.taken[member] += len(partitions)
        if self.taken[member] > self.quota:
            self.extras -= 1
        for partition in partitions:
            del self.left[partition]

    def rack_matches(self, member: int, partition: int) -> bool:
        """Whether the member has no rack, or a replica is in it."""
        rack = self.racks.of_member[member]
        return not rack or bool(rack & self.racks.of_partition[partition])

    def assign_ranges(self, work: list[list[int]], may_assign: Callable[[int, int], bool]) -> None:
        for member in self.members:
            if not self.left:
                return
            allowed = (partition for partition in self.left if may_assign(member, partition))
            chosen = list(islice(allowed, self.room(member)))
            if chosen:
                self.take(member, chosen, work)


def _copartitioned(shares: list[_TopicShares]) -> list[list[_TopicShares]]:
    """Topics of equal partition counts whose subscribers are the same, together; those without racks left out."""
    groups: dict[tuple[tuple[int, ...], int], list[_TopicShares]] = {}
    for topic in shares:
        if any(topic.racks.of_member[member] for member in topic.members):
            groups.setdefault((tuple(topic.members), len(topic.partitions)), []).append(topic)
    return list(groups.values())


def _assign_together(topics: list[_TopicShares], work: list[list[int]], *, only_in_racks: bool) -> None:
    """Give partition n of all the topics to the first member whose rack matches each of them.

    ``only_in_racks``: a member without a rack matches none, else it matches all.
    """
    in_racks = (member for member in topics[0].members if topics[0].racks.of_member[member] or not only_in_racks)
    open_members = list(in_racks)
    for number in range(len(topics[0].partitions)):
        for member in open_members:
            if all(t.room(member) > 0 and t.rack_matches(member, t.partitions[number]) for t in topics):
                break
        else:
            continue
        for topic in topics:
            topic.take(member, [topic.partitions[number]], work)
        if not any(topic.room(member) for topic in topics):
            open_members.remove(member)


PartitionOrder = Callable[[LeaderView, ClassicGroupSpec], Iterable[int]]
"""The partitions that are dealt, in order."""


def by_topic(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """All partitions by topic and number."""
    return range(view.partitions.total)


def by_text(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """All partitions by the text topic-number, so that 10 comes before 2 (sarama)."""
    names = view.partitions.names()
    return sorted(range(view.partitions.total), key=lambda p: f"{names[p][0]}-{names[p][1]}")


def of_leader(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """The partitions of the topics to which the leader subscribes, in the order of its list (kafkajs, platformatic)."""
    leader = spec.members.get(spec.leader) or next(iter(spec.members.values()))
    index = view.partitions.index
    topics = [index[name] for name in dict.fromkeys(leader.topics) if name in index]
    return [partition for topic in topics for partition in view.partitions.of_topic(topic)]


def as_known(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """The same in the order in which the leader's application lists its topics: its subscription has them sorted."""
    place = {name: i for i, name in enumerate(spec.topic_order)}
    names = view.partitions.topics
    partitions = of_leader(view, spec)
    return sorted(partitions, key=lambda p: place.get(names[view.partitions.topic_of[p]], 0)) if place else partitions


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """A round robin assignor.

    ``members`` and ``partitions`` are the orders in which it deals. ``restarts``: it begins with the first member for
    each topic; ``of_topic``: in an order of members of that topic's own. ``to_anyone``: members get partitions to which
    they do not subscribe. ``fails_on_skip``: it fails where a member would have to be skipped.
    """

    members: MemberOrder = static_first
    partitions: PartitionOrder = by_topic
    restarts: bool = False
    of_topic: TopicOrder | None = None
    to_anyone: bool = False
    fails_on_skip: bool = False

    def __call__(self, spec: ClassicGroupSpec, image: TopicImage) -> Assignment[Sequence[TopicPartition]]:
        """Assign a classic group round robin; raises AssignorError where the client's own code fails."""
        if not spec.members:
            raise AssignorError("IllegalArgumentException", "CircularIterator can only be used on non-empty lists")
        view = LeaderView(spec.members, image)
        circle = self.members(view, view.order)
        subscribed = [set(topics) for topics in view.subscribed]
        work: list[list[int]] = [[] for _ in view.members]
        turn, before = 0, -1
        for partition in self.partitions(view, spec):
            topic = view.partitions.topic_of[partition]
            if self.restarts and topic != before:
                turn, before = 0, topic
                if self.of_topic is not None:
                    circle = self.of_topic(view, circle, view.partitions.topics[topic])
            skipped = 0
            while topic not in subscribed[circle[turn]] and not self.to_anyone:
                turn, skipped = (turn + 1) % len(circle), skipped + 1
                if self.fails_on_skip or skipped == len(circle):
                    raise AssignorError("KeyError", f"no member to give {view.partitions.topics[topic]} to")
            work[circle[turn]].append(partition)
            turn = (turn + 1) % len(circle)
        return Assignment(view.result(work))
