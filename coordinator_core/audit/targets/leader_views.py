"""Which client led a generation of a classic group, and the topics that it can have known when it assigned: the group's
log says neither.

A leader knows the topics of its own subscription, as old as its metadata may be, but for those that it has subscribed
to since the generation before: it joins again at once, and may assign before it has asked for them. It asks for topics
that only other members subscribe to when it becomes leader, and an answer that was under way may arrive first: then it
assigns without some of them, and makes the group rebalance again once it knows them (Kafka's ConsumerCoordinator and
ConsumerMetadata).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, pairwise
from typing import Final, NamedTuple

from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.clients.blob_writers import WRITERS
from coordinator_core.clients.evidence import assignment_writers, decide, narrowed, subscription_writers
from coordinator_core.cluster.client_view import ClientView, client_views
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.durations import duration
from coordinator_core.record_fields.classic_group import GroupMetadataValue
from coordinator_core.records import LogPosition

RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "java": (JAVA, "java-3.5", "java-3.0"),
    "java 2.4": ("java-3.0", "java-2.8", "java-2.6", "java-2.4"),
    "java 0.9": ("java-2.4",),
    "sarama 0.9": ("sarama", "sarama-1.28", "sarama-1.19"),
    "platformatic 2.12": ("platformatic-2.12",),
    "platformatic 2.12 cooperative": ("platformatic-2.12",),
    "platformatic 2.12 cooperative, version 1": ("platformatic-2.12",),
    "kafkajs 1": ("kafkajs", "kafkajs-1.0"),
    "kafka-python 2": ("kafka-python-2.3", "kafka-python-1.0"),
}
"""By writer of blobs, the releases whose assignors it can have; other writers assign as their client does today."""


def leader_clients(value: GroupMetadataValue) -> tuple[str, ...]:
    """Return the clients that can have led this generation, the likeliest first; none: no known client writes so."""
    protocol = value["protocol"] or ""
    writers = assignment_writers(
        protocol, ((member["subscription"], member["assignment"]) for member in value["members"])
    )
    leader = next((member for member in value["members"] if member["memberId"] == value["leader"]), None)
    if leader is None:
        return _profiles(writers)
    writers = narrowed(writers, subscription_writers(protocol, leader["subscription"]))
    told = decide(writers, leader["clientId"], leader["sessionTimeout"], leader.get("rebalanceTimeout"))
    if not told.clients:
        return ()
    likely = frozenset(name for name in writers if WRITERS[name].client in told.clients)
    return tuple(dict.fromkeys((*_profiles(likely), *_profiles(writers))))


def _profiles(writers: frozenset[str]) -> tuple[str, ...]:
    named = (RELEASES.get(name, (WRITERS[name].client.value,)) for name in WRITERS if name in writers)
    return tuple(dict.fromkeys(profile for profiles in named for profile in profiles))


def is_java(clients: tuple[str, ...]) -> bool:
    """Whether it was Kafka's own client, of whatever release."""
    return bool(clients) and all(client in JAVA_CLIENTS for client in clients)


def with_assignor(clients: tuple[str, ...], protocol: str) -> tuple[str, ...]:
    """Return the clients whose assignor of that name can be recomputed; where no client is known, of all."""
    return tuple(client for client in clients or CLIENTS if protocol in CLIENTS[client])


NEWEST = "newest topics"
MOST_VIEWS = 512
"""At most this many views without some topics are tried against one assignment."""
TOPIC_FOUND_MS = 15_000
"""After so long a client has found a topic that it subscribes to: while one is missing, it asks again each second
(``retry.backoff.max.ms``).
"""
NAMED_TOPICS = 10
"""A story names at most this many of the topics that the leader did not know."""


@dataclass(slots=True)
class LeaderMemory:
    """What the leaders of a classic group kept from earlier rounds, and the assignments of the last round.

    ``generations`` has, by leader, the largest generation that its sticky assignor saw; ``views`` has the time and
    offset of the oldest topics that explain its last assignment: from then on it knows nothing older. ``before`` has
    the members' assignments when the group was converted to another type, those of static members by instance id too.
    ``watched`` are the topics of the last generation, all of which its ``leader`` asked for; ``partial`` has the topics
    of the members that subscribed to only some of them. ``seen`` is the offset of the group's last record. ``exact``
    has the leaders that are Kafka's own client, or may be by what was written, and of which an assignment of
    several members came out with all its orders, as that client gives it. Other clients sort, too, so that this alone
    does not tell whose leader it is; but an assignment of such a leader that no client and no release gives is wrong,
    however even it is.
    """

    generation: int | None = None
    seen: int | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    views: dict[str, tuple[int, int]] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)
    leader: str | None = None
    watched: tuple[str, ...] = ()
    partial: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def watch(self, leader: str, members: Mapping[str, ClassicMemberSpec]) -> None:
        """Take in what the members of a generation subscribe to."""
        topics = {topic for member in members.values() for topic in member.topics}
        own = {member_id: {*member.topics} for member_id, member in members.items()}
        self.leader, self.watched = leader, tuple(sorted(topics))
        self.partial = {
            member_id: tuple(sorted(own_topics)) for member_id, own_topics in own.items() if own_topics != topics
        }

    def asked_for(self, member_id: str) -> Collection[str] | None:
        """Return the topics that a member had metadata of in the last generation; None: it was not in it."""
        if member_id not in self.assignments:
            return None
        return self.watched if member_id == self.leader else self.partial.get(member_id, self.watched)

    def keep(self, offset: int, value: GroupMetadataValue) -> None:
        """Take in a record of the group."""
        self.generation, self.seen = value["generation"], offset
        self.assignments = {member["memberId"]: member["assignment"] for member in value["members"]}
        names = ((member.get("groupInstanceId"), member["memberId"]) for member in value["members"])
        self.instances = {instance: member for instance, member in names if instance}

    def end(self, offset: int) -> None:
        """Take in the tombstone of the group."""
        self.seen = offset
        by_instance = {instance: self.assignments[member] for instance, member in self.instances.items()}
        self.before = self.assignments | by_instance
        self.generation, self.assignments, self.instances = None, {}, {}
        self.generations, self.views, self.exact = {}, {}, {}
        self.leader, self.watched, self.partial = None, (), {}


class PossibleView(NamedTuple):
    """Topics as the leader may have known them; ``unknown`` are subscribed topics that it did not know."""

    image: TopicImage
    at: LogPosition
    fitted: str
    unknown: tuple[str, ...] = ()


class LeaderViews:
    """The views that the leader of one generation can have had.

    ``missing`` names what the leader may also have known and ``possible`` did not try; None: nothing.
    """

    def __init__(
        self,
        history: TopicHistory | None,
        settings: AuditSettings,
        at: LogPosition,
        leader: str,
        members: Mapping[str, ClassicMemberSpec],
        assigned: frozenset[str],
        asked_for: Collection[str] | None,
        *,
        assigns_all: bool,
        waits_for_topics: bool = True,
    ) -> None:
        """Prepare the views for the record at ``at``.

        ``assigned`` are the topics of which some member got a partition: those the leader knew. ``asked_for`` are the
        topics that it had metadata of in the generation before; None: it was not a member. ``assigns_all``: its
        assignor leaves no partition of a topic out that it knows. ``waits_for_topics``: a new member knows the topics
        of its subscription before it joins.
        """
        self.history = history
        self.settings = settings
        self.at = at
        self.names = {topic for member in members.values() for topic in member.topics}
        self.own = {*members[leader].topics} if leader in members else self.names
        own_before = self.own if waits_for_topics else ()
        settled = self.own & {*(own_before if asked_for is None else asked_for)}
        self.outside = self.names - settled - assigned
        self.assigns_all = assigns_all
        self.with_racks = any(member.rack_id for member in members.values())
        self.missing: str | None = None

    def possible(self, floor: tuple[int, int] | None) -> Iterator[PossibleView]:
        """Yield the views, the likeliest first: all topics, then without some of those that the leader has to ask for.

        ``floor`` is the time and offset of the oldest topics that the leader can still have; None: not known.
        """
        versions = list(self._versions(floor))
        yield from versions
        tried = 0
        for view in versions:
            for unknown in self._unknown(view.image):
                if tried == MOST_VIEWS:
                    self.missing = (
                        f"which of {len(self.outside)} topics outside its own subscription, or new in it, the leader "
                        f"knew: only {MOST_VIEWS} combinations were tried"
                    )
                    return
                tried += 1
                yield self._without(unknown, view)

    def _without(self, unknown: tuple[str, ...], view: PossibleView) -> PossibleView:
        """Return the view of a leader that did not know these topics."""
        known = self.names.difference(unknown) & view.image.by_name.keys()
        image = TopicImage.of([view.image.by_name[name] for name in sorted(known)], view.image.broker_racks)
        fitted = f"{view.fitted}; the leader did not know {_listed(unknown)} yet"
        return PossibleView(image, view.at, fitted, unknown)

    def _versions(self, floor: tuple[int, int] | None) -> Iterator[PossibleView]:
        """Return the versions of the topics that were in force while the leader's metadata may be from."""
        if self.history is None or not len(self.history):
            return
        now = self.at.timestamp_ms
        around = versions_around(self.history, self.settings, self.at, self.names, with_racks=self.with_racks)
        # The oldest topics that it can still have are those in force at ``floor``; all, if each is younger. The
        # one in force at the floor began before it.
        older = 0 if floor is None else sum(1 for view in around if (view.at.timestamp_ms, view.at.offset) <= floor)
        known = self._asked_for(around[max(older - 1, 0) :])
        # Metadata is mostly fresh: the nearest version before the record first, those after it by another clock last.
        views = sorted(known, key=lambda view: (view.at.timestamp_ms > now, abs(view.at.timestamp_ms - now)))
        replaced = {old.at: new.at.timestamp_ms for old, new in pairwise(known)}
        for view in views:
            fitted = NEWEST
            if view is not views[0]:
                age = now - replaced.get(view.at, now)
                fitted = (
                    f"topics that had changed {duration(age)} before" if age > 0 else "topics that changed at that time"
                )
            if view.away:
                away = [f"{broker}" for broker in sorted(view.away)]
                fitted += f", without the racks of broker{'s' * (len(away) > 1)} {_listed(away)}: away"
            yield PossibleView(view.image, view.at, fitted)

    def _asked_for(self, views: Sequence[ClientView]) -> Sequence[ClientView]:
        """Leave out the views without a topic that the leader subscribes to and must have found long ago."""
        settled = self.at.timestamp_ms - TOPIC_FOUND_MS
        then = next(
            (number for number in reversed(range(len(views))) if views[number].at.timestamp_ms <= settled), None
        )
        if then is None:
            return views
        there = self.own & views[then].image.by_name.keys()
        return [view for number, view in enumerate(views) if number >= then or there <= view.image.by_name.keys()]

    def _unknown(self, image: TopicImage) -> Iterator[tuple[str, ...]]:
        """Return the sets of topics that the leader may not have known: all of them first, then the smaller ones.

        An assignor that leaves no partition out shows which topics they are: no member got a partition of them.
        """
        names = tuple(sorted(self.outside & image.by_name.keys()))
        if not names:
            return
        yield names
        if not self.assigns_all:
            yield from chain.from_iterable(combinations(names, size) for size in range(1, len(names)))


def versions_around(
    history: TopicHistory, settings: AuditSettings, at: LogPosition, names: set[str], *, with_racks: bool
) -> list[ClientView]:
    """Return what clients saw of these topics while a client's metadata at a record may be from.

    ``with_racks``: the racks of replicas count.
    """
    now = at.timestamp_ms
    since_ms, until_ms = now - settings.metadata_age_ms, now + settings.clock_slack_ms
    return client_views(history, since_ms, until_ms, names, with_racks=with_racks)


def _listed(names: Sequence[str]) -> str:
    """Return the first names as a phrase, and how many more there are."""
    more = len(names) - NAMED_TOPICS
    if more > 0:
        return f"{', '.join(names[:NAMED_TOPICS])} and {more} more"
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
