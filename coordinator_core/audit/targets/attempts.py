"""The inputs that the coordinator may have given to its assignor, as far as the log shows, the likeliest first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice, permutations, product
from typing import NamedTuple

from coordinator_core.assignors.coordinator_view import StreamsView, SubscriptionView
from coordinator_core.assignors.inputs import AssignedGroupType, GroupSpecs
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.registry import ASSIGNORS
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.group_view import GroupView, View
from coordinator_core.audit.targets.inputs import (
    EpochState,
    assignable,
    assignor_of,
    chosen_assignor,
    judgements,
    streams_spec,
    subscription_spec,
)
from coordinator_core.audit.targets.map_orders import can_matter
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.releases import (
    has_several_releases,
    narrowed,
    profile_names,
    releases,
    streams_profile,
)
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.java.hash_codes import STRING, spread
from coordinator_core.java.order import copied_order, copy_capacity, table_size
from coordinator_core.records import LogPosition

MOST_NAME_ORDERS = 64
"""At most this many orders of the names in a member's subscription are tried against one target."""

Names = Mapping[str, tuple[str, ...]]
"""By member, a subscription whose topic names are in another order than in the member's record."""


class Attempt(NamedTuple):
    """One possible input of the assignor, and what it assumes (``fitted``; ``release`` of the brokers)."""

    view: View
    spec: GroupSpecs
    assignor: str
    profile: Profile
    fitted: str
    release: str = ""


@dataclass(eq=False)
class Attempts:
    """The attempts at one target: ``state`` is the group after the operation, ``group_view`` the group before it."""

    group_view: GroupView
    state: EpochState
    operation: TargetOperation
    history: TopicHistory | None
    settings: AuditSettings

    def __post_init__(self) -> None:
        time_ms = self.operation.end.at.timestamp_ms
        self.releases = narrowed(releases(self.history, time_ms), self.state, self.operation)
        self.is_kip_1071 = streams_profile(self.state, self.releases, self.settings).is_kip_1071
        self.names_usual = has_several_releases(self.history)
        self.default_assignor = self.settings.default_at(self.history, time_ms)

    def of(self, image: TopicImage) -> Iterator[Attempt]:
        """Yield every attempt that uses these topics."""
        view, fitted = self.group_view.view, self.group_view.orders.story
        profiles = self.profiles()
        for (profile, release), assignor, (spec, how) in product(profiles, self.assignors(), self._specs(view, image)):
            yield Attempt(view, spec, assignor, profile, fitted + how, release)
        # Other orders are tried as the likeliest release alone: each order times each release would be too many runs.
        profile, release = profiles[0]
        for names in islice(self._names(), MOST_NAME_ORDERS):
            named = f"{fitted}; topics in the order in which {next(iter(names))} named them"
            for assignor, (spec, how) in product(self.assignors(), self._specs(view, image, names)):
                yield Attempt(view, spec, assignor, profile, named + how, release)
        present, known = tuple(view.members), set(view.members)
        if not can_matter(present):
            return
        # Last, as there are many: most targets fit in the order that the log shows.
        for order in self.group_view.orders.possible(self._registrations()):
            if tuple(order.members) != present and set(order.members) == known:
                other = self.group_view.ordered(order.members)
                for assignor, (spec, how) in product(self.assignors(), self._specs(other, image)):
                    yield Attempt(other, spec, assignor, profile, order.fitted + how, release)

    def profiles(self) -> list[tuple[Profile, str]]:
        """Return the profiles that may have made the target, the likeliest first, each with a text that names it."""
        return self.settings.on_java(
            profile_names(self.state, self.releases, self.settings), names_usual=self.names_usual
        )

    def assignors(self) -> list[str]:
        """Return the assignors that may have been chosen: with equal votes it depends on which members ask at
        that moment (KIP-848).
        """
        if isinstance(self.state, StreamsGroup):
            end = self.operation.end
            chosen = chosen_assignor(self.history, end.group_id, end.at.timestamp_ms)
            return [assignor_of(self.state, "", chosen=chosen, kip_1071=self.is_kip_1071)]
        if not isinstance(self.state, ConsumerGroup):
            return ["simple"]
        return list(dict.fromkeys(name or self.default_assignor for name in self._chosen()))

    def by_other_defaults(self, image: TopicImage) -> Iterator[Attempt]:
        """Yield attempts with the other assignors that may be the brokers' default, if no member chose one."""
        if not isinstance(self.state, ConsumerGroup) or all(self._chosen()):
            return
        view = self.group_view.view
        kinds = [name for kind, name in ASSIGNORS if kind == AssignedGroupType.CONSUMER]
        for assignor, (spec, how) in product(kinds, self._specs(view, image)):
            if assignor != self.default_assignor:
                profile, release = self.profiles()[0]
                yield Attempt(view, spec, assignor, profile, how, release)

    def _chosen(self) -> list[str | None]:
        """What members may have chosen, None: nothing."""
        votes, asked, member = self.group_view.votes, self.group_view.asked, self.operation.member
        if member is not None and member.value is not None and "serverAssignor" in member.value:
            old = asked.get(self.operation.replaced or member.key["memberId"])
            return [votes.preferred(old, member.value["serverAssignor"])]
        # None: the member that asked for nothing. With a tie, which name wins depends on whose heartbeat it was.
        return [votes.preferred(name, name) for name in (None, *votes.counts)]

    def _specs(self, view: View, image: TopicImage, names: Names | None = None) -> Iterator[tuple[GroupSpecs, str]]:
        """The group as the assignor may have seen it, with what is unusual in that."""
        if isinstance(view, StreamsView):
            assert isinstance(self.state, StreamsGroup)
            yield streams_spec(view, self.operation, self.state, image, kip_1071=self.is_kip_1071), ""
            return
        initialised = assignable(self.state)
        for number, judged in enumerate(judgements(view, self.operation)):
            how = "; subscriptions compared again" if number else ""
            yield subscription_spec(view, self.operation, image, initialised, names or {}, homogeneous=judged), how

    def _names(self) -> Iterator[Names]:
        """Other orders of the names that a heartbeat may have had: records have them sorted, requests need not.

        The coordinator works with the request's own list; it shows where names collide in a set of them.
        """
        view, member = self.group_view.view, self.operation.member
        if not isinstance(view, SubscriptionView):
            return
        if member is not None:
            value = member.value
            names = value["subscribedTopicNames"] if value is not None and "subscribedTopicNames" in value else ()
            subscriptions = {member.key["memberId"]: tuple(names)}
        else:
            subscriptions = {name: subscriber.names for name, subscriber in view.members.items()}
        for name, topics in subscriptions.items():
            for other in name_orders(topics, view.jdk):
                yield {name: other}

    def _registrations(self) -> list[tuple[int, LogPosition]]:
        """Brokers that started while the group was there."""
        changes = self.group_view.orders.changes
        if self.history is None or not changes:
            return []
        registered = self.history.brokers.registrations(changes[0].timestamp_ms, self.operation.end.at.timestamp_ms)
        return [(registration.broker, registration.at) for registration in registered]


def name_orders(names: tuple[str, ...], jdk: int) -> Iterator[tuple[str, ...]]:
    """Yield the names in other orders, each of which makes Java's HashSet iterate differently than the given order."""
    slots = table_size(copy_capacity(len(names), jdk))

    def slot(name: str) -> int:
        return spread(STRING.hash_code(name)) & slots - 1

    order = copied_order(STRING, names, jdk)
    colliding = [list(run) for _, run in groupby(order, key=slot)]
    # Only names of one slot can change places in a HashSet; the first combination is the given order.
    for mixed in islice(product(*(islice(permutations(run), MOST_NAME_ORDERS) for run in colliding)), 1, None):
        yield tuple(name for run in mixed for name in run)
