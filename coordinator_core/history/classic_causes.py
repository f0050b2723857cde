"""Why a classic group has a new generation: what its members asked for and were assigned, before and after."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from coordinator_core.assignors.client.leader_view import ASSIGNS_ALL
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.topic_changes import TopicChange
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE, COOPERATIVE_STICKY
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.history.causes import CauseKind, about, cause, difference, topic_causes
from coordinator_core.history.held_units import NO_ASSIGNMENT, NO_SUBSCRIPTION, ClassicSubscription, asked_for, given_to
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.history.holdings import Resource, WorkUnit
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch
from coordinator_core.history.rows import Cause
from coordinator_core.records import LogPosition

DUE_SLACK_MS = 100
"""A rebalance that Kafka Streams scheduled may come a little early, by the clock of the coordinator."""


IF_BY_PATTERN: Final = "if the member subscribes by a pattern, which the log of a classic group does not say"

GOING = ("deleted", "replaced")
"""Changes that take away what a topic was."""

_CHOSEN_ID: Final = re.compile(r"[\w-]{22}", re.ASCII)
"""A UUID as clients write it."""

_NONE: Mapping[int, object] = {}


class Transition(NamedTuple):
    """From one generation to the next: the group before and after, its topics after, and what members took.

    ``metadata_age_ms``: clients refresh their metadata at the latest after so long.
    """

    last: OpenEpoch
    old: ClassicGroup
    new: ClassicGroup
    topics: set[str]
    taken: list[tuple[Resource, list[int]]]
    at: LogPosition
    metadata_age_ms: int

    @property
    def may_be_rewritten(self) -> bool:
        """Whether the last generation may have been written before, in a record that is lost: then it is not known what
        its leader knew, and which static members were replaced in it.
        """
        return self.last.missing is not None and has_static_members(self.old)


def has_static_members(group: ClassicGroup) -> bool:
    """Whether a generation may be written again: for a static member that comes back."""
    return any(member.instance_id is not None for member in group.members.values())


def subscription(group: ClassicGroup, member: ClassicMember) -> ClassicSubscription:
    """Return what a member asks for; nothing if that cannot be read."""
    return asked_for(group, member) or NO_SUBSCRIPTION


def subscription_causes(old: ClassicGroup, new: ClassicGroup, at: LogPosition) -> list[Cause]:
    """Return causes for members whose subscription changed, and for another protocol of the group."""
    causes = []
    if old.protocol and new.protocol and old.protocol != new.protocol:
        causes.append(cause(CauseKind.PROTOCOL_CHANGED, at, detail=f"{old.protocol} to {new.protocol}"))
    for member_id, member in new.members.items():
        known = old.members.get(member_id)
        if known is None or known.subscription == member.subscription:
            continue
        before, after = asked_for(old, known), asked_for(new, member)
        if before is None or after is None:
            continue
        if before.topics != after.topics:
            detail, topics = difference(before.topics, after.topics), before.topics ^ after.topics
            causes.append(about(member, CauseKind.SUBSCRIPTION_CHANGED, at, detail, topics))
        if before.rack_id != after.rack_id:
            detail = f"rack {before.rack_id} to {after.rack_id}"
            causes.append(cause(CauseKind.RACK_CHANGED, at, member=member_id, detail=detail))
    return causes


def follow_up_causes(open_history: OpenHistory, step: Transition) -> list[Cause]:
    """Return what the previous generation left to do: units revoked and not yet assigned again, or a delay."""
    causes, last = [], step.last
    withheld = _withheld(open_history, step)
    if withheld:
        detail = f"{withheld} partitions or tasks that generation {last.epoch} revoked"
        causes.append(cause(CauseKind.PARTITIONS_REVOKED, last.opened, detail=detail))
    if is_downgrade(last):
        detail = "its members join again as those of a classic group"
        causes.append(cause(CauseKind.GROUP_DOWNGRADED, last.opened, detail=detail))
    waited = any(member_id in step.new.members for member_id in step.old.members)
    slack = 0 if step.old.protocol_type == CONNECT_PROTOCOL_TYPE else DUE_SLACK_MS
    if waited and open_history.due_ms is not None and step.at.timestamp_ms >= open_history.due_ms - slack:
        detail = f"scheduled by generation {last.epoch} for {open_history.due_ms or 'at once'}"
        causes.append(cause(CauseKind.DELAY_ELAPSED, last.opened, detail=detail))
    return causes


def are_workers_of_kip_848(group: ClassicGroup) -> bool:
    """Whether all members are Connect workers with the ids that they chose on KIP-848, and kept when they moved back.

    The coordinator makes the ids of classic members: what a client is called, and behind it a UUID in words of hex.
    """
    are_chosen = all(_CHOSEN_ID.fullmatch(member_id) for member_id in group.members)
    return group.protocol_type == CONNECT_PROTOCOL_TYPE and bool(group.members) and are_chosen


def is_downgrade(generation: OpenEpoch) -> bool:
    """Whether this is the first generation of a group that was a consumer group before. Workers begin anew."""
    if generation.protocol_type == CONNECT_PROTOCOL_TYPE:
        return False
    kinds = {reason.kind for reason in generation.causes if reason.at == generation.opened}
    return CauseKind.GROUP_DOWNGRADED in kinds


def _withheld(open_history: OpenHistory, step: Transition) -> int:
    """How many units the generation before took away for this one to give out.

    Connect workers are told what to give up, cooperative consumers see it by what they own. Of others only what became
    of the units tells.
    """
    if not step.new.members or step.old.protocol in ASSIGNS_ALL:
        return 0
    if step.old.protocol_type == CONNECT_PROTOCOL_TYPE or step.old.protocol == COOPERATIVE_STICKY:
        return sum(given_to(step.old, member).revoked for member in step.old.members.values())
    idle, before = open_history.ownership.idle, open_history.ownership.before
    return sum(
        1
        for resource, partitions in step.taken
        for partition in partitions
        if idle.get(resource, _NONE).get(partition) == step.last.opened
        and before.get(resource, _NONE).get(partition) in step.old.members
    )


def units_of_work(open_history: OpenHistory) -> set[WorkUnit]:
    """Return the connectors and tasks that workers have."""
    return {
        WorkUnit(*resource, number)
        for held in open_history.current.members.values()
        for resource, numbers in held.items()
        if resource[0] in ("connector", "task")
        for number in numbers
    }


def connect_causes(open_history: OpenHistory, step: Transition, work: set[WorkUnit]) -> list[Cause]:
    """Return causes for connectors that were added, removed or reconfigured; ``work`` is what the workers had
    before.
    """
    before, after = (_config_offset(group) for group in (step.old, step.new))
    if before is None or after is None or after <= before:
        return []
    names = {unit.name for unit in work ^ units_of_work(open_history)}
    detail = f"config offset {before} to {after}"
    return [cause(CauseKind.CONNECTORS_CHANGED, step.at, topics=names, detail=detail)]


def config_causes(old: ClassicGroup, new: ClassicGroup, at: LogPosition) -> list[Cause]:
    """Return a cause for each Connect worker that comes back without what it was assigned (see ``DistributedHerder``:
    it forces a rebalance), and one where the leader could not read what another worker had read: it has all join again
    once it has, and only where it still has not then, their config topics differ.

    A worker reads its config topic to the end before it runs an assignment or joins.
    """
    if CONNECT_PROTOCOL_TYPE not in (old.protocol_type, new.protocol_type):
        return []
    causes = []
    before = {member_id: given_to(old, member) for member_id, member in old.members.items()}
    assigned = {subscription(old, member).url: before[member_id] for member_id, member in old.members.items()}
    for member_id, member in new.members.items():
        joined = subscription(new, member)
        # One that brings an older assignment than it was given did not receive that: the next rebalance came before.
        given = assigned.get(joined.url, NO_ASSIGNMENT).config_offset
        due = given if joined.assigned_offset is None else joined.assigned_offset
        if joined.config_offset is not None and due is not None and joined.config_offset < due:
            detail = f"it came back with config offset {joined.config_offset} after it was assigned at {due}"
            causes.append(cause(CauseKind.CONFIGS_DIFFER, at, member=member_id, detail=detail))
    offsets = {member_id: subscription(old, member).config_offset for member_id, member in old.members.items()}
    known = {member_id: offset for member_id, offset in offsets.items() if offset is not None}
    if known and any(each.is_mismatch for each in before.values()):
        ahead = max(known, key=lambda member_id: known[member_id])
        leader = new.members.get(old.leader or "")
        has_read = None if leader is None else subscription(new, leader).config_offset
        if has_read is not None and has_read < known[ahead]:
            detail = (
                f"the leader could not read its config topic up to offset {known[ahead]}, which this worker has read"
            )
            causes.append(cause(CauseKind.CONFIGS_DIFFER, at, member=ahead, detail=detail))
        else:
            detail = f"the leader had not read its config topic up to offset {known[ahead]} yet when it assigned"
            causes.append(cause(CauseKind.CONNECTORS_CHANGED, at, detail=detail))
    return causes


def _config_offset(group: ClassicGroup) -> int | None:
    """The newest config offset that a worker has read."""
    offsets = (subscription(group, member).config_offset for member in group.members.values())
    return max((offset for offset in offsets if offset is not None), default=None)


def topic_changes_seen(writer: HistoryWriter, step: Transition) -> list[Cause]:
    """Return changes of subscribed topics that this generation is the first to act on.

    There is no hash: the leader may not have seen a change yet. What it assigns shows whether it has.
    """
    open_history, last = writer.open_history, step.last
    still_subscribed = set(last.topics) & step.topics
    topics = writer.topics
    if topics is None or last.topics_version < 0 or not (topics.is_listed or topics.shows_all(step.at.timestamp_ms)):
        return _by_assignment(open_history, step, still_subscribed)
    now = topics.version_at(step.at.timestamp_ms)
    later = topics.version_at(step.at.timestamp_ms + CLOCK_TOLERANCE_MS)
    had, assigned = highest_had(step.old), _highest_assigned(open_history)
    gone = {change.name for change in open_history.unseen if change.kind in GOING}
    open_history.unseen += _without_known(topics.changes(last.topics, last.topics_version, now), had, gone)
    ahead = topics.changes(still_subscribed, now, later)
    open_history.unseen += _without_known([each for each in ahead if is_assigned(each, assigned)], had)
    if not open_history.unseen:
        return _first_assigned(topics, step, still_subscribed, assigned)
    had = had if step.new.protocol in ASSIGNS_ALL else {}
    changed: dict[str, list[TopicChange]] = {}
    for change in open_history.unseen:
        changed.setdefault(change.name, []).append(change)
    acted = set[tuple[str, LogPosition]]()
    for name, changes in changed.items():
        count = _count_acted_on(changes, assigned.get(name, -1), was_assigned=name in had)
        acted.update((name, change.at) for change in changes[:count])
        if any(change.kind in GOING for change in changes[:count]):
            # The topic of before is gone: what is assigned now is of another one.
            open_history.highest.pop(name, None)
            open_history.highest |= {name: assigned[name]} if name in assigned else {}
    subscribed = [change for change in open_history.unseen if change.name in still_subscribed]
    open_history.unseen = [change for change in subscribed if (change.name, change.at) not in acted]
    causes = topic_causes(change for change in subscribed if (change.name, change.at) in acted)
    return causes + _first_assigned(topics, step, still_subscribed - changed.keys(), assigned)


def leave_out_topics_known(open_history: OpenHistory, new: ClassicGroup) -> None:
    """Leave out, of the changes that a consumer group had not seen when it became classic, those that its members know.

    Its last epoch's hash tells which changes it had not seen; what a member has of a topic, this generation knows.
    """
    had = highest_had(new) | _highest_assigned(open_history)
    open_history.unseen = _without_known(open_history.unseen, had)


def _without_known(
    changes: list[TopicChange], had: dict[str, int], unseen: AbstractSet[str] = frozenset()
) -> list[TopicChange]:
    """Leave out the topics and partitions that the generation before had already: the controller, whose clock says
    that they came later, is ahead.

    It had those of ``unseen`` as they were before they were deleted.
    """
    kept, gone = [], {*unseen}
    for change in changes:
        highest = -1 if change.name in gone else had.get(change.name, -1)
        if is_assigned(change, {change.name: highest}):
            continue
        if change.kind in GOING:
            gone.add(change.name)
        kept.append(change)
    return kept


def is_assigned(change: TopicChange, highest: dict[str, int]) -> bool:
    """Whether assigned partitions prove that a topic, or partitions of it, had come: by whatever clock."""
    first = change.before.partitions if change.before is not None and change.kind == "grown" else 0
    return change.kind in ("created", "grown") and highest.get(change.name, -1) >= first


def matched_topic_causes(writer: HistoryWriter, step: Transition) -> list[Cause]:
    """Return topics that were created or deleted since the last generation, and that a member has taken into its
    subscription or out of it: clients that match names against a pattern do so, librdkafka with all that are gone.

    The subscription in the log has names only, so that each of them may have been changed by hand as well.
    """
    open_history, last = writer.open_history, step.last
    if writer.topics is None or last.topics_version < 0:
        return []
    came, went = set[str](), set[str]()
    for member_id, member in step.new.members.items():
        if member_id in step.old.members:
            before, after = subscription(step.old, step.old.members[member_id]), subscription(step.new, member)
            came |= after.topics - before.topics
            went |= before.topics - after.topics
    now = writer.topics.version_at(step.at.timestamp_ms)
    unseen = [change for change in open_history.unseen if change.name in came | went]
    final = {change.name: change for change in [*unseen, *writer.topics.changes(came | went, last.topics_version, now)]}
    fit = (each for name, each in final.items() if name in {"created": came, "deleted": went}.get(each.kind, ()))
    return [each._replace(hint=IF_BY_PATTERN) for each in topic_causes(fit)]


def _first_assigned(
    topics: TopicHistory, step: Transition, subscribed: set[str], assigned: dict[str, int]
) -> list[Cause]:
    """Return causes for topics and partitions that the leader came to know: nothing of them was assigned in the
    generation before.

    They existed, and members subscribed to them. An assignor of Kafka leaves no partition out that the leader knows,
    but for those that a cooperative member has yet to revoke.
    """
    if is_downgrade(step.last) or not (step.old.protocol in ASSIGNS_ALL or step.old.protocol == COOPERATIVE_STICKY):
        return []
    if step.may_be_rewritten:
        return []
    had, since_ms = highest_had(step.old), step.last.opened.timestamp_ms
    there = {name: topics.topic_at(name, since_ms) for name in subscribed}
    known = {name: topic.partitions for name, topic in there.items() if topic is not None}
    names = [name for name in known if name not in had and assigned.get(name, -1) >= 0]
    causes = []
    if names:
        detail = f"the leader did not know them yet when it assigned generation {step.last.epoch}"
        causes.append(cause(CauseKind.TOPIC_METADATA_CHANGED, step.last.opened, topics=names, detail=detail))
    for name in sorted(known.keys() & had.keys()):
        first, last = had[name] + 1, min(assigned.get(name, -1), known[name] - 1)
        if first <= last:
            detail = f"the leader did not know partitions {first} to {last} yet when it assigned generation "
            detail += str(step.last.epoch)
            causes.append(cause(CauseKind.TOPIC_METADATA_CHANGED, step.last.opened, topics=(name,), detail=detail))
    return causes


def highest_had(group: ClassicGroup) -> dict[str, int]:
    """Return, by topic, the highest partition that members were assigned, or had when they joined."""
    highest: dict[str, int] = {}
    for member in group.members.values():
        for (role, name), numbers in given_to(group, member).held.items():
            if role == "partition":
                highest[name] = max([highest.get(name, -1), *numbers])
        for unit in subscription(group, member).owned:
            highest[unit.name] = max(highest.get(unit.name, -1), unit.number)
    return highest


def _count_acted_on(changes: list[TopicChange], highest_assigned: int, *, was_assigned: bool) -> int:
    """Return how many of the changes of one topic the leader acted on: all, or those up to a deletion.

    A topic that was deleted and created again may be assigned to no member: then the leader knew of the deletion only.
    """
    # From the last change back: whoever acted on it has acted on those before.
    for count in range(len(changes), 0, -1):
        is_certain = count == len(changes) or (was_assigned and changes[count - 1].kind == "deleted")
        if is_certain and _acted_on(changes[count - 1], highest_assigned):
            return count
    return 0


def _acted_on(change: TopicChange, highest_assigned: int) -> bool:
    if change.kind == "deleted":
        return highest_assigned < 0
    if change.kind == "grown" and change.before is not None:
        return highest_assigned >= change.before.partitions
    return change.kind == "moved" or highest_assigned >= 0


def _highest_assigned(open_history: OpenHistory) -> dict[str, int]:
    highest: dict[str, int] = {}
    for held in open_history.current.members.values():
        for (role, topic), partitions in held.items():
            if role == "partition":
                highest[topic] = max(highest.get(topic, -1), *partitions)
    return highest


def _by_assignment(open_history: OpenHistory, step: Transition, subscribed: set[str]) -> list[Cause]:
    """Where topics are not known: partitions never assigned before, and topics of which none is assigned any more.

    They came or went, or the leader had not known them, or does not any more: the log does not tell.
    """
    if is_downgrade(step.last):  # the leader is the first to assign; members have what they had as a consumer group
        return []
    causes = []
    assigned = _highest_assigned(open_history)
    gone = _not_assigned_any_more(open_history, step.new, assigned.keys())
    for topic in sorted(subscribed):
        before, now = open_history.highest.get(topic, -1), assigned.get(topic, -1)
        detail = None
        if now > before:
            detail = f"partitions {before + 1} to {now} are assigned for the first time"
        elif topic in gone:
            detail = "it is subscribed, but none of its partitions is assigned any more"
        if detail is not None:
            causes.append(cause(CauseKind.TOPIC_METADATA_CHANGED, step.at, topics=(topic,), detail=detail))
    return causes


def _not_assigned_any_more(
    open_history: OpenHistory, new: ClassicGroup, assigned: AbstractSet[str]
) -> AbstractSet[str]:
    """Return the topics that the leader subscribes to, of which partitions were assigned before and none are now."""
    leader = new.members.get(new.leader or "")
    if leader is None or new.protocol not in ASSIGNS_ALL:
        return frozenset()
    return (subscription(new, leader).topics & open_history.highest.keys()) - assigned


def note_highest(open_history: OpenHistory, taken: list[tuple[Resource, list[int]]], new: ClassicGroup | None) -> None:
    """Keep the highest partition ever assigned of each topic, and forget a topic of which none is assigned any more.

    ``new`` is None if an assignment cannot be read.
    """
    if new is not None:
        for topic in _not_assigned_any_more(open_history, new, _highest_assigned(open_history).keys()):
            del open_history.highest[topic]
    for (role, topic), partitions in taken:
        if role == "partition":
            open_history.highest[topic] = max(open_history.highest.get(topic, -1), *partitions)
