"""Assignments that the leaders of classic groups made, recomputed from the record of each generation.

A group's record has all that the leader's assignor was given but the topics, which each leader knows by a view of its
own: maybe old, right after it became leader maybe only of the topics that it subscribes to itself. No hash proves it,
so every view that the leader can have had is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from coordinator_core.assignors.client.leader import Serialised, leader_order, recorded, same_sets, subscribed_member
from coordinator_core.assignors.client.sticky import MEMBER_DATA
from coordinator_core.assignors.inputs import ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.leader_round import LeaderRound, leader_round
from coordinator_core.assignors.profiles import PROFILES, Profile
from coordinator_core.assignors.streams.classic_invariants import StreamsConsumer, breaches, streams_consumer
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.verdict import (
    MOST_DIFFERENCES,
    Judgement,
    WorkUnit,
    broken_invariants,
    figures_of,
    judge,
    units,
)
from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import DecodeError, InputError
from coordinator_core.groups.group import GroupType
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription

STREAMS = "stream"
NO_TOPICS = "topics of that time: supply the cluster metadata log or topic snapshots"
WRONG = (Verdict.DIVERGENT, Verdict.INVALID)
NEWEST = "newest topics"
AS_SETS = "as sets of partitions: another client's order"


@dataclass(slots=True)
class LeaderMemory:
    """What the leaders of a classic group kept from former rounds, and the assignments of the last one.

    ``generations`` has, by leader, the largest generation that its sticky assignor saw, ``views`` the time and offset
    of the oldest topics that its last assignment can be explained with: it knows nothing older ever after. ``leader``
    is that of the last round. ``before`` are the members' assignments when the group was converted to another type,
    those of static members by instance id too.
    """

    generation: int | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    before: dict[str, bytes] = field(default_factory=dict)
    leader: str | None = None
    generations: dict[str, int] = field(default_factory=dict)
    views: dict[str, tuple[int, int]] = field(default_factory=dict)

    def keep(self, value: Fields) -> None:
        """A record of the group."""
        self.generation, self.leader = value["generation"], value["leader"]
        self.assignments = {each["memberId"]: each["assignment"] for each in value["members"]}
        names = ((each.get("groupInstanceId"), each["memberId"]) for each in value["members"])
        self.instances = {instance: member for instance, member in names if instance}

    def end(self) -> None:
        """The tombstone of the group."""
        by_instance = {instance: self.assignments[member] for instance, member in self.instances.items()}
        self.before = self.assignments | by_instance
        self.generation, self.leader, self.assignments, self.instances = None, None, {}, {}
        self.generations, self.views = {}, {}


class View(NamedTuple):
    """Topics as the leader may have known them."""

    image: TopicImage
    at: LogPosition
    story: str


class ClassicAudit:
    """The audit of one generation of a classic group of consumers."""

    def __init__(
        self,
        memory: LeaderMemory,
        record: CoordinatorRecord,
        history: TopicHistory | None,
        settings: AuditSettings,
        gap: str | None,
    ) -> None:
        """``record`` is the group's, with members; ``gap``: what of the group's past was not seen."""
        self.memory = memory
        self.record = record
        self.value: Fields = record.value or {}
        self.history = history
        self.settings = settings
        self.gap = gap
        self.protocol: str = self.value["protocol"]
        self.profile: Profile = PROFILES[settings.profile]

    def row(self) -> TargetAuditRow:
        """The verdict; raises nothing."""
        members = {each["memberId"]: each["assignment"] for each in self.value["members"]}
        if self.memory.generation == self.value["generation"]:
            return self._kept(members)
        try:
            blobs = {each["memberId"]: self._blobs(each) for each in self.value["members"]}
        except DecodeError as error:
            return self._unknown(f"a member's blob that can be read: {error}")
        if self.protocol == STREAMS:
            return self._streams(blobs)
        joined = {
            each["memberId"]: subscribed_member(blobs[each["memberId"]][0].fields, each.get("groupInstanceId"))
            for each in self.value["members"]
        }
        theirs = {member: recorded(blob[1].fields) if blob[1] else {} for member, blob in blobs.items()}
        return self._judge(joined, theirs)

    def _judge(self, joined: Mapping[str, ClassicMemberSpec], theirs: Mapping[str, Serialised]) -> TargetAuditRow:
        views = list(self._views(joined))
        if not views:
            return self._unknown(NO_TOPICS)
        attempts: list[tuple[View, LeaderRound]] = []
        leader = self.value["leader"]
        kept = self.memory.generations.get(leader)
        for memory in dict.fromkeys((kept, None)):
            for view in views:
                try:
                    round_ = leader_round(self.protocol, joined, view.image, memory, self.profile)
                except InputError:
                    return self._unknown(f"the assignor {self.protocol!r}, which is none of Kafka's")
                attempts.append((view, round_))
                if _is_exact(round_, theirs):
                    self._remember(leader, round_)
                    self._note_oldest(leader, views, view, joined, theirs, memory)
                    return self._fits(view, joined, theirs, view.story)
        self._remember(leader, attempts[0][1])
        for view, round_ in attempts:
            if _is_same(round_, theirs):
                return self._fits(view, joined, theirs, f"{view.story}; {AS_SETS}")
        view, round_ = next((each for each in attempts if each[1].error is None), attempts[0])
        if round_.error is not None:
            return self._unknown(f"the assignor refuses: {round_.error}")
        spec = ClassicGroupSpec(leader_order(joined))
        wanted = self._wanted(joined, views)
        broken = broken_invariants(joined, theirs, wanted, shared=False, name_of=str)
        judged = judge(spec, view.image, dict(round_.assignments), dict(theirs), broken, str)
        missing = None
        doubt = self.history.doubt(self.record.at.timestamp_ms) if self.history is not None else None
        if judged.verdict in WRONG and doubt and not self._contradicts_itself(joined, theirs):
            judged, missing = judged._replace(verdict=Verdict.UNKNOWN), f"{NO_TOPICS} ({doubt})"
        if judged.verdict is Verdict.DIVERGENT and self.protocol in MEMBER_DATA and kept is None and self.gap:
            judged, missing = judged._replace(verdict=Verdict.UNKNOWN), self.gap
        return self._row(judged, view=view, missing=missing)

    def _contradicts_itself(self, joined: Mapping[str, ClassicMemberSpec], theirs: Mapping[str, Serialised]) -> bool:
        """Whether a partition is given to two, or to one that does not subscribe to it, whatever topics there are."""
        given = {unit for work in theirs.values() for unit in units(work)}
        wanted = {member: {unit for unit in given if unit.name in had.topics} for member, had in joined.items()}
        return bool(broken_invariants(joined, theirs, wanted, shared=False, name_of=str))

    def _remember(self, leader: str, round_: LeaderRound) -> None:
        if round_.memory is not None:
            self.memory.generations[leader] = round_.memory

    def _note_oldest(
        self,
        leader: str,
        views: list[View],
        fitting: View,
        joined: Mapping[str, ClassicMemberSpec],
        theirs: Mapping[str, Serialised],
        memory: int | None,
    ) -> None:
        """Remember the oldest topics that explain the assignment as well as those that were found to."""
        oldest = fitting.at
        for view in views[views.index(fitting) + 1 :]:
            if view.at > oldest or not _is_exact(
                leader_round(self.protocol, joined, view.image, memory, self.profile), theirs
            ):
                break
            oldest = view.at
        self.memory.views[leader] = oldest.timestamp_ms, oldest.offset

    def _views(self, joined: Mapping[str, ClassicMemberSpec]) -> Iterator[View]:
        """Views that the leader can have had, the likeliest first."""
        if self.history is None or not len(self.history):
            return
        names = {topic for member in joined.values() for topic in member.topics}
        now = self.record.at.timestamp_ms
        leader = joined.get(self.value["leader"])
        since, until = now - self.settings.metadata_age_ms, now + self.settings.clock_slack_ms
        known = self.history.window(since, until, names)
        floor = self.memory.views.get(self.value["leader"])
        if floor is not None:
            known = [each for each in known if (each.at.timestamp_ms, each.at.offset) >= floor] or known[-1:]
        versions = sorted(
            known, key=lambda version: (version.at.timestamp_ms > now, abs(version.at.timestamp_ms - now))
        )
        replaced = {old.version: new.at.timestamp_ms for old, new in pairwise(known)}
        for version in versions:
            story = NEWEST
            if version is not versions[0]:
                age = now - replaced.get(version.version, now)
                story = f"topics that had changed {age} ms before" if age > 0 else "topics that changed just then"
            yield View(version.image, version.at, story)
        is_new = self.memory.leader != self.value["leader"]
        if leader is not None and is_new and set(leader.topics) != names:
            for version in versions:
                own = TopicImage.of(
                    [version.image.by_name[name] for name in leader.topics if name in version.image.by_name],
                    version.image.broker_racks,
                )
                yield View(own, version.at, "topics of the leader's own subscription only")

    def _wanted(self, joined: Mapping[str, ClassicMemberSpec], views: list[View]) -> dict[str, set[WorkUnit]]:
        """What each member may be given by any of the views."""
        return {
            member: {
                WorkUnit("", name, number)
                for name in had.topics
                for view in views
                if name in view.image.by_name
                for number in range(view.image.by_name[name].partitions)
            }
            for member, had in joined.items()
        }

    def _blobs(self, member: Fields) -> tuple[Blob, Blob | None]:
        protocol_type = self.value["protocolType"]
        subscription = decode_subscription(protocol_type, self.protocol, member["subscription"])
        if subscription is None:
            raise DecodeError("an empty subscription", record_type=protocol_type)
        return subscription, decode_assignment(protocol_type, self.protocol, member["assignment"])

    def _kept(self, members: Mapping[str, bytes]) -> TargetAuditRow:
        """The same generation again: a static member came back under another id, or nothing changed at all."""
        before = self.memory.assignments
        changed = [member for member, mine in members.items() if before.get(member, mine) != mine]
        came = sorted(members[member] for member in members.keys() - before.keys())
        gone = sorted(before[member] for member in before.keys() - members.keys())
        if not changed and came == gone:
            return self._row(Judgement(Verdict.IDENTICAL), basis=Basis.KEPT, fitted="the same generation again")
        said = [f"{member}: its assignment changed within the generation" for member in changed]
        said = said or ["a member that came has not the assignment of the one that went"]
        return self._row(Judgement(Verdict.DIVERGENT, tuple(said[:MOST_DIFFERENCES]), len(said)), basis=Basis.KEPT)

    def _streams(self, blobs: Mapping[str, tuple[Blob, Blob | None]]) -> TargetAuditRow:
        """Classic Kafka Streams: the leader alone knows the topology, so that only invariants can be checked."""
        consumers: dict[str, StreamsConsumer] = {}
        for member, (subscription, assignment) in blobs.items():
            consumer = None if assignment is None else streams_consumer(subscription, assignment)
            if consumer is None:
                return self._unknown("user data of Kafka Streams in each member's blobs")
            consumers[member] = consumer
        found = [f"{each.invariant}: {each.what}, {', '.join(each.members)}" for each in breaches(consumers)]
        if found:
            return self._row(Judgement(Verdict.INVALID, tuple(found[:MOST_DIFFERENCES]), len(found)))
        return self._unknown("the topology, which only the leader has; no invariant is broken")

    def _fits(
        self, view: View, joined: Mapping[str, ClassicMemberSpec], theirs: Mapping[str, Serialised], story: str
    ) -> TargetAuditRow:
        figures = figures_of(ClassicGroupSpec(leader_order(joined)), view.image, dict(theirs))
        return self._row(Judgement(Verdict.IDENTICAL, (), 0, figures, figures), view=view, fitted=story)

    def _unknown(self, missing: str) -> TargetAuditRow:
        return self._row(Judgement(Verdict.UNKNOWN), missing=missing)

    def _row(
        self,
        judged: Judgement,
        *,
        view: View | None = None,
        basis: Basis = Basis.LEADER,
        fitted: str | None = None,
        missing: str | None = None,
    ) -> TargetAuditRow:
        return generation_row(
            self.record,
            judged,
            basis=basis,
            fitted=fitted,
            missing=missing,
            topics_at=view.at if view else None,
        )


def _is_exact(round_: LeaderRound, theirs: Mapping[str, Serialised]) -> bool:
    return round_.error is None and written(round_.assignments) == written(theirs)


def _is_same(round_: LeaderRound, theirs: Mapping[str, Serialised]) -> bool:
    return round_.error is None and all(
        same_sets(round_.assignments.get(member, {}), mine) for member, mine in theirs.items()
    )


def generation_row(
    record: CoordinatorRecord,
    judged: Judgement,
    *,
    basis: Basis,
    fitted: str | None = None,
    missing: str | None = None,
    topics_at: LogPosition | None = None,
) -> TargetAuditRow:
    """The row of a classic group's generation; its record has members."""
    value: Fields = record.value or {}
    return TargetAuditRow(
        group_id=record.group_id,
        group_type=GroupType.CLASSIC,
        epoch=value["generation"],
        at=record.at,
        opened=record.at,
        verdict=judged.verdict,
        basis=basis,
        assignor=value["protocol"],
        fitted=fitted,
        missing=missing,
        differences=judged.differences,
        difference_count=judged.difference_count,
        members=len(value["members"]),
        expected=judged.expected,
        recorded=judged.recorded,
        topics_at=topics_at,
        topics_proven=None,
    )


def written(assignments: Mapping[str, Serialised]) -> dict[str, list[tuple[str, list[int]]]]:
    """Assignments with their orders, without those members that get nothing."""
    return {
        member: [(topic, list(numbers)) for topic, numbers in mine.items()]
        for member, mine in assignments.items()
        if mine
    }
