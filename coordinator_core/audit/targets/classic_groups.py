"""Assignments made by the leaders of classic groups, recomputed from the record of each generation.

A group's record contains the whole input of the leader's assignor except the topics, which each leader knows from a
view of its own (see ``LeaderViews``). No hash proves which view it was, so every view that the leader can have had is
tried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations
from typing import NamedTuple

from coordinator_core.assignors.client.clients import (
    BALANCES_RACKS,
    CLIENTS,
    DEALS_AS_LISTED,
    JAVA,
    JAVA_CLIENTS,
    JOINS_WITHOUT_TOPICS,
    KNOWS_OTHER_TOPICS,
    KNOWS_TOPICS_IN_ORDER,
    readers,
)
from coordinator_core.assignors.client.leader_view import (
    ASSIGNS_ALL,
    Serialised,
    leader_order,
    recorded,
    same_sets,
    subscribed_member,
)
from coordinator_core.assignors.inputs import ClassicGroupSpec
from coordinator_core.assignors.leader_round import LeaderRound, leader_round
from coordinator_core.assignors.streams.classic_invariants import (
    StreamsAssignorError,
    StreamsConsumer,
    breaches,
    streams_consumer,
)
from coordinator_core.audit.rows import WRONG, Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.leader_views import (
    LeaderMemory,
    LeaderViews,
    PossibleView,
    is_java,
    leader_clients,
    versions_around,
    with_assignor,
)
from coordinator_core.audit.targets.soundness import (
    STICKY,
    Given,
    Joined,
    beyond_topics,
    breaks_stickiness,
    breaks_subscriptions,
    given_to_nobody,
    meant,
)
from coordinator_core.audit.targets.verdict import (
    TOPICS_MISSING,
    GroupGap,
    Judgement,
    broken_invariants,
    differences,
    differing,
    figures_of,
    gives_twice,
    identical,
    judge,
    undecided,
    verdict_row,
)
from coordinator_core.clients.evidence import shows_itself
from coordinator_core.clients.known_clients import LEAVES_OUT_SHORT
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, COOPERATIVE_STICKY, STREAMS_PROTOCOL
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.record_fields.classic_group import GroupMetadataMemberMetadata, GroupMetadataRecord
from coordinator_core.record_fields.embedded import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordinator_core.records import LogPosition
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription

_Blobs = tuple[Blob[ConsumerProtocolSubscription], Blob[ConsumerProtocolAssignment] | None]
ONE_RESULT = frozenset(("range", "roundrobin", "RoundRobinAssigner"))
"""Assignors that have one result in each client; kafka-go's rack-affinity has not, where brokers have racks."""
AS_SETS = "as sets of partitions: another client's order"
MOST_TOPIC_ORDERS = 120
"""At most this many orders of the topics in a leader's metadata are tried: all of five topics."""


class _Attempt(NamedTuple):
    """What the leader's assignor returns, as ``client`` has it, for one view of the topics, one memory of former rounds
    and one order of the topics.
    """

    client: str
    view: PossibleView
    memory: int | None
    topic_order: tuple[str, ...]
    round: LeaderRound


@dataclass(eq=False)
class ClassicAudit:
    """The audit of one generation of a classic group of consumers.

    ``record`` is the group's, with members; ``gap``: the part of the group's past that was not seen.
    """

    memory: LeaderMemory
    record: GroupMetadataRecord
    history: TopicHistory | None
    settings: AuditSettings
    gap: GroupGap | None

    def __post_init__(self) -> None:
        assert self.record.value is not None
        self.value = self.record.value
        self.protocol = self.value["protocol"] or ""
        self.leader = self.value["leader"] or ""
        self.clients: tuple[str, ...] = ()
        self.joined: Joined = {}
        self.logged: Given = {}
        self.views: list[PossibleView] = []
        self.untried: str | None = None

    @property
    def _is_cut(self) -> bool:
        """Whether records of the group may be missing since the generation before."""
        return self.gap is not None and self.gap.is_after(self.memory.seen)

    def row(self) -> TargetAuditRow:
        """Return the verdict; raises nothing."""
        members = {member["memberId"]: member["assignment"] for member in self.value["members"]}
        # Before the blobs are read: a static member that comes back repeats them, readable or not.
        if self.memory.generation == self.value["generation"]:
            return self._kept(members)
        try:
            blobs = {member["memberId"]: self._blobs(member) for member in self.value["members"]}
        except DecodeError as error:
            return self._unknown(f"a readable blob of each member: {error}")
        if self.protocol == STREAMS_PROTOCOL:
            return self._streams(blobs)
        self.clients = leader_clients(self.value)
        # A leader of these clients cannot read a subscription that is too short: it assigns to the others alone.
        if LEAVES_OUT_SHORT.intersection(self.clients):
            blobs = {member: blob for member, blob in blobs.items() if blob[1] is not None or not blob[0].is_short}
        self.joined = {
            member["memberId"]: subscribed_member(blobs[member["memberId"]][0].fields, member.get("groupInstanceId"))
            for member in self.value["members"]
            if member["memberId"] in blobs
        }
        self.logged = {member: recorded(blob[1].fields) if blob[1] else {} for member, blob in blobs.items()}
        row = self._judge()
        self.memory.watch(self.leader, self.joined)
        return row

    def _judge(self) -> TargetAuditRow:
        """Return the verdict: the first view that gives the assignment, else what speaks against each view."""
        possible = LeaderViews(
            self.history,
            self.settings,
            self.record.at,
            self.leader,
            self.joined,
            frozenset(topic for work in self.logged.values() for topic, numbers in work.items() if numbers),
            self.memory.asked_for(self.leader),
            assigns_all=self.protocol in ASSIGNS_ALL,
            waits_for_topics=JOINS_WITHOUT_TOPICS.isdisjoint(self.clients),
        )
        self.views = list(possible.possible(self.memory.views.get(self.leader)))
        self.untried = possible.missing
        if not self.views:
            return self._unknown(TOPICS_MISSING)
        attempts: list[_Attempt] = []
        for attempt in self._attempts():
            attempts.append(attempt)
            # Java's result is known with its orders, and only then is it surely Java's; other clients' orders prove
            # nothing.
            if attempt.client == JAVA and _is_exact(attempt.round, self.logged):
                self._note_oldest(attempt)
                if sum(map(bool, self.logged.values())) > 1:
                    self.memory.exact[self.leader] = True
                return self._fits(attempt, attempt.view.fitted)
            if attempt.client != JAVA and _is_same(attempt.round, self.logged):
                return self._fits_client(attempt)
        # Only when no attempt gives the orders, too: equal sets may be another client's, with the same algorithm.
        same = next((attempt for attempt in attempts if _is_same(attempt.round, self.logged)), None)
        if same is not None:
            return self._fits(same, f"{same.view.fitted}; {AS_SETS}", kept=attempts[0].round)
        if attempts:
            self._remember(attempts[0].round)
        return self._differs(attempts) if attempts and is_java(self.clients) else self._without_algorithm(attempts)

    def _differs(self, attempts: Sequence[_Attempt]) -> TargetAuditRow:
        """The verdict on an assignment that none of the attempts gives."""
        made = next((attempt for attempt in attempts if attempt.round.error is None), None)
        if made is None:
            return self._unknown(f"the assignor fails on this input: {attempts[0].round.error}")
        judged = self._compare(made)
        missing = next(self._doubts(judged), None)
        return self._row(judged if missing is None else undecided(missing), view=made.view)

    def _without_algorithm(self, attempts: Sequence[_Attempt]) -> TargetAuditRow:
        """The verdict on an assignment that cannot be computed: does it break what holds of all of its kind?

        One that breaks nothing may still differ from what the client computes, if its assignor has one result, and it
        is surely that client: assignors of other clients may have the same name.
        """
        is_own = not with_assignor((), self.protocol)
        broken = self._broken(shared=is_own)
        if is_own and not broken and (unclear := self._broken()):
            return self._unknown(meant(self.protocol, unclear))
        is_told = bool(self.clients) and shows_itself(self.value)
        can_be_computed = is_told and {attempt.client for attempt in attempts} >= {*self.clients}
        if not broken and can_be_computed and self.protocol in ONE_RESULT and not self._may_balance_racks():
            listed = next((attempt for attempt in attempts if _may_be_relisted(attempt, self.logged)), None)
            if listed is None:
                return self._differs(attempts)
            judged = differing(Verdict.EQUIVALENT, list(differences(listed.round.assignments, self.logged, str)))
            fitted = (
                f"{listed.view.fitted}; as {listed.client} assigns, in the order in which a broker lists partitions"
            )
            return self._row(judged._replace(fitted=fitted), view=listed.view)
        judged = differing(Verdict.INVALID if broken else Verdict.SOUND, broken)
        missing = next(self._doubts(judged), None)
        judged = judged if missing is None else undecided(missing)
        return self._row(judged, view=self.views[0], basis=Basis.INVARIANTS)

    def _broken(self, *, shared: bool = False) -> list[str]:
        """What the assignment breaks that holds of all of its kind (``shared``: whose partitions may have several
        members, or none): as little as the topics and clients allow.
        """
        protocol, joined, logged = self.protocol, self.joined, self.logged
        # Only a leader that computes by itself asks for the topics of others, and may not know them yet.
        known = self.views if protocol in STICKY else [view for view in self.views if not view.unknown]
        unread = [] if shared else [given_to_nobody(protocol, joined, logged, view.image) for view in known]
        racks_first = self._may_balance_racks()
        asked = {topic for had in joined.values() for topic in had.topics}
        unstuck = [
            [*breaks_stickiness(protocol, joined, logged, read, racks_first=racks_first, gone=gone)]
            for gone in {frozenset(asked.difference(view.image.by_name)) for view in self.views}
            for read in readers(self.clients or tuple(CLIENTS), protocol)
        ]
        beyond = [beyond_topics(logged, view.image) for view in self.views]
        fewest = (min(texts, key=len, default=[]) for texts in (unread, unstuck, beyond))
        return [*breaks_subscriptions(joined, logged, shared=shared), *chain.from_iterable(fewest)]

    def _may_balance_racks(self) -> bool:
        """Whether the leader may give partitions by the racks of their leaders, which no record of the group shows."""
        return not BALANCES_RACKS.isdisjoint(self.clients) and any(had.rack_id for had in self.joined.values())

    def _attempts(self) -> Iterator[_Attempt]:
        """Run the assignor on every view, with what the leader remembers, then without, as each of the clients."""
        kept = self.memory.generations.get(self.leader)
        for client in with_assignor(self.clients, self.protocol):
            # A leader that was restarted within its session keeps its member id, and has lost what its assignor knew.
            for memory in dict.fromkeys((kept, None)) if client in JAVA_CLIENTS else (None,):
                for view in self.views:
                    for order in self._topic_orders(client, view):
                        yield _Attempt(client, view, memory, order, self._round(client, view, memory, order))

    def _topic_orders(self, client: str, view: PossibleView) -> Iterable[tuple[str, ...]]:
        """The orders in which the leader may know the topics, where its assignor depends on that: it is in no log."""
        if client in KNOWS_OTHER_TOPICS and self.protocol in STICKY:
            return (), ("",)  # in place of all topics that the leader knows and nobody subscribes to
        if (client, self.protocol) not in KNOWS_TOPICS_IN_ORDER:
            return ((),)
        names = sorted({topic for had in self.joined.values() for topic in had.topics} & view.image.by_name.keys())
        return islice(permutations(names), MOST_TOPIC_ORDERS)

    def _round(
        self, client: str, view: PossibleView, memory: int | None, topic_order: tuple[str, ...] = ()
    ) -> LeaderRound:
        return leader_round(
            self.protocol,
            self.joined,
            view.image,
            memory,
            self.settings.chosen,
            client=client,
            leader=self.leader,
            topic_order=topic_order,
        )

    def _fits_client(self, attempt: _Attempt) -> TargetAuditRow:
        """The row of an assignment that another client, or an older release, than Kafka's of today gives.

        What a client computes can leave partitions without a reader all the same.
        """
        fitted = f"{attempt.view.fitted}; as {attempt.client} assigns"
        if len(self.joined) < len(self.value["members"]):
            fitted += " to the members that it can read"
        row = self._fits(attempt, fitted)
        if attempt.client in JAVA_CLIENTS or row.verdict != Verdict.IDENTICAL:
            return row
        broken = breaks_subscriptions(self.joined, self.logged)
        broken += given_to_nobody(self.protocol, self.joined, self.logged, attempt.view.image)
        if not broken:
            return row
        return self._row(differing(Verdict.INVALID, broken)._replace(fitted=fitted), view=attempt.view)

    def _compare(self, made: _Attempt) -> Judgement:
        joined, logged = self.joined, self.logged
        owned = (WorkUnit("", *partition) for had in joined.values() for partition in had.owned or ())
        return judge(
            ClassicGroupSpec(leader_order(joined)),
            made.view.image,
            dict(made.round.assignments),
            dict(logged),
            broken_invariants(joined, logged, self._wanted(), shared=False, name_of=str),
            str,
            has_one_result=self.protocol in ONE_RESULT or self.leader in self.memory.exact,
            withheld=frozenset(owned) if self.protocol == COOPERATIVE_STICKY else frozenset(),
        )

    def _wanted(self) -> dict[str, set[WorkUnit]]:
        """Return what each member may be given by any of the views."""
        partitions: dict[str, int] = {}
        for view in self.views:
            # Each member only has to have what some view allows: no view is known to be the right one.
            for name in {topic for had in self.joined.values() for topic in had.topics} & view.image.by_name.keys():
                partitions[name] = max(partitions.get(name, 0), view.image.by_name[name].partitions)
        return {
            member: {WorkUnit("", name, number) for name in had.topics for number in range(partitions.get(name, 0))}
            for member, had in self.joined.items()
        }

    def _doubts(self, judged: Judgement) -> Iterator[str]:
        """Return what may explain the difference and is not in the log, the weightiest first."""
        is_wrong = judged.verdict in WRONG and not self._contradicts_itself()
        # That nothing is broken, every partition given among it, rests on the topics, too.
        if is_wrong or judged.verdict is Verdict.SOUND:
            yield from filter(None, (self._topics_in_doubt(is_wrong=is_wrong), self.untried if is_wrong else None))
        if self.gap is None:
            return
        if self._is_cut and judged.verdict in WRONG and not gives_twice(self.logged):
            # The generation may have been written before: for other members, or by a consumer group that ended.
            yield self.gap.missing
        has_memory = self.protocol in STICKY
        if judged.verdict is Verdict.DIVERGENT and has_memory and self.leader not in self.memory.generations:
            yield self.gap.missing

    def _contradicts_itself(self) -> bool:
        """Whether no topics there can be make the assignment right: a member has what it does not subscribe to, or two
        members have the same partition.

        Kafka's sticky assignors do give a partition to two, where the leader does not know all topics yet.
        """
        if self.protocol in STICKY:
            return any(
                breaks_subscriptions({member: self.joined[member]}, {member: work})
                for member, work in self.logged.items()
            )
        return bool(breaks_subscriptions(self.joined, self.logged))

    def _topics_in_doubt(self, *, is_wrong: bool = True) -> str | None:
        """What is missing of the topics of that time; None: nothing, or lists before and after show what is right."""
        history, time_ms = self.history, self.record.at.timestamp_ms
        if history is None or (doubt := history.doubt(time_ms)) is None:
            return None
        names = () if is_wrong else {topic for had in self.joined.values() for topic in had.topics}
        are_shown = names and all(history.partitions_at(name, time_ms) is not None for name in names)
        return None if are_shown else f"{TOPICS_MISSING} ({doubt})"

    def _remember(self, round_: LeaderRound) -> None:
        if round_.memory is not None:
            self.memory.generations[self.leader] = round_.memory

    def _note_oldest(self, fitting: _Attempt) -> None:
        """Remember the oldest topics that explain the assignment as well as those that were found to."""
        oldest = fitting.view.at
        for view in self.views[self.views.index(fitting.view) + 1 :]:
            if view.unknown != fitting.view.unknown:
                continue
            # Views before the record come newest first; one that is newer again is of another clock, and comes last.
            if view.at > oldest or not _is_exact(self._round(JAVA, view, fitting.memory), self.logged):
                break
            oldest = view.at
        self.memory.views[self.leader] = oldest.timestamp_ms, oldest.offset

    def _blobs(self, member: GroupMetadataMemberMetadata) -> _Blobs:
        subscription = decode_subscription(CONSUMER_PROTOCOL_TYPE, self.protocol, member["subscription"])
        if subscription is None:
            raise DecodeError("an empty subscription", record_type=CONSUMER_PROTOCOL_TYPE)
        return subscription, decode_assignment(CONSUMER_PROTOCOL_TYPE, self.protocol, member["assignment"])

    def _kept(self, members: Mapping[str, bytes]) -> TargetAuditRow:
        """The same generation again: a static member came back under another id, or nothing changed at all."""
        before = self.memory.assignments
        changed = [member for member, assignment in members.items() if before.get(member, assignment) != assignment]
        # By their assignments: a static member that came back has another id, and what the one that left had.
        came = sorted(members[member] for member in members.keys() - before.keys())
        gone = sorted(before[member] for member in before.keys() - members.keys())
        if not changed and came == gone:
            return self._row(identical("the same generation again"), basis=Basis.KEPT)
        if self.gap is not None and self._is_cut:
            return self._unknown(self.gap.missing)
        found = [f"{member}: its assignment changed within the generation" for member in changed]
        found = found or ["a member that joined does not have the assignment of the one that left"]
        return self._row(differing(Verdict.DIVERGENT, found), basis=Basis.KEPT)

    def _streams(self, blobs: Mapping[str, _Blobs]) -> TargetAuditRow:
        """Classic Kafka Streams: the leader alone knows the topology, so that only invariants can be checked."""
        consumers: dict[str, StreamsConsumer] = {}
        for member, (subscription, assignment) in blobs.items():
            consumer = None if assignment is None else streams_consumer(subscription, assignment)
            if consumer is None:
                return self._unknown("user data of Kafka Streams in each member's blobs")
            consumers[member] = consumer
        if error := max(consumer.error for consumer in consumers.values()):
            named = next((known.name for known in StreamsAssignorError if known == error), "unknown")
            return self._unknown(f"any assignment: instead of one, the leader sent its members error {error} ({named})")
        doubt = TOPICS_MISSING if self.history is None else self._topics_in_doubt()
        images: list[TopicImage | None] = [None]
        if self.history is not None and doubt is None:
            names = {topic for reader in consumers.values() for topic in reader.topics}
            views = versions_around(self.history, self.settings, self.record.at, names, with_racks=False)
            images = [view.image for view in views] or images
        # The leader had one of these views: what all of them break is broken for sure, and no more is claimed.
        fewest = min((breaches(consumers, image) for image in images), key=len)
        broken = [
            f"{breach.invariant}: {breach.subject}, {', '.join(breach.members) or 'no member'}" for breach in fewest
        ]
        if broken:
            return self._row(differing(Verdict.INVALID, broken))
        missing = "the topology, which only the leader has"
        return self._unknown(f"{missing}, and {doubt}" if doubt else f"{missing}; no invariant is broken")

    def _fits(self, attempt: _Attempt, fitted: str, kept: LeaderRound | None = None) -> TargetAuditRow:
        """The row of an assignment that this attempt gives; ``kept`` is the round that the leader remembers."""
        self._remember(kept or attempt.round)
        doubt = self._topics_in_doubt()
        # Nobody got anything: any lack of topics explains that, so that it proves no view.
        if doubt is not None and not any(self.logged.values()):
            return self._unknown(doubt)
        figures = figures_of(ClassicGroupSpec(leader_order(self.joined)), attempt.view.image, dict(self.logged))
        return self._row(identical(fitted, figures), view=attempt.view)

    def _unknown(self, missing: str) -> TargetAuditRow:
        return self._row(undecided(missing))

    def _row(
        self, judged: Judgement, *, view: PossibleView | None = None, basis: Basis = Basis.LEADER
    ) -> TargetAuditRow:
        history, at_ms = self.history, self.record.at.timestamp_ms
        # The topics of that time are known, be it from a list.
        is_shown = history is not None and (history.is_listed or history.reach.covers(at_ms, at_ms))
        topics_at = view.at if view and is_shown else None
        return generation_row(self.record, judged, basis=basis, topics_at=topics_at)


def _is_exact(round_: LeaderRound, logged: Mapping[str, Serialised]) -> bool:
    return round_.error is None and written(round_.assignments) == written(logged)


def _may_be_relisted(attempt: _Attempt, logged: Mapping[str, Serialised]) -> bool:
    """Whether the client takes partitions as a broker lists them, and each member has as many of each topic."""
    made = attempt.round.assignments
    return (
        attempt.client in DEALS_AS_LISTED
        and attempt.round.error is None
        and all(_counts(made.get(member, {})) == _counts(work) for member, work in logged.items())
    )


def _counts(work: Serialised) -> dict[str, int]:
    return {topic: len(numbers) for topic, numbers in work.items() if numbers}


def _is_same(round_: LeaderRound, logged: Mapping[str, Serialised]) -> bool:
    return round_.error is None and all(
        same_sets(round_.assignments.get(member, {}), numbers) for member, numbers in logged.items()
    )


def generation_row(
    record: GroupMetadataRecord, judged: Judgement, *, basis: Basis, topics_at: LogPosition | None = None
) -> TargetAuditRow:
    """Return the row of a classic group's generation; its record has members."""
    assert record.value is not None
    value = record.value
    row = verdict_row(record.group_id, GroupType.CLASSIC, value["generation"], record.at, judged, basis)
    return row._replace(topics_at=topics_at, assignor=value["protocol"], members=len(value["members"]))


def written(assignments: Mapping[str, Serialised]) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the assignments in the orders of the record, without the members that get nothing."""
    return {
        member: [(topic, list(numbers)) for topic, numbers in of_member.items()]
        for member, of_member in assignments.items()
        if of_member
    }
