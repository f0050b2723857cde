"""The input of server-side assignors, in the order in which the group coordinator presents it.

The views below hold the part of a group's state that decides the order. Feed them the records of the coordinator's log,
in the log's order (a member's record, its tombstone, a target, its tombstone, a resolved regular expression); then
``spec`` returns what the assignor is called with while some members are joining, updated or replaced.

Source: Kafka 4.3.1, TargetAssignmentBuilder and ModernGroup.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    GroupSpec,
    MemberSpec,
    Partitions,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
    Tasks,
)
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import STRING, UUID
from coordinator_core.java.order import HashMap, TimelineHashMap, copied_order, copy_capacity, hash_order
from coordinator_core.java.order import int_order as _int_order

M = TypeVar("M", "Subscriber", "Process")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member of a consumer or share group: the names it subscribes to, as its record or request lists them."""

    names: tuple[str, ...] = ()
    regex: str | None = None
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A member of a streams group: the process that it is a thread of."""

    process_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)


def presented_members(members: Iterable[str], updates: Mapping[str, object | None]) -> list[str]:
    """Return member ids as an assignor sees them: the group's, in its map's order, then the updates (None: removed)."""
    present = list(members)
    # Where nothing is removed, the keys alone tell the order; a key that is removed may have made the table grow
    # before.
    if all(update is not None for update in updates.values()):
        known = set(present)
        new = [member for member in hash_order(STRING, list(updates)) if member not in known]
        return hash_order(STRING, present + new)
    specs: HashMap[str, None] = HashMap(STRING)
    specs.update((member, None) for member in present)
    for member in hash_order(STRING, list(updates)):
        if updates[member] is None:
            specs.pop(member, None)
        else:
            specs[member] = None
    return list(specs)


def presented_sets(entries: Iterable[tuple[str, Sequence[int]]], jdk: int, *, ids: bool) -> Partitions:
    """Return a target as the coordinator keeps it after it has read its record: a HashMap of copied HashSets.

    The keys are topic ids (``ids``) or subtopology ids. A number that a record lists twice is in its set once.
    """
    sets = {key: _int_order([*dict.fromkeys(numbers)], copy_capacity(len(numbers), jdk)) for key, numbers in entries}
    if len(sets) < 2:
        return sets
    return {key: sets[key] for key in hash_order(UUID if ids else STRING, list(sets))}


def _replaced(updates: Mapping[str, M | None], static: Mapping[str, str], member: str) -> str:
    """Whose target an updated member starts from: its own, or that of the static member whose place it takes."""
    update = updates.get(member)
    if update is None or update.instance_id is None:
        return member
    return static.get(update.instance_id, member)


class SubscriptionView:
    """The state of a consumer or share group that decides what its assignor sees."""

    def __init__(self, group_type: AssignedGroupType = AssignedGroupType.CONSUMER, *, jdk: int = 17) -> None:
        self.type = group_type
        self.jdk = jdk
        self.members: TimelineHashMap[str, Subscriber] = TimelineHashMap(STRING)
        self.targets: dict[str, Partitions] = {}
        self.assigned: dict[str, dict[int, str]] = {}
        self.static: dict[str, str] = {}
        self.regexes: dict[str, list[str]] = {}
        self.homogeneous = True
        self._named: Counter[str] = Counter()
        self._matched: Counter[str] = Counter()
        self._subscribed_regexes: Counter[str] = Counter()

    def put_member(self, member: str, subscriber: Subscriber) -> None:
        """Apply a member's metadata record."""
        self._count(self.members.get(member), -1)
        self._count(subscriber, +1)
        self.members[member] = subscriber
        if subscriber.instance_id is not None:
            self.static[subscriber.instance_id] = member
        self.homogeneous = self.rejudged()

    def put_again(self, member: str) -> None:
        """Apply a member's current assignment record: the coordinator puts the member into its map again.

        That can make the map grow, and subscriptions that were resolved since then are compared again.
        """
        self.members[member] = self.members.get(member, Subscriber())
        if self._subscribed_regexes:
            self.homogeneous = self.rejudged()

    def restore(self, members: TimelineHashMap[str, Subscriber], regexes: dict[str, list[str]]) -> None:
        """Take the members and resolved regular expressions of another view of the same group."""
        self.members, self.regexes = members, regexes
        for subscriber in members.values():
            self._count(subscriber, +1)
        for topics in regexes.values():
            self._matched.update(topics)

    def remove_member(self, member: str) -> None:
        """Apply the tombstone of a member's metadata record."""
        old = self.members.pop(member, None)
        self._count(old, -1)
        if old is not None and old.instance_id is not None and self.static.get(old.instance_id) == member:
            del self.static[old.instance_id]
        self.homogeneous = self.rejudged()

    def put_target(self, member: str, entries: Iterable[tuple[str, Sequence[int]]]) -> None:
        """Apply a member's target assignment record: topic ids and partitions in its order."""
        target = presented_sets(entries, self.jdk, ids=True)
        self._reassign(member, self.targets.get(member, {}), target)
        self.targets[member] = target

    def remove_target(self, member: str) -> None:
        """Apply the tombstone of a member's target assignment record."""
        self._reassign(member, self.targets.pop(member, {}), {})

    def resolve(self, regex: str, topics: Sequence[str] | None) -> None:
        """Apply the record of a resolved regular expression, or its tombstone (None)."""
        self._matched.subtract(self.regexes.pop(regex, ()))
        if topics is not None:
            self.regexes[regex] = copied_order(STRING, topics, self.jdk)
            self._matched.update(self.regexes[regex])

    def rejudged(self) -> bool:
        """Whether the group counts as homogeneous now; ``homogeneous`` is what was decided earlier."""
        return self._judge(self._named, self._matched, self._subscribed_regexes, len(self.members))

    def judge(self, member: str, subscriber: Subscriber) -> bool:
        """Whether the group counts as homogeneous once this member joins, or has this subscription."""
        replaced = _replaced({member: subscriber}, self.static, member)
        old = self.members.get(replaced)
        named, matched, regexes = Counter(self._named), Counter(self._matched), Counter(self._subscribed_regexes)
        if old is not None:
            named.subtract(set(old.names))
            # The last member that gives up a regular expression takes its topics away with it.
            if old.regex and old.regex != subscriber.regex and regexes[old.regex] == 1:
                matched.subtract(self.regexes.get(old.regex, ()))
            regexes.subtract([old.regex] if old.regex else ())
        named.update(set(subscriber.names))
        regexes.update([subscriber.regex] if subscriber.regex else ())
        return self._judge(named, matched, regexes, len(self.members) + (old is None))

    def spec(
        self,
        image: TopicImage,
        updates: Mapping[str, Subscriber | None] | None = None,
        *,
        homogeneous: bool | None = None,
        assignable: Mapping[str, Collection[int]] | None = None,
        entered: Collection[str] = (),
    ) -> GroupSpec:
        """Return the assignor's input while ``updates`` (None: removed) replace members of the group.

        ``homogeneous`` overrides what the group itself has decided; ``assignable`` has a share group's initialised
        partitions. ``entered`` are updated members that the coordinator put into its map before (share groups: a member
        that joins).
        """
        updates = updates or {}
        members = self.members
        if entered:
            members = TimelineHashMap.restored(STRING, members.capacity, members.items())
            members.update(dict.fromkeys(entered, Subscriber()))
        # Members of a large group share few subscriptions: each is looked up once.
        subscriptions: dict[tuple[tuple[str, ...], str | None], tuple[tuple[str, ...], int]] = {}
        specs: dict[str, MemberSpec] = {}
        for member in presented_members(members, updates):
            subscriber = updates.get(member) or self.members[member]
            key = subscriber.names, subscriber.regex
            if key not in subscriptions:
                subscriptions[key] = self._subscription(subscriber, image)
            topics, names = subscriptions[key]
            holder = member
            # Share groups have no static members: nobody begins there with the target of another.
            if self.type is AssignedGroupType.CONSUMER:
                holder = _replaced(updates, self.static, member)
            specs[member] = MemberSpec(
                topics, self.targets.get(holder, {}), subscriber.instance_id, subscriber.rack_id, names
            )
        judged = self.homogeneous if homogeneous is None else homogeneous
        return GroupSpec(specs, judged, self.assigned, assignable, self.type)

    def _subscription(self, subscriber: Subscriber, image: TopicImage) -> tuple[tuple[str, ...], int]:
        """Ids of the existing subscribed topics, and the count of subscribed names."""
        names = copied_order(STRING, subscriber.names, self.jdk)
        matched = self.regexes.get(subscriber.regex, []) if subscriber.regex else []
        if names and matched:
            # As Kafka's UnionSet iterates: the larger set, then what only the other one has.
            large, small = (names, matched) if len(names) > len(matched) else (matched, names)
            names = large + [name for name in small if name not in set(large)]
        elif matched:
            names = matched
        return tuple(image.by_name[name].id for name in names if name in image.by_name), len(names)

    def _count(self, subscriber: Subscriber | None, by: int) -> None:
        if subscriber is not None:
            for name in set(subscriber.names):
                self._named[name] += by
            if subscriber.regex:
                self._subscribed_regexes[subscriber.regex] += by

    def _judge(self, named: Counter[str], matched: Counter[str], regexes: Counter[str], members: int) -> bool:
        """KIP-848: homogeneous when all subscribe to the same names, or all to one regular expression and no names."""
        topics = {topic for counts in (named, matched) for topic, count in counts.items() if count}
        used = [count for count in regexes.values() if count]
        if not used:
            return all(named[topic] == members for topic in topics)
        return used == [members] and all(matched[topic] == 1 and not named[topic] for topic in topics)

    def _reassign(self, member: str, old: Partitions, new: Partitions) -> None:
        """Keep the inverted target assignment, in which the newest holder of a partition wins."""
        for topic in {**old, **new}:
            holders = self.assigned.setdefault(topic, {})
            before, after = old.get(topic, ()), new.get(topic, ())
            for partition in set(before).difference(after):
                if holders.get(partition) == member:
                    del holders[partition]
            holders.update(dict.fromkeys(set(after).difference(before), member))
            if not holders:
                del self.assigned[topic]


class StreamsView:
    """The state of a streams group that decides what its assignor sees."""

    def __init__(self, *, jdk: int = 17) -> None:
        self.jdk = jdk
        self.members: TimelineHashMap[str, Process] = TimelineHashMap(STRING)
        self.targets: dict[str, Tasks] = {}
        self.static: dict[str, str] = {}

    def put_member(self, member: str, process: Process) -> None:
        """Apply a member's metadata record."""
        self.members[member] = process
        if process.instance_id is not None:
            self.static[process.instance_id] = member

    def put_again(self, member: str) -> None:
        """Apply a member's current assignment record: the coordinator puts the member into its map again, which
        may grow.
        """
        self.members[member] = self.members.get(member, Process(""))

    def remove_member(self, member: str) -> None:
        """Apply the tombstone of a member's metadata record."""
        old = self.members.pop(member, None)
        if old is not None and old.instance_id is not None and self.static.get(old.instance_id) == member:
            del self.static[old.instance_id]

    def put_target(self, member: str, target: Tasks) -> None:
        """Apply a member's target assignment record: tasks by role, subtopologies and partitions in its order."""
        active, standby, warmup = (
            presented_sets(role.items(), self.jdk, ids=False) for role in (target.active, target.standby, target.warmup)
        )
        self.targets[member] = Tasks(active, standby, warmup)

    def remove_target(self, member: str) -> None:
        """Apply the tombstone of a member's target assignment record."""
        self.targets.pop(member, None)

    def spec(
        self,
        subtopologies: Sequence[SubtopologyTasks],
        configs: StreamsConfigs,
        updates: Mapping[str, Process | None] | None = None,
    ) -> StreamsGroupSpec:
        """Return the assignor's input while ``updates`` (None: removed) replace members of the group."""
        updates = updates or {}
        specs: dict[str, StreamsMemberSpec] = {}
        for member in presented_members(self.members, updates):
            process = updates.get(member) or self.members[member]
            specs[member] = StreamsMemberSpec(
                process.process_id,
                self.targets.get(_replaced(updates, self.static, member), Tasks()),
                process.instance_id,
                process.rack_id,
                process.client_tags,
            )
        return StreamsGroupSpec(specs, subtopologies, configs)


@dataclass(slots=True)
class AssignorVotes:
    """How many members ask for each assignor. The order is the coordinator's own, which decides if votes are equal."""

    counts: TimelineHashMap[str, int] = field(default_factory=lambda: TimelineHashMap(STRING))

    def change(self, old: str | None, new: str | None) -> None:
        """Count that a member changed the assignor it asks for (None: none)."""
        if old is not None:
            count = self.counts.get(old, 0) - 1
            if count > 0:
                self.counts[old] = count
            else:
                self.counts.pop(old, None)
        if new is not None:
            self.counts[new] = self.counts.get(new, 0) + 1

    def preferred(self, old: str | None, new: str | None) -> str | None:
        """Return what most members would ask for if one changed from ``old`` to ``new``; None if no member asks
        for an assignor.
        """
        counts: HashMap[str, int] = HashMap(STRING, len(self.counts) * 4 // 3 + 1)
        counts.update(self.counts)
        if old is not None:
            count = counts.get(old, 0) - 1
            if count > 0:
                counts[old] = count
            else:
                counts.pop(old, None)
        if new is not None:
            # Java's ``compute``, as Kafka calls it, puts a new name at the head of its bucket: the order decides
            # between equals.
            counts[new] = counts.compute_if_absent(new, int) + 1
        return max(counts, key=counts.__getitem__, default=None)
