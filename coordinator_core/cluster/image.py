"""The topics of a cluster at one moment, as an assignor sees them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MOST_PARTITIONS = 200_000
"""The most partitions of one topic that are believed, unless a setting says otherwise.

Kafka's formats have no limit. Its documentation names this number as the most for a whole cluster with ZooKeeper.
"""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic: name, id (Kafka's base64url form), partition count and, if known, racks.

    ``racks[p]`` holds the racks of partition p's replicas, in replica order, without brokers that have no rack. An
    empty tuple of racks means that no rack is known. ``replicas[p]`` holds the broker ids, empty when unknown.
    """

    name: str
    id: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()
    replicas: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicImage:
    """The topics of a cluster at one moment, by name and by id; racks of brokers, where known, by broker id.

    ``version`` is the metadata offset up to which this holds; -1: not known. ``is_whole``: a topic that is not in it
    did not exist then; otherwise it may have, and one that is in it may have been deleted.
    """

    by_name: Mapping[str, Topic]
    by_id: Mapping[str, Topic]
    broker_racks: Mapping[int, str | None] = field(default_factory=dict)
    version: int = -1
    is_whole: bool = True

    @classmethod
    def of(
        cls, topics: Iterable[Topic], broker_racks: Mapping[int, str | None] | None = None, version: int = -1
    ) -> "TopicImage":
        """Return an image of these topics; of two topics with one name the later one is kept."""
        by_name = {topic.name: topic for topic in topics}
        return cls(by_name, {topic.id: topic for topic in by_name.values()}, broker_racks or {}, version)
