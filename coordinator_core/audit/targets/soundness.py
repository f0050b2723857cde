"""What holds of every assignment of a classic group of consumers, whichever client made it, and by whatever algorithm.

Nothing goes to two, nothing to a member that does not subscribe to it, nothing that is not there, no partition of a
subscribed topic to nobody, and none to a member while another one still owns it (KIP-429). Of sticky assignors (KIP-54)
moreover: members that subscribe to the same have shares that differ by one at most, and no more is taken from them than
that needs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from coordinator_core.assignors.client.claimed_partitions import Reader
from coordinator_core.assignors.client.leader_view import ASSIGNS_ALL, Serialised, TopicPartition
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.audit.targets.verdict import broken_invariants, described, units
from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.classic.protocols import COOPERATIVE_STICKY
from coordinator_core.history.holdings import WorkUnit

Joined = Mapping[str, ClassicMemberSpec]
"""By member id, the members with their subscriptions."""
Given = Mapping[str, Serialised]
"""By member id, the recorded assignments."""
STICKY = frozenset(("sticky", COOPERATIVE_STICKY))
MOST_NAMED = 5
"""A text names at most this many partitions."""


def meant(protocol: str, texts: Sequence[str]) -> str:
    """Return what is not known of an application's own assignor: it may give a partition to several members, as Faust
    does with tables that have standbys, or leave some out.
    """
    return f"whether the assignor {protocol}, which no known client has, means it: {'; '.join(texts[:MOST_NAMED])}"


def breaks_subscriptions(joined: Joined, given: Given, *, shared: bool = False) -> list[str]:
    """Name what is given to two, unless ``shared``, or to one that does not subscribe to it, whatever topics there are.

    A member of a cooperative group may keep what it owns and does not subscribe to any more, as its topic is gone.
    """
    everything = {unit for work in given.values() for unit in units(work)}
    wanted = {}
    for member, had in joined.items():
        topics, owned = {*had.topics}, {*(had.owned or ())}
        wanted[member] = {unit for unit in everything if unit.name in topics or (unit.name, unit.number) in owned}
    return broken_invariants(
        joined, given, wanted, shared=shared, name_of=str, unwanted="which does not subscribe to it"
    )


def given_to_nobody(protocol: str, joined: Joined, given: Given, image: TopicImage) -> list[str]:
    """Name the partitions of subscribed topics that no member has; what a member owns may be withheld for a round."""
    there = {partition for work in given.values() for partition in _partitions(work)}
    if protocol not in ASSIGNS_ALL:
        there.update(chain.from_iterable(had.owned or () for had in joined.values()))
    subscribers: dict[str, str] = {}
    for member, had in joined.items():
        for topic in had.topics:
            subscribers.setdefault(topic, member)
    return [
        f"{described(WorkUnit('', topic, number), str)}: given to no member, though {member} subscribes to it"
        for topic, member in sorted(subscribers.items())
        if topic in image.by_name
        for number in range(image.by_name[topic].partitions)
        if (topic, number) not in there
    ]


def beyond_topics(given: Given, image: TopicImage) -> list[str]:
    """Name what is given of topics that there are, and is no partition of theirs."""
    return [
        f"{described(WorkUnit('', topic, number), str)}: given to {member}, and there is no such partition"
        for member, work in given.items()
        for topic, number in _partitions(work)
        if topic in image.by_name and number >= image.by_name[topic].partitions
    ]


def breaks_stickiness(
    protocol: str,
    joined: Joined,
    given: Given,
    read: Reader,
    *,
    racks_first: bool = False,
    gone: AbstractSet[str] = frozenset(),
) -> Iterator[str]:
    """Name what a sticky assignor must not do to these members; ``read`` says what they own.

    ``racks_first``: it may take what a member owns to give it to one in the rack of the partition's leader. What
    members own of topics that are ``gone``, or that none of them subscribes to any more, is no part of the shares.

    Where members subscribe to different topics, or two claim the same, only what is given while another owns it shows.
    """
    held = {member: {*read(had).partitions} for member, had in joined.items()}
    now = {member: {*_partitions(given.get(member, {}))} for member in joined}
    owners = Counter(chain.from_iterable(held.values()))
    withheld: set[TopicPartition] = set()
    if protocol == COOPERATIVE_STICKY:
        still = {partition: member for member, had in joined.items() for partition in had.owned or ()}
        for member, work in now.items():
            for topic, number in sorted(work):
                owner = still.get((topic, number), member)
                if owner != member and (topic, number) not in {*(joined[member].owned or ())}:
                    unit = described(WorkUnit("", topic, number), str)
                    yield f"{unit}: given to {member} while {owner} still owns it"
        withheld = {*still}.difference(*now.values())
    if len({frozenset(had.topics) for had in joined.values()}) > 1 or owners.total() > len(owners):
        return
    shared = {topic for had in joined.values() for topic in had.topics if topic not in gone}
    now = {member: {unit for unit in work if unit[0] in shared} for member, work in now.items()}
    withheld = {unit for unit in withheld if unit[0] in shared}
    there = withheld.union(*now.values())
    quota, more = divmod(len(there), len(joined))
    largest = max(now.values(), key=len)
    smallest = min(now.values(), key=len)
    # A share may be short while its owner still has what is withheld: the next round gives it out.
    if len(largest) > quota + (more > 0) or (not withheld and len(smallest) < quota):
        yield f"{len(there)} partitions for {len(joined)} members: one has {len(largest)}, one {len(smallest)}"
    if not racks_first:
        yield from _taken_needlessly(held, now, there, quota, more)


def _taken_needlessly(
    held: Mapping[str, set[TopicPartition]],
    now: Mapping[str, set[TopicPartition]],
    there: set[TopicPartition],
    quota: int,
    more: int,
) -> Iterator[str]:
    had = sorted((len(work & there) for work in held.values()), reverse=True)
    # Fewest are taken if those that had most keep the larger shares, of which there are ``more``.
    least = sum(max(0, count - quota - (place < more)) for place, count in enumerate(had))
    taken = [
        f"{described(WorkUnit('', topic, number), str)} from {member}"
        for member, work in held.items()
        for topic, number in sorted((work & there) - now[member])
    ]
    if len(taken) > least:
        more_taken = ", ..." if len(taken) > MOST_NAMED else ""
        named = ", ".join(taken[:MOST_NAMED])
        yield f"{len(taken)} partitions are taken from members, {least} have to be: {named}{more_taken}"


def _partitions(work: Serialised) -> Sequence[TopicPartition]:
    return [(topic, number) for topic, numbers in work.items() for number in numbers]
