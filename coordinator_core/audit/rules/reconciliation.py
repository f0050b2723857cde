"""Rules of a member's way to its target: what its current assignment may hold, in which state and epoch.

Sources: KIP-848, KIP-932, KIP-1071; the builders of current assignments of Kafka 4.3.1.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from coordinator_core.audit.rules.holders import HOLDS_NOTHING, both, minus, name, names
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import REGEX
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, EpochGroup
from coordinator_core.groups.rules import ASSIGNMENT_EPOCH, EPOCH, MEMBER, TARGET, Rule
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.held_units import CONSUMER_KIND, STREAMS_KIND, EpochKind
from coordinator_core.history.holdings import Held, Resource, WorkUnit
from coordinator_core.records import LogPosition


class CurrentBefore(NamedTuple):
    """A member's current assignment before a record: what it had, also to revoke, and its epochs.

    ``epoch`` is None where the member had none.
    """

    held: Held
    assigned: Held = HOLDS_NOTHING
    epoch: int | None = None
    previous: int | None = None


class Reconciliation(NamedTuple):
    """A member's current assignment as a record leaves it.

    ``target`` is what the member is to have, ``before`` what it had; None: the log may lack it.
    """

    kind: EpochKind
    member: Any
    at: LogPosition
    assigned: Held
    revoking: Held
    target: Held | None
    before: CurrentBefore | None


def target_of(judged: JudgedGroup, kind: EpochKind, member_id: str, at: LogPosition) -> Held | None:
    """Return what a member is to have; None if the log may lack it.

    Brokers after 4.4 lead members of streams groups to their targets in steps, which they keep in memory: a task stays
    where its state is until it has warmed up elsewhere (KIP-1071).
    """
    if not judged.facts.knows_member(TARGET, member_id) or (kind is STREAMS_KIND and judged.may_be_after_4_4(at)):
        return None
    state = judged.group.state
    assert isinstance(state, EpochGroup)
    target = state.targets.get(member_id)
    return HOLDS_NOTHING if target is None else kind.wanted(target)


def judge_reconciliation(judged: JudgedGroup, step: Reconciliation) -> None:
    """Judge a current assignment: its epochs, its state, and what it holds of the target."""
    _positive(judged, step)
    _epochs(judged, step)
    _state(judged, step)
    _content(judged, step)
    if step.revoking:
        _revoking(judged, step)


# --- epochs and state ------------------------------------------------------------------------------------------------


def _positive(judged: JudgedGroup, step: Reconciliation) -> None:
    state, member = judged.group.state, step.member
    assert isinstance(state, EpochGroup)
    epoch = member.member_epoch
    if epoch > 0 or step.before is None or not judged.facts.knows_member(MEMBER, member.member_id):
        return
    is_away = epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and member.instance_id is not None
    if not (is_away or _is_copy(judged, step) or epoch == state.assignment_epoch):
        judged.broken(Rule.MEMBER_EPOCH_NOT_POSITIVE, step.at, member.member_id, f"member epoch {epoch}")


def _epochs(judged: JudgedGroup, step: Reconciliation) -> None:
    state, member, before = judged.group.state, step.member, step.before
    assert isinstance(state, EpochGroup)
    epoch, member_id, target = member.member_epoch, member.member_id, state.assignment_epoch
    knows_target = target is not None and judged.facts.knows(ASSIGNMENT_EPOCH)
    if knows_target and epoch > target:
        detail = f"member epoch {epoch}, assignment epoch {target}"
        judged.broken(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET, step.at, member_id, detail)
    if before is None or epoch <= 0:
        return
    if before.epoch is None:
        if member.previous_member_epoch not in (0, epoch):  # as after a conversion
            detail = f"previous member epoch {member.previous_member_epoch}, but it had none"
            judged.broken(Rule.PREVIOUS_EPOCH_WRONG, step.at, member_id, detail)
        return
    # A broker up to 4.0 records the topics. Until 3.9 a consumer that has revoked goes on to the next epoch, and may
    # have to revoke more.
    may_be_old = isinstance(state, ConsumerGroup) and state.subscription_metadata is not None
    by_one = epoch == before.epoch + 1 and (step.kind is STREAMS_KIND or may_be_old)
    if knows_target and before.epoch < epoch < target and not by_one:
        detail = f"member epoch {epoch} after {before.epoch}, assignment epoch {target}"
        judged.broken(Rule.MEMBER_EPOCH_NOT_THE_TARGETS, step.at, member_id, detail)
    # In share groups a record of the same epoch leaves the epoch before as it was; so does one of a broker of 4.2 that
    # asks a consumer for what it no longer subscribes to: such brokers do not write when a target was computed.
    is_same = epoch == before.epoch
    expected = before.previous if is_same and not step.kind.exclusive else before.epoch
    may_stay = is_same and step.kind is CONSUMER_KIND and not state.assignment_timestamp
    if member.previous_member_epoch not in (expected, before.previous if may_stay else expected):
        detail = f"previous member epoch {member.previous_member_epoch}, but it was at {expected}"
        judged.broken(Rule.PREVIOUS_EPOCH_WRONG, step.at, member_id, detail)


def _state(judged: JudgedGroup, step: Reconciliation) -> None:
    member, kind = step.member, step.kind
    if not kind.exclusive or member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH or _is_copy(judged, step):
        return
    if _is_new(step):
        return
    if bool(step.revoking) != (member.state == kind.unrevoked):
        count = sum(len(units) for units in step.revoking.values())
        detail = f"state {member.state} with {count} to be revoked"
        judged.broken(Rule.STATE_AGAINST_ASSIGNMENT, step.at, member.member_id, detail)
    waits = member.state == kind.unreleased and _is_at_target(judged, step)
    if waits and step.target is not None and not any(minus(step.target, step.assigned)):
        detail = f"state {member.state}, but it lacks nothing of its target"
        judged.broken(Rule.STATE_AGAINST_ASSIGNMENT, step.at, member.member_id, detail)


def _is_new(step: Reconciliation) -> bool:
    """Whether the member is in a state that is not known here: what holds in it is not known either."""
    return step.member.state not in (step.kind.stable, step.kind.unrevoked, step.kind.unreleased)


def _is_copy(judged: JudgedGroup, step: Reconciliation) -> bool:
    """Whether a static member begins in the state in which the one before it was."""
    return step.member.member_epoch == 0 and step.member.member_id in judged.operation.replaced


def _is_at_target(judged: JudgedGroup, step: Reconciliation) -> bool:
    """Whether the member has reached the epoch of its target, which is then what its assignment was made of."""
    state = judged.group.state
    assert isinstance(state, EpochGroup)
    is_same = step.member.member_epoch == state.assignment_epoch
    return is_same and judged.facts.knows(ASSIGNMENT_EPOCH) and not step.revoking and not _is_copy(judged, step)


# --- content ---------------------------------------------------------------------------------------------------------


def _content(judged: JudgedGroup, step: Reconciliation) -> None:
    target, assigned, member_id = step.target, step.assigned, step.member.member_id
    if target is None or step.member.member_epoch <= 0:
        return
    if assigned != target and not _is_new(step):
        if step.before is not None:
            strange = list(minus(assigned, target, step.before.held))
            if strange:
                detail = f"{names(strange)} is not in its target"
                judged.broken(Rule.ASSIGNED_OUTSIDE_TARGET, step.at, member_id, detail)
        if _is_at_target(judged, step):
            _reached(judged, step, target)
    kept_all = step.before is not None and step.before.assigned == assigned
    if step.before is not None and not kept_all and step.kind.exclusive and not _is_copy(judged, step):
        dropped = list(_dropped(judged, step, target, step.before))
        if dropped:
            detail = f"{names(dropped)} is neither assigned nor to be revoked"
            judged.broken(Rule.DROPPED_WITHOUT_REVOCATION, step.at, member_id, detail)


def _reached(judged: JudgedGroup, step: Reconciliation, target: Held) -> None:
    """A member at the epoch of its target has all of it that no other member has, and if it is stable, all of it."""
    state, kind, member = judged.group.state, step.kind, step.member
    assert isinstance(state, EpochGroup)
    is_stable = member.state == kind.stable
    lacking = list(_subscribed(judged, step, minus(target, step.assigned)))
    if kind.exclusive and not is_stable and lacking:
        lacking = list(_free(judged, step, lacking))
    converged = is_stable and member.member_epoch == state.group_epoch and judged.facts.knows(EPOCH)
    surplus = list(minus(step.assigned, target)) if converged else []
    if lacking or surplus:
        how = "stable" if is_stable else "waiting for others"
        detail = f"{how}; beside its target: {names(surplus) or 'nothing'}; lacks: {names(lacking) or 'nothing'}"
        judged.broken(Rule.ASSIGNED_NOT_THE_TARGET, step.at, member.member_id, detail)


def _dropped(judged: JudgedGroup, step: Reconciliation, target: Held, before: CurrentBefore) -> Iterator[WorkUnit]:
    """Yield what the member had and is to keep, or has to revoke with the rest, and what the record does not have."""
    gone = minus(before.assigned, step.assigned, step.revoking)
    if step.revoking:
        return gone
    return _subscribed(judged, step, (unit for unit in gone if unit.number in target.get(unit.resource, ())))


def _revoking(judged: JudgedGroup, step: Reconciliation) -> None:
    """What a member is to give up was its own, and is assigned to it no more."""
    member_id = step.member.member_id
    for unit in both(step.assigned, step.revoking):
        detail = f"{name(unit)} is both assigned and pending revocation"
        judged.broken(Rule.ASSIGNED_WHILE_REVOKING, step.at, member_id, detail)
    strange = [] if step.before is None else list(minus(step.revoking, step.before.held))
    if strange:
        judged.broken(Rule.REVOKING_NOT_OWNED, step.at, member_id, f"{names(strange)} was not assigned to it")


def _subscribed(judged: JudgedGroup, step: Reconciliation, units: Iterable[WorkUnit]) -> Iterator[WorkUnit]:
    """Yield those units of a member's target to whose topic it certainly subscribes."""
    answers: dict[Resource, bool] = {}
    for unit in units:
        resource = unit.resource
        if resource not in answers:
            answers[resource] = _is_for(judged, step, resource)
        if answers[resource]:
            yield unit


def _is_for(judged: JudgedGroup, step: Reconciliation, resource: Resource) -> bool:
    """Whether the member certainly subscribes to a topic of its target.

    A target may hold topics of a regex that is not resolved yet, those of others where a group counts as one whose
    members all subscribe to the same, though it is no longer, what a converted group's leader once assigned, and topics
    that were deleted since.
    """
    state, member = judged.group.state, step.member
    if isinstance(state, StreamsGroup):
        return True
    assert isinstance(state, ConsumerGroup | ShareGroup)
    regex = member.subscribed_topic_regex
    subscribed = set(member.subscribed_topic_names)
    if not judged.facts.knows_member(MEMBER, member.member_id):
        return False
    if isinstance(state, ConsumerGroup) and regex in state.regexes and judged.facts.knows(REGEX + regex):
        subscribed.update(state.regexes[regex].topics)
    topics = judged.topics
    topic_id = resource[1]
    topic = topics.topic_name(topic_id) if topics is not None else None
    if topics is None or topic is None:
        if state.group_epoch != state.assignment_epoch or not judged.facts.knows(EPOCH):
            return False
        # Where nobody has a regex and all name the same topics, each of the target's is one of these.
        consumers = state.members.values() if isinstance(state, ConsumerGroup) else ()
        regexes = {each.subscribed_topic_regex for each in consumers}
        everyone = {frozenset(each.subscribed_topic_names) for each in state.members.values()}
        same = len(everyone) == 1 and not any(regexes) and bool(state.assignment_timestamp)
        return same or bool(step.assigned.get(resource))
    return topic in subscribed and topics.was_there(topic, topic_id, step.at.timestamp_ms, CLOCK_TOLERANCE_MS)


def _free(judged: JudgedGroup, step: Reconciliation, units: Iterable[WorkUnit]) -> Iterator[WorkUnit]:
    """Yield the units that can be assigned at once: no member has them, if all current assignments are known.

    Members of one process never have the same task, in whatever roles (KIP-1071); a member's own that it gives up with
    this record counts as well.
    """
    state, before = judged.group.state, step.before
    assert isinstance(state, EpochGroup)
    # Unless the log is whole, a member may have a unit by a record that is not there.
    if before is None or not judged.facts.whole:
        return
    in_process: set[tuple[str, int]] = set()
    if isinstance(state, StreamsGroup):
        process = [member for member in state.members.values() if member.process_id == step.member.process_id]
        held = [judged.current.held.get(thread.member_id, HOLDS_NOTHING) for thread in process]
        in_process = {(subject, task) for holding in held for (_, subject), tasks in holding.items() for task in tasks}
    for unit in units:
        has_holder = judged.current.has_holder(unit) or unit.number in before.held.get(unit.resource, ())
        if not has_holder and (unit.name, unit.number) not in in_process:
            yield unit
