"""The topics as clients see them: a broker that is away has no rack.

A broker answers a Metadata request with the brokers that are not fenced (KRaft's metadata cache). A replica on another
one is to a client a node without a rack, which the assignors of a classic group do not count (KIP-881). Coordinators
of groups with epochs know the racks of all registered brokers; ``TopicHistory`` has these.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.topic_history import ImageVersion, TopicHistory
from coordinator_core.records import LogPosition

METADATA_AGE_MS: Final = 300_000
"""After so long a client refreshes its metadata at the latest: the default of its ``metadata.max.age.ms``."""


class ClientView(NamedTuple):
    """Topics as clients see them from ``at`` on; ``away`` are the brokers with replicas of them that are away."""

    at: LogPosition
    image: TopicImage
    away: frozenset[int] = frozenset()


def client_views(
    history: TopicHistory, from_ms: int, to_ms: int, names: Iterable[str], *, with_racks: bool
) -> list[ClientView]:
    """Return what clients saw of these topics at some time of ``[from_ms, to_ms]``, oldest first.

    ``with_racks``: the racks of replicas count. A list of topics has them as a client saw them.
    """
    names = set(names)
    versions = history.window(from_ms, to_ms, names)
    if not versions:
        return []
    if not with_racks or history.is_listed:
        return [ClientView(version.at, version.image) for version in versions]
    before = [change.at for change in history.brokers.changes(-1, from_ms)]
    changes = [change.at for change in history.brokers.changes(from_ms, to_ms)]
    # The first view began with what changed last before the time: the topics, or a broker that went or came.
    begin = max([versions[0].at, *before[-1:]], key=lambda at: at.offset)
    views = [_view(history, versions[0], begin, names)]
    if not views[0].away:
        views[0] = views[0]._replace(at=versions[0].at)
    moments = {at.offset: at for at in (*(version.at for version in versions[1:]), *changes)}
    for offset, at in sorted(moments.items()):
        if offset <= begin.offset:
            continue
        version = next((each for each in reversed(versions) if each.at.offset <= offset), versions[0])
        view = _view(history, version, at, names)
        # A broker without replicas of these topics changes nothing that a client of theirs compares.
        if _shown(view, names) != _shown(views[-1], names):
            views.append(view)
    return views


def _shown(view: ClientView, names: set[str]) -> dict[str, Topic]:
    return {name: view.image.by_name[name] for name in names & view.image.by_name.keys()}


def _view(history: TopicHistory, version: ImageVersion, at: LogPosition, names: set[str]) -> ClientView:
    """Return what clients saw of a version once the record at this position was applied."""
    racks, by_name = version.image.broker_racks, version.image.by_name
    hosts = {broker for name in names & by_name.keys() for replicas in by_name[name].replicas for broker in replicas}
    away = frozenset(broker for broker in history.brokers.away_at(at.offset) & hosts if racks.get(broker) is not None)
    return ClientView(at, without_racks(version.image, away, names), away)


def without_racks(image: TopicImage, away: AbstractSet[int], names: Iterable[str]) -> TopicImage:
    """Return an image in which replicas of these topics on brokers that are ``away`` have no racks.

    It has no other topics, unless no broker is away.
    """
    if not away:
        return image
    seen = []
    for topic in (image.by_name[name] for name in sorted({*names} & image.by_name.keys())):
        # In replica order; a broker without a rack is left out like one that is away.
        racks = tuple(
            tuple(rack for each in replicas if each not in away and (rack := image.broker_racks.get(each)) is not None)
            for replicas in topic.replicas
        )
        seen.append(replace(topic, racks=racks) if topic.racks else topic)
    return TopicImage.of(seen, image.broker_racks, image.version)


class RackChange(NamedTuple):
    """A broker went, or came (``is_there``): these topics have replicas whose racks clients see change by it."""

    at: LogPosition
    broker: int
    is_there: bool
    topics: tuple[str, ...]


def rack_changes(history: TopicHistory, names: Iterable[str], after_ms: int, upto_ms: int) -> list[RackChange]:
    """Return how brokers that went or came in ``(after_ms, upto_ms]`` changed the racks of these topics, in order.

    A Java client compares the set of racks of each partition's replicas, in which one that is away has none (KIP-881).
    """
    found = []
    for at, broker, is_there in history.brokers.changes(after_ms, upto_ms):
        version = history.at_offset(at.offset)
        if version is None:
            continue
        by_name, racks = version.image.by_name, version.image.broker_racks
        away = history.brokers.away_at(at.offset) - {broker}
        topics = tuple(
            name
            for name in sorted({*names} & by_name.keys())
            if any(
                _seen_racks(replicas, racks, away) != _seen_racks(replicas, racks, away | {broker})
                for replicas in by_name[name].replicas
            )
        )
        if topics:
            found.append(RackChange(at, broker, is_there, topics))
    return found


def _seen_racks(
    replicas: tuple[int, ...], racks: Mapping[int, str | None], away: frozenset[int]
) -> frozenset[str | None]:
    return frozenset(None if broker in away else racks.get(broker) for broker in replicas)
