"""The cooperative-sticky assignor of @platformatic/kafka, 2.12 and later: members keep what they own up to a quota.

It descends from no other client's, and may end uneven: it takes from a member only above the larger share, and gives
only to one below the smaller share, so that 3, 3 and 1 partitions stay as they are.

Source: the client's own code in words, proven by recorded groups.
"""

from collections.abc import Sequence

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions, Reader, of_latest_generation
from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage

_LETTERS = "_-.0123456789abcdefghijklmnopqrstuvwxyz"


class Quotas:
    """The assignor; ``read`` says what members own."""

    def __init__(self, read: Reader) -> None:
        self.read = read

    def __call__(self, spec: ClassicGroupSpec, image: TopicImage) -> Assignment[Sequence[TopicPartition]]:
        """Assign; each member's partitions are by topic and number."""
        view = LeaderView(spec.members, image)
        every = range(view.partitions.total)
        claims = of_latest_generation(view, [self.read(member) for member in view.specs], None)
        subscribed = [{*topics} for topics in view.subscribed]
        topic_of = view.partitions.topic_of
        kept = [
            {p for p in owned if p in every and topic_of[p] in subscribed[m]} for m, owned in enumerate(claims.owned)
        ]
        work = [{*partitions} for partitions in kept]
        free = [p for p in every if not any(p in partitions for partitions in kept)]
        for partition in free:
            takers = [m for m, topics in enumerate(subscribed) if topic_of[partition] in topics]
            min((work[m] for m in takers), key=len).add(partition)
        self._even(view, work, subscribed)
        self._withhold(view, work, kept, claims)
        return Assignment(view.result([sorted(partitions) for partitions in work]))

    @staticmethod
    def _even(view: LeaderView, work: list[set[int]], subscribed: Sequence[set[int]]) -> None:
        """Move partitions one by one from members above the larger share to members below the smaller one."""
        quota, more = divmod(sum(map(len, work)), len(work))
        # As JavaScript's ``localeCompare`` puts names of topics in order: small letters before capitals.
        collated = [
            ([_LETTERS.find(letter) for letter in name.lower()], [letter.isupper() for letter in name])
            for name in view.partitions.topics
        ]
        topic_of = view.partitions.topic_of

        def move() -> bool:
            low = [m for m, partitions in enumerate(work) if len(partitions) < quota]
            high = [m for m, partitions in enumerate(work) if len(partitions) > quota + (more > 0)]
            for taker in low:
                for giver in sorted(high, key=lambda m: -len(work[m])):
                    wanted = [p for p in work[giver] if topic_of[p] in subscribed[taker]]
                    if wanted:
                        first = min(wanted, key=lambda p: (collated[topic_of[p]], p))
                        work[giver].remove(first)
                        work[taker].add(first)
                        return True
            return False

        while move():
            pass

    @staticmethod
    def _withhold(view: LeaderView, work: list[set[int]], kept: Sequence[set[int]], claims: ClaimedPartitions) -> None:
        """Leave out what one member gets and another, that owned it or says so as well, loses."""
        index, partition_of = view.partitions.index, view.partitions.of
        lost: set[int] = set()
        for m, member in enumerate(view.specs):
            said = {partition_of(index[name], number) for name, number in member.owned or () if name in index}
            lost |= (kept[m] | said & claims.contested) - work[m]
        for partitions, own in zip(work, kept, strict=True):
            partitions -= lost - own
