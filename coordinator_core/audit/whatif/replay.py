"""What-if: computes a group's rounds with another assignor or setting and compares them with what happened.

Each round starts from what the computed round before assigned, not from the log's own targets. Membership and topics
are those of the log. The behaviour of clients is not guessed, with two exceptions: restarts under static membership
(KIP-345), and the second rebalance with which the cooperative assignor hands over what moves (KIP-429).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS
from coordinator_core.assignors.client.leader_view import leader_order
from coordinator_core.assignors.inputs import (
    AssignedGroupType,
    ClassicGroupSpec,
    ClassicMemberSpec,
    GroupSpec,
    GroupSpecs,
    MemberSpec,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    TaskId,
    Tasks,
)
from coordinator_core.assignors.plausible_counts import PlausibleCounts
from coordinator_core.assignors.registry import ASSIGNORS, assign, assignor
from coordinator_core.audit.targets.classic_connect import EAGER
from coordinator_core.audit.targets.inputs import tasks_of
from coordinator_core.audit.targets.rounds import Round, RoundMember
from coordinator_core.audit.targets.verdict import units
from coordinator_core.audit.whatif.connect import Following, changes, following, recorded_step, waited_ms
from coordinator_core.clients.known_clients import KnownClient
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import InputError
from coordinator_core.groups.classic.protocols import COOPERATIVE_STICKY
from coordinator_core.groups.streams.configs import HIGHLY_AVAILABLE
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.wire.embedded import encode_blob

ROLES = ("active", "standby", "warm-up")
STICKY_USER_DATA, VERSIONED_USER_DATA = "StickyAssignorUserData", "KafkaPythonStickyUserData"
ANY_LAG = 2**63 - 1
"""The acceptable recovery lag with which every process counts as caught up (KIP-441)."""
ALL_READ = 1
"""A task offset that stands for the end of the changelog, where 0 stands for nothing of it."""
NO_UNITS: frozenset[WorkUnit] = frozenset()
Assigned = Mapping[str, frozenset[WorkUnit]]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The settings to change; None or empty: as it was.

    ``static_timeout_ms``: every client is a static member with this session timeout, so a client (client id and host)
    that returns within it keeps its partitions and no rebalance happens. ``cooperative``: members keep what does not
    move (KIP-429), or, if False, give up everything in each rebalance. ``standbys`` is num.standby.replicas,
    ``warmups`` num.warmup.replicas, ``recovery_lag`` acceptable.recovery.lag (KIP-1071).
    ``partitions`` has partition counts by topic. ``delay_ms`` is scheduled.rebalance.max.delay.ms of Connect workers.
    """

    assignor: str | None = None
    static_timeout_ms: int | None = None
    cooperative: bool | None = None
    standbys: int | None = None
    warmups: int | None = None
    recovery_lag: int | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)
    delay_ms: int | None = None


class WhatIfOutcome(NamedTuple):
    """The totals of a sequence of rounds.

    ``rebalances`` counts rounds in which something could change hands. ``moved`` counts partitions (tasks) that moved
    from one member to another, ``stopped`` those without a consumer for a while: they moved, or returned to the same
    member, or stayed through an eager rebalance. ``imbalance`` is the mean, ``worst_imbalance`` the largest difference
    between the most and the least loaded member. ``idle_ms`` is the time for which stopped partitions were idle; None:
    not known.
    """

    rebalances: int
    moved: int
    stopped: int
    imbalance: float
    worst_imbalance: int
    idle_ms: int | None


class Comparison(NamedTuple):
    """What happened, and what would have happened.

    ``repeated`` is made in the same way as ``hypothetical``, but without the change: its distance from ``actual`` is
    the error of the method. An assignment depends on the one before, and in the log it also depends on the order in
    which members came and on targets that were replaced before members reached them.
    """

    actual: WhatIfOutcome
    repeated: WhatIfOutcome
    hypothetical: WhatIfOutcome


class _Assignment(NamedTuple):
    members: Assigned
    eager: bool
    rebalances: int = 1
    of_connect: Following | None = None


def what_if(
    happened: Sequence[Round], change: WhatIf, idle_ms: int | None = None, until_ms: int | None = None
) -> Comparison:
    """Compare what happened with a changed setting.

    ``idle_ms`` is the idle time of these rounds in the history, None if unknown. The hypothetical idle time assumes
    that each stopped partition is idle as long as a stopped one was on average. Connect's work that waits for its
    worker does so for as long as the delay says: that time is computed, and only the rest is an average. ``until_ms``
    is the end of the log, or of the group: no delay ends after it (None: not known).

    Raises:
        InputError: the group cannot use this assignor, or its id named Connect workers at one time and not at another.
        AssignorError: Kafka's own class would throw.
    """
    unused = set(change.partitions).difference(*(round_.image.by_name for round_ in happened))
    if unused:
        raise InputError(f"the cluster had no topic {', '.join(sorted(unused))} at that time")
    if len({round_.type is AssignedGroupType.CONNECT for round_ in happened}) > 1:
        raise InputError(
            "this id named Connect workers at one time and another group at another: these cannot be compared"
        )
    recorded = [
        _Assignment(
            round_.recorded,
            round_.eager,
            of_connect=recorded_step(round_) if round_.type is AssignedGroupType.CONNECT else None,
        )
        for round_ in happened
    ]
    actual = _outcome(recorded, idle_ms)
    supposed = [list(_assignments(list(_supposed(happened, settings)), until_ms)) for settings in (WhatIf(), change)]
    repeated, hypothetical = (_outcome(assignments, None) for assignments in supposed)
    if idle_ms is not None and actual.stopped:
        mean = max(idle_ms - _all_waited_ms(recorded), 0) / actual.stopped
        repeated, hypothetical = (
            outcome._replace(idle_ms=round(mean * outcome.stopped) + _all_waited_ms(assignments))
            for outcome, assignments in zip((repeated, hypothetical), supposed, strict=True)
        )
    return Comparison(actual, repeated, hypothetical)


def _all_waited_ms(assignments: Iterable[_Assignment]) -> int:
    return waited_ms(assignment.of_connect for assignment in assignments if assignment.of_connect is not None)


def _supposed(happened: Sequence[Round], change: WhatIf) -> Iterator[Round]:
    """The rounds with the change made to what their assignor is given."""
    changed = [_changed(round_, change) for round_ in happened]
    if changed and changed[0].type is AssignedGroupType.CONNECT:
        yield from changes(changed)
        return
    if change.static_timeout_ms is None:
        yield from changed
        return
    before: Round | None = None
    for round_ in _with_static_members(changed, change.static_timeout_ms):
        if before is None or (round_.members, round_.image, round_.subtopologies) != (
            before.members,
            before.image,
            before.subtopologies,
        ):
            yield round_
        before = round_


def _changed(happened: Round, change: WhatIf) -> Round:
    name = change.assignor or happened.assignor
    kind = happened.type
    _refuse(kind, change)
    if (kind, name) not in ASSIGNORS:
        kind = {
            AssignedGroupType.CLASSIC: AssignedGroupType.CONSUMER,
            AssignedGroupType.CONSUMER: AssignedGroupType.CLASSIC,
        }.get(kind, kind)
    assignor(kind, name)
    # Of an assignor that the client has not, Kafka's own stands for it.
    client = happened.client if name in CLIENTS[happened.client] else JAVA
    eager = (
        name == EAGER and not happened.is_declared
        if kind is AssignedGroupType.CONNECT
        else kind is AssignedGroupType.CLASSIC and name != COOPERATIVE_STICKY
    )
    if change.cooperative is not None:
        eager = not change.cooperative
    configs = _configs(happened.configs, change, name)
    image = _with_partitions(happened.image, change.partitions)
    delay_ms = happened.max_delay_ms if change.delay_ms is None else change.delay_ms
    changed = replace(
        happened,
        type=kind,
        assignor=name,
        eager=eager,
        configs=configs,
        image=image,
        max_delay_ms=delay_ms,
        client=client,
    )
    if happened.topology is None or not change.partitions:
        return changed
    tasks = tasks_of(happened.topology, image)
    if tasks is None:
        raise InputError(
            "with these partitions the topology is not ready: topics are missing, or copartitioned topics differ"
        )
    return replace(changed, subtopologies=tasks)


def _configs(happened: StreamsConfigs, change: WhatIf, assignor_name: str) -> StreamsConfigs:
    """The configurations of a streams group with the change; raises InputError where the log cannot tell its effect."""
    if (change.warmups is not None or change.recovery_lag is not None) and assignor_name != HIGHLY_AVAILABLE:
        raise InputError(f"the assignor {assignor_name!r} has no warm-up tasks: use --assignor highly_available")
    if change.recovery_lag is not None and change.recovery_lag not in (happened.acceptable_recovery_lag, ANY_LAG):
        raise InputError(
            f"the log has no task offsets, which decide about an acceptable recovery lag of {change.recovery_lag}; "
            f"only {ANY_LAG} (any lag is acceptable) can be supposed"
        )
    return replace(
        happened,
        num_standby_replicas=happened.num_standby_replicas if change.standbys is None else change.standbys,
        num_warmup_replicas=happened.num_warmup_replicas if change.warmups is None else change.warmups,
        acceptable_recovery_lag=(
            happened.acceptable_recovery_lag if change.recovery_lag is None else change.recovery_lag
        ),
    )


def _refuse(kind: AssignedGroupType, change: WhatIf) -> None:
    """Raises InputError for what groups of this type do not have."""
    if kind is AssignedGroupType.CONNECT:
        if change.static_timeout_ms is not None:
            raise InputError("Connect workers cannot be static members")
        if change.cooperative is not None:
            raise InputError("Connect's protocol decides how it rebalances: use --assignor default or compatible")
    elif change.delay_ms is not None:
        raise InputError("only Connect groups have a scheduled rebalance delay")
    if kind is AssignedGroupType.SHARE and change.static_timeout_ms is not None:
        raise InputError("members of share groups cannot be static members")
    if kind is AssignedGroupType.STREAMS:
        return
    if change.standbys is not None:
        raise InputError("only streams groups have standby tasks")
    if change.warmups is not None or change.recovery_lag is not None:
        raise InputError("only streams groups have warm-up tasks")


def _with_partitions(image: TopicImage, counts: Mapping[str, int]) -> TopicImage:
    if not counts:
        return image
    topics = dict(image.by_name)
    for name, count in counts.items():
        if name in topics:
            known = topics[name]
            if count < known.partitions:
                raise InputError(f"{name} has {known.partitions} partitions, which cannot become {count}")
            topics[name] = Topic(name, known.id, count)
    return TopicImage.of(topics.values(), image.broker_racks)


def _with_static_members(happened: Sequence[Round], timeout_ms: int) -> Iterator[Round]:
    """Members under names that outlive restarts, each kept while it is away for less than the timeout."""
    renamed = _renamed(happened, timeout_ms)
    seen: dict[str, list[int]] = defaultdict(list)
    for number, members in enumerate(renamed):
        for name in members:
            seen[name].append(number)
    for name, numbers in seen.items():
        for last, again in pairwise(numbers):
            for number in range(last + 1, again):
                renamed[number][name] = renamed[last][name]
    for round_, members in zip(happened, renamed, strict=True):
        yield replace(round_, members=dict(sorted(members.items())), recorded={})


def _renamed(happened: Sequence[Round], timeout_ms: int) -> list[dict[str, RoundMember]]:
    """The members of each round; one that came takes the name of one of its client that left not long before.

    A client on KIP-848 comes back under its own member id: in time it takes its own name, later a new one.
    """
    names: dict[str, str] = {}
    left: dict[str, tuple[tuple[str, str], int]] = {}
    before: Mapping[str, RoundMember] = {}
    renamed, arrivals = [], 0
    for round_ in happened:
        now, present = round_.at.timestamp_ms, round_.members
        left.update((names[gone], (member.client, now)) for gone, member in before.items() if gone not in present)
        for member_id, member in present.items():
            if member_id in before:
                continue
            back = [name for name, (client, _) in left.items() if client == member.client]
            back = [name for name in back if now - left[name][1] <= timeout_ms]
            own = names.get(member_id)
            names[member_id] = own if own in back else next(iter(back), f"{member.client[0]}#{arrivals}")
            arrivals += 1
            left.pop(names[member_id], None)
        renamed.append({names[member_id]: member for member_id, member in present.items()})
        before = present
    return renamed


def _assignments(supposed: Sequence[Round], until_ms: int | None) -> Iterator[_Assignment]:
    """What the rounds assign, one after the other."""
    if supposed and supposed[0].type is AssignedGroupType.CONNECT:
        for change, steps in zip(supposed, following(supposed, until_ms), strict=True):
            yield from (_Assignment(step.assigned, change.eager, of_connect=step) for step in steps)
        return
    previous: Assigned = {}
    for number, round_ in enumerate(supposed):
        held = _held(previous)
        # Even generations: the odd ones are for the second rebalance of a cooperative group.
        previous, rebalances = _assigned(round_, previous, 2 * number), 1
        # The leader first takes what moves from its owner and gives it out in a second rebalance (KIP-429): there is
        # one only if something that is still subscribed to was given up and has no owner yet.
        if round_.assignor == COOPERATIVE_STICKY and (held & _wanted(round_)) - _held(previous):
            previous, rebalances = _assigned(round_, previous, 2 * number + 1), 2
        yield _Assignment(previous, round_.eager, rebalances)


def _assigned(round_: Round, previous: Assigned, generation: int) -> Assigned:
    if not round_.members:
        return {}
    problem = PlausibleCounts().problem(_spec(round_, {}, generation), round_.image)
    if problem is not None:
        raise InputError(problem)
    if round_.type is not AssignedGroupType.STREAMS:
        there = _wanted(round_)
        previous = {member: owned & there for member, owned in previous.items()}
    work = assign(round_.assignor, _spec(round_, previous, generation), round_.image, round_.profile).members
    return {member: _named(work.get(member, {}), round_) for member in round_.members}


def _held(assigned: Assigned) -> frozenset[WorkUnit]:
    return NO_UNITS.union(*assigned.values())


def _wanted(round_: Round) -> frozenset[WorkUnit]:
    """Every partition of the subscribed topics."""
    names = {name for member in round_.members.values() for name in member.topics if name in round_.image.by_name}
    return frozenset(
        WorkUnit("", name, number) for name in names for number in range(round_.image.by_name[name].partitions)
    )


def _spec(round_: Round, previous: Assigned, generation: int) -> GroupSpecs:
    if round_.type is AssignedGroupType.STREAMS:
        return _streams_spec(round_, previous)
    if round_.type is AssignedGroupType.CLASSIC:
        joined = {
            member: _joined(had, previous.get(member, NO_UNITS), generation, _user_data(round_))
            for member, had in round_.members.items()
        }
        in_order = leader_order(joined) if round_.client in JAVA_CLIENTS else joined
        return ClassicGroupSpec(in_order, client=round_.client, leader=round_.leader)
    topics = round_.image.by_name
    specs = {
        member: MemberSpec(
            [topics[name].id for name in had.topics if name in topics],
            {topics[name].id: numbers for name, numbers in _by_topic(previous.get(member, NO_UNITS)).items()},
            had.instance_id,
            had.rack_id,
            len(had.topics),
        )
        for member, had in leader_order(round_.members).items()
    }
    same = len({frozenset(had.topics) for had in round_.members.values()}) < 2
    return GroupSpec(specs, same, type=round_.type)


def _streams_spec(round_: Round, previous: Assigned) -> StreamsGroupSpec:
    """The log has no task offsets. A process is taken to have caught up with each task that it had a round before, in
    any role, and to have nothing of other tasks.
    """
    kept: dict[str, set[TaskId]] = defaultdict(set)
    for member, had in round_.members.items():
        kept[had.process_id].update((unit.name, unit.number) for unit in previous.get(member, NO_UNITS))
    tasks = [(subtopology.id, number) for subtopology in round_.subtopologies for number in range(subtopology.tasks)]
    threads = {
        member: StreamsMemberSpec(
            had.process_id,
            _tasks(previous.get(member, NO_UNITS)),
            had.instance_id,
            had.rack_id,
            dict(had.client_tags),
            dict.fromkeys(kept[had.process_id], ALL_READ),
            dict.fromkeys(tasks, ALL_READ),
        )
        for member, had in leader_order(round_.members).items()
    }
    configs = round_.configs
    # With a lag of 0 only tasks that a process had a round before count as caught up; ANY_LAG lets all of them.
    if configs.acceptable_recovery_lag < ANY_LAG:
        configs = replace(configs, acceptable_recovery_lag=0)
    return StreamsGroupSpec(threads, round_.subtopologies, configs, round_.stale)


def _user_data(round_: Round) -> str | None:
    """The blob in which members of this client say what they had; None: they do not, or by owned partitions."""
    if round_.assignor != "sticky":
        return None
    return VERSIONED_USER_DATA if round_.client == KnownClient.KAFKA_PYTHON else STICKY_USER_DATA


def _joined(had: RoundMember, owned: frozenset[WorkUnit], generation: int, user_data: str | None) -> ClassicMemberSpec:
    held = _by_topic(owned)
    data = None
    if user_data is not None and owned:
        entries = [{"topic": name, "partitions": numbers} for name, numbers in held.items()]
        data = encode_blob(user_data, 1, {"previousAssignment": entries, "generation": generation})
    return ClassicMemberSpec(
        had.topics,
        [(name, number) for name, numbers in held.items() for number in numbers],
        generation,
        data,
        had.instance_id,
        had.rack_id,
    )


def _named(work: Any, round_: Round) -> frozenset[WorkUnit]:
    """Units by topic name; assignors of consumer groups speak of topic ids, those of classic groups of pairs."""
    if round_.type is AssignedGroupType.CLASSIC:
        return frozenset(WorkUnit("", name, number) for name, number in work)
    if round_.type is AssignedGroupType.STREAMS:
        return frozenset(units(work or Tasks()))
    return frozenset(WorkUnit("", round_.image.by_id[unit.name].name, unit.number) for unit in units(work))


def _by_topic(owned: Iterable[WorkUnit]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for unit in sorted(owned):
        topics.setdefault(unit.name, []).append(unit.number)
    return topics


def _tasks(owned: frozenset[WorkUnit]) -> Tasks:
    active, standby, warmup = (_by_topic(unit for unit in owned if unit.role == role) for role in ROLES)
    return Tasks(active, standby, warmup)


def _outcome(assignments: Sequence[_Assignment], idle_ms: int | None) -> WhatIfOutcome:
    moved = stopped = worst = total = 0
    holders: dict[WorkUnit, str] = {}
    before = NO_UNITS
    for members, eager, *_ in assignments:
        held = {unit: member for member, work in members.items() for unit in work if unit.role in ("", "active")}
        for unit, member in held.items():
            last = holders.get(unit)
            # ``holders`` remembers who had a unit last, also over rounds in which nobody had it; what nobody ever had
            # was not stopped, but begins.
            moved += last is not None and last != member
            stopped += last is not None and (eager or last != member or unit not in before)
        holders.update(held)
        before = frozenset(held)
        loads = [len(work) for work in members.values()]
        spread = max(loads, default=0) - min(loads, default=0)
        total, worst = total + spread, max(worst, spread)
    rebalances = sum(assignment.rebalances for assignment in assignments)
    return WhatIfOutcome(rebalances, moved, stopped, round(total / max(len(assignments), 1), 2), worst, idle_ms)
