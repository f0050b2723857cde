"""The partitions that members of a sticky group say they own, and which of these claims count.

Source: Kafka's ``AbstractStickyAssignor`` of 2.4, 2.6, 3.0, 3.5 and 4.3.1 (``allSubscriptionsEqual``,
``prepopulateCurrentAssignments``), from which other clients descend, ``StickyAssignor.memberData`` and
``CooperativeStickyAssignor.memberData`` of 3.3.2 and 4.3.1; facts of other clients' own code, proven by recorded
groups.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.errors import DecodeError
from coordinator_core.java.hash_codes import TOPIC_PARTITION
from coordinator_core.java.order import hash_order
from coordinator_core.record_fields.embedded import (
    CooperativeStickyAssignorUserData,
    KafkaPythonStickyUserData,
    StickyAssignorUserData,
)
from coordinator_core.wire.embedded import decode_blob

NO_GENERATION = -1


def generation_or_none(generation: int | None) -> int:
    """Return the generation as a number that can be compared: -1 for None."""
    return NO_GENERATION if generation is None else generation


@dataclass(frozen=True, slots=True)
class MemberData:
    """The partitions that a member says it owns, and the generation in which it did (None: it does not say)."""

    partitions: Sequence[TopicPartition]
    generation: int | None


@dataclass(frozen=True, slots=True)
class ClaimedPartitions:
    """The owners of partitions by the members' claims.

    ``owned[m]`` holds the partitions that member m keeps a claim on; ``contested`` those that two members claimed in
    one generation. ``equal``: the client treats all subscriptions as equal. ``former`` names the owner of a partition
    in an earlier generation. ``any``: some member claims something.
    """

    owned: list[list[int]]
    contested: set[int]
    equal: bool
    former: dict[int, int] = field(default_factory=dict)
    any: bool = True


Claims = list[tuple[int | None, int]]
"""To one partition: the generation (None: not named), and the member."""
ClaimRule = Callable[[LeaderView, Sequence[MemberData], int | None], ClaimedPartitions]
"""Group, what its members say, the largest generation that the leader saw before -> the claims that count."""


def latest_of_two(view: LeaderView, data: Sequence[MemberData], memory: int | None) -> ClaimedPartitions:
    """Of two claims to a partition, the one of the later generation counts (Kafka 3.5 and later).

    The rival's generation is that of its subscription, even if the claims are from its user data: Kafka's sticky
    assignor compares these two.
    """
    owned: list[list[int]] = [[] for _ in view.members]
    contested: set[int] = set()
    holder: dict[int, int] = {}
    index, partition_of = view.partitions.index, view.partitions.of
    for m in view.order:
        generation = generation_or_none(data[m].generation)
        claims = owned[m]
        for name, number in data[m].partitions:
            topic = index.get(name)
            if topic is None:
                continue
            partition = partition_of(topic, number)
            rival = holder.get(partition)
            if rival is None:
                claims.append(partition)
                holder[partition] = m
                continue
            rival_generation = generation_or_none(view.specs[rival].generation)
            if generation < rival_generation:
                continue
            # Two claims of one generation: neither of them counts, and the partition is given anew.
            if generation == rival_generation:
                contested.add(partition)
            else:
                claims.append(partition)
            if partition in owned[rival]:
                owned[rival].remove(partition)
            holder[partition] = m
    equal = _all_equal(view)
    former = {} if equal else former_owners(view, data, largest_generation(memory, data))
    return ClaimedPartitions(owned, contested, equal, former)


def of_latest_generation(
    view: LeaderView, data: Sequence[MemberData], memory: int | None, *, both_keep: bool = False
) -> ClaimedPartitions:
    """Only claims of the largest generation count, that the leader remembers included (Kafka 3.0 to 3.4).

    ``both_keep``: two that claim a partition in one generation keep it (Kafka 2.6 to 2.8.0).
    """
    owned: list[list[int]] = [[] for _ in view.members]
    contested: set[int] = set()
    holder: dict[int, int] = {}
    largest = generation_or_none(memory)
    for m in view.order:
        generation = data[m].generation
        if generation_or_none(generation) < largest:
            continue
        if generation is not None and generation > largest:
            largest = generation
            # A later generation proves that all claims before it are old: those members missed a rebalance.
            for claims in owned:
                claims.clear()
            contested.clear()
            holder.clear()
        for name, number in data[m].partitions:
            topic = view.partitions.index.get(name)
            if topic is None:
                continue
            partition = view.partitions.of(topic, number)
            rival = holder.get(partition)
            holder[partition] = m
            if rival is None or both_keep:
                owned[m].append(partition)
                continue
            contested.add(partition)
            if partition in owned[rival]:
                owned[rival].remove(partition)
    equal = _all_equal(view)
    former = {} if equal else former_owners(view, data, largest_generation(memory, data))
    return ClaimedPartitions(owned, contested, equal, former)


def of_present_generation(
    view: LeaderView, data: Sequence[MemberData], memory: int | None, *, both_keep: bool = False
) -> ClaimedPartitions:
    """As ``of_latest_generation``, without a memory; each claim where subscriptions differ (Kafka 2.6 to 2.8)."""
    if _all_equal(view):
        return of_latest_generation(view, data, None, both_keep=both_keep)
    return of_each_generation(view, data, memory)


def of_each_generation(view: LeaderView, data: Sequence[MemberData], memory: int | None) -> ClaimedPartitions:
    """The claim of the latest generation counts, and the one before it names the former owner (Kafka 2.4 and 2.5).

    Of two in one generation the first counts, or the last where members do not name theirs.
    """

    equal = _same_topics(view, in_order=False)
    return _by_generation(view, data, _first, lambda names: hash_order(TOPIC_PARTITION, names), equal)


def _first(claims: Claims, last: Collection[int | None] = (None,)) -> list[int]:
    """Of two claims in one generation the first counts, or the last in one of ``last``."""
    by_generation: dict[int, int] = {}
    for generation, m in claims:
        if generation in last or generation not in by_generation:
            by_generation[generation_or_none(generation)] = m
    return [by_generation[generation] for generation in sorted(by_generation, reverse=True)]


def first_in_python(view: LeaderView, data: Sequence[MemberData], memory: int | None) -> ClaimedPartitions:
    """As ``of_each_generation``, in the order of the claims; in generation 0 the last claim counts (kafka-python,
    aiokafka).
    """
    return _by_generation(view, data, partial(_first, last=(None, 0)), list, _same_topics(view, in_order=True))


def newest_key_first(view: LeaderView, data: Sequence[MemberData], memory: int | None) -> ClaimedPartitions:
    """As ``of_each_generation``, from the last claimed partition on; one claimed twice in a generation counts as
    claimed by nobody (librdkafka).
    """

    def settle(claims: Claims) -> list[int]:
        by_generation = sorted(((generation_or_none(each), m) for each, m in claims), key=lambda claim: -claim[0])
        if any(count > 1 for count in Counter(generation for generation, _ in by_generation).values()):
            return []
        return [m for _, m in by_generation]

    equal = _same_topics(view, in_order=False)
    return _by_generation(view, data, settle, lambda names: list(reversed(names)), equal, nowhere=False)


def _by_generation(
    view: LeaderView,
    data: Sequence[MemberData],
    settle: Callable[[Claims], list[int]],
    order: Callable[[list[TopicPartition]], Iterable[TopicPartition]],
    equal: bool,
    nowhere: bool = True,
) -> ClaimedPartitions:
    """Settle the claims to each partition; ``settle`` returns the members that count, the latest first.

    ``nowhere``: claims to partitions that do not exist are claims, too.
    """
    claims: dict[TopicPartition, Claims] = {}
    for m in view.order:
        for claimed in data[m].partitions:
            claims.setdefault(claimed, []).append((data[m].generation, m))
    owned: list[list[int]] = [[] for _ in view.members]
    former: dict[int, int] = {}
    index, counts = view.partitions.index, view.partitions.counts
    for name, number in order(list(claims)):
        topic = index.get(name)
        if topic is None or not 0 <= number < counts[topic]:
            continue
        partition = view.partitions.of(topic, number)
        members = settle(claims[name, number])
        if members:
            owned[members[0]].append(partition)
        if len(members) > 1:
            former[partition] = members[1]
    return ClaimedPartitions(owned, set(), equal, former, any=bool(claims) if nowhere else any(owned))


def _same_topics(view: LeaderView, *, in_order: bool) -> bool:
    """Whether all members subscribe to the same of the existing topics, or to equal lists of them."""
    lists = [topics if in_order else sorted(set(topics)) for topics in view.subscribed]
    return all(topics == lists[0] for topics in lists)


def _all_equal(view: LeaderView) -> bool:
    """Whether all subscribe to the same topics, as Kafka judges: members that come first with no topic do not count."""
    return len(before_a_difference(view)) == len(view.order)


def before_a_difference(view: LeaderView) -> list[int]:
    """Return the members that Kafka compares before it finds one with other topics; all, if there is none."""
    same: set[str] = set()
    first: Sequence[str] = ()
    for place, m in enumerate(view.order):
        topics = view.specs[m].topics
        # Most members have the very same list: equal lists need no comparison as sets.
        if same and topics == first:
            continue
        if not same:
            first, same = topics, set(topics)
        elif len(topics) != len(same) or not same.issuperset(topics):
            return view.order[:place]
    return view.order


def largest_generation(memory: int | None, data: Sequence[MemberData]) -> int:
    """Return the largest generation that the leader or a member knows."""
    return max(map(generation_or_none, [memory, *(member.generation for member in data)]))


def former_owners(view: LeaderView, data: Sequence[MemberData], max_generation: int) -> dict[int, int]:
    """Return the owner of each partition in the latest generation before the current one, from members that fell
    behind.
    """
    owners: dict[int, tuple[int, int]] = {}
    index, partition_of = view.partitions.index, view.partitions.of
    for m in view.order:
        generation = generation_or_none(data[m].generation)
        # Only who fell behind has a former claim: those of the present generation are in the claims themselves.
        if generation >= max_generation:
            continue
        for name, number in data[m].partitions:
            if name not in index:
                continue
            partition = partition_of(index[name], number)
            if partition not in owners or generation > owners[partition][1]:
                owners[partition] = m, generation
    return {partition: m for partition, (m, _) in owners.items()}


Reader = Callable[[ClassicMemberSpec], MemberData]
"""How an assignor reads what a member owns."""


def sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return partitions and generation of the user data (version 0 has no generation); nothing if it is unreadable."""
    return _previous(member, StickyAssignorUserData, None)


def versioned_sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return the same of the layout of kafka-python."""
    return _previous(member, KafkaPythonStickyUserData, NO_GENERATION)


def _previous(
    member: ClassicMemberSpec, form: type[StickyAssignorUserData | KafkaPythonStickyUserData], without: int | None
) -> MemberData:
    """Read user data of this form; ``without``: the generation where there is none."""
    if not member.user_data:
        return MemberData((), without)
    try:
        fields = decode_blob(form, member.user_data).fields
    except DecodeError:
        return MemberData((), NO_GENERATION)
    flat = [(topic["topic"], number) for topic in fields["previousAssignment"] for number in topic["partitions"]]
    return MemberData(flat, fields.get("generation"))


def sticky_data_of_generation(member: ClassicMemberSpec) -> MemberData:
    """Return what ``sticky_data`` does where there is a generation; else nothing (aiokafka)."""
    data = sticky_data(member)
    return data if data.generation is not None else MemberData((), NO_GENERATION)


def cooperative_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions, with the generation of the subscription (version 2) or else that of the user data."""
    if member.generation is not None:
        return MemberData(member.owned or (), member.generation)
    return cooperative_user_data(member)


def cooperative_user_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions with the generation of the user data (Kafka 2.8.1 to 3.4)."""
    owned = member.owned or ()
    if member.user_data is None:
        return MemberData(owned, None)
    try:
        generation = decode_blob(CooperativeStickyAssignorUserData, member.user_data).fields["generation"]
    except DecodeError:
        generation = NO_GENERATION
    return MemberData(owned, generation)


def owned_without_generation(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions, of no known generation (Kafka before 2.8.1)."""
    return MemberData(member.owned or (), None)


def owned_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions with the generation of the subscription alone (librdkafka, kafka-python)."""
    return MemberData(member.owned or (), generation_or_none(member.generation))


def owned_or_sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions where the subscription has a generation, else the user data (franz-go)."""
    return sticky_data(member) if member.generation is None else owned_data(member)
