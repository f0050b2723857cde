"""Why members of a classic group join again by themselves: what they were assigned does not suit their subscription,
or the leader's list of topics is not the one that it assigned with.

A static member that comes back while the group is stable takes its former place: the group is written again in the same
generation, with the member's new subscription and its old assignment (KIP-345). A Java client that is assigned topics
it does not subscribe to joins again at once (Kafka's ConsumerCoordinator.onJoinComplete).

A Java leader watches the topics of all members. Where fewer topics are left, all of which it subscribes to itself, it
assigns without new metadata, and still compares with the old list: at the next refresh of its metadata (at most
metadata.max.age.ms later) the lists differ, and it joins again (ConsumerCoordinator.rejoinNeededOrPending).

With a rack (client.rack) it watches the racks of the topics' replicas, too, as Metadata responses name them: a broker
that goes takes its rack away, and brings it back when it comes (KIP-881, since 3.5; librdkafka as well).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from coordinator_core.clients.known_clients import KEEPS_LAST_ENTRY, KnownClient
from coordinator_core.cluster.client_view import RackChange, rack_changes
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, COOPERATIVE_STICKY, STREAMS_PROTOCOL
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.history.causes import CauseKind, about, cause, difference, topic_causes
from coordinator_core.history.classic_causes import Transition, highest_had, is_assigned, is_downgrade, subscription
from coordinator_core.history.held_units import asked_for, given_to
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.open_rows import OpenEpoch
from coordinator_core.history.rows import Cause
from coordinator_core.records import LogPosition, elapsed_ms

MOST_NAMED = 5
"""A cause names at most this many partitions."""

CREATION_MS = 30_000
"""The leader of a Kafka Streams application creates a topic within this time, or its assignment fails."""


def resubscribed(old: ClassicGroup, new: ClassicGroup, at: LogPosition) -> dict[str, Cause]:
    """Return, by instance id, the static members that were replaced in place with another subscription."""
    by_instance = {member.instance_id: member for member in old.members.values() if member.instance_id is not None}
    changed = {}
    for member_id, member in new.members.items():
        if member.instance_id is None or member_id in old.members:
            continue
        replaced = by_instance.get(member.instance_id)
        if replaced is None:
            continue
        asked, asks = asked_for(old, replaced), asked_for(new, member)
        if asked is not None and asks is not None and asked.topics != asks.topics:
            before, after = asked.topics, asks.topics
            detail = f"{difference(before, after)}, in place of {replaced.member_id} within generation {new.generation}"
            changed[member.instance_id] = about(member, CauseKind.SUBSCRIPTION_CHANGED, at, detail, before ^ after)
    return changed


def rejoin_causes(open_history: OpenHistory, step: Transition) -> Iterator[Cause]:
    """Yield a cause for each member that the last generation makes join again, if this one follows soon enough."""
    last = step.last
    written = last.rewritten or last.opened
    if is_downgrade(last) or not _is_soon(written, step, _longest_rebalance_ms(step.old)):
        return
    instances = {member.instance_id for member in step.new.members.values()}
    for member_id, member in step.old.members.items():
        if member_id not in step.new.members and (member.instance_id is None or member.instance_id not in instances):
            continue
        known = open_history.memberships.get(member_id)
        # Of the known clients only Java joins again for topics that it does not subscribe to.
        may_join = known is None or not known.told.clients or KnownClient.JAVA in known.told.clients
        unwanted = unwanted_topics(step.old, member) if may_join else set()
        if step.may_be_rewritten and member.instance_id is not None:
            continue
        replaced = open_history.resubscribed.get(member.instance_id or "")
        if unwanted and replaced is not None:
            yield replaced._replace(detail=f"{replaced.detail}, which left it with {', '.join(sorted(unwanted))}")
        elif unwanted:
            detail = f"assigned in generation {last.epoch}; a Java client joins again for this"
            yield about(member, CauseKind.ASSIGNMENT_MISMATCH, written, detail, unwanted)


def untaken_causes(open_history: OpenHistory, step: Transition) -> Iterator[Cause]:
    """Yield a cause for each member that joins again without a part of what the last generation gave it.

    Its assignment lists a topic several times, and its client keeps only the last entry. Members of a cooperative
    assignor say when they join what they have (KIP-429).
    """
    if step.old.protocol != COOPERATIVE_STICKY or is_downgrade(step.last):
        return
    for member_id, member in step.old.members.items():
        unread, again = unread_units(open_history, step.old, member), step.new.members.get(member_id)
        if not unread or again is None or again.subscription == member.subscription:
            continue
        owned = subscription(step.new, again).owned
        if owned and not unread & owned:
            detail = f"{len(unread)} of generation {step.last.epoch}: {named_units(unread)}; its assignment lists "
            detail += "the topic several times, and its client keeps the last entry"
            topics = {unit.name for unit in unread}
            yield about(member, CauseKind.ASSIGNMENT_NOT_TAKEN, step.last.opened, detail, topics)


def unread_units(open_history: OpenHistory, group: ClassicGroup, member: ClassicMember) -> AbstractSet[WorkUnit]:
    """Return what a member was assigned and does not read: what only earlier entries of a topic list, if its client
    keeps the last one.
    """
    not_last = given_to(group, member).not_last
    membership = open_history.memberships.get(member.member_id)
    if not not_last or membership is None or not membership.told.clients:
        return frozenset()
    return not_last if KEEPS_LAST_ENTRY.issuperset(membership.told.clients) else frozenset()


def named_units(units: AbstractSet[WorkUnit]) -> str:
    """Return the first partitions by name, and how many more there are."""
    names = [f"{unit.name}-{unit.number}" for unit in sorted(units)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def dropped_topics(last: OpenEpoch | None, new: ClassicGroup, topics: set[str]) -> tuple[str, ...]:
    """Return the topics that the leader no longer watches in the new generation, and of which it still has metadata."""
    leader = new.members.get(new.leader or "")
    if last is None or leader is None or last.leader != new.leader or new.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ()
    are_known = all(asked_for(new, member) is not None for member in new.members.values())
    return tuple(sorted(set(last.topics) - topics)) if are_known and topics <= subscription(new, leader).topics else ()


def refresh_cause(topics: TopicHistory | None, step: Transition) -> list[Cause]:
    """Return a cause if the leader joins again as it no longer watches some topics."""
    last, since_ms = step.last, step.last.opened.timestamp_ms
    dropped = [name for name in last.dropped_topics if topics is None or topics.topic_at(name, since_ms) is not None]
    is_soon = _is_soon(last.opened, step, step.metadata_age_ms + _longest_rebalance_ms(step.old))
    if not dropped or not is_soon or last.leader not in step.new.members or is_downgrade(last):
        return []
    detail = f"no member subscribes to them since generation {last.epoch}; a Java leader joins again for this when it"
    detail += " refreshes its metadata"
    return [cause(CauseKind.TOPIC_METADATA_CHANGED, last.opened, topics=dropped, detail=detail)]


def rack_causes(topics: TopicHistory | None, step: Transition) -> list[Cause]:
    """Return causes for brokers that went or came, if members have racks: the racks of replicas changed by it.

    Those since the last generation come first. The leader of that one may not have known yet of the last one before
    it, nor does each clock say the same.
    """
    last = step.last
    stayed = [member for member_id, member in step.new.members.items() if member_id in step.old.members]
    if topics is None or is_downgrade(last) or not any(subscription(step.new, member).rack_id for member in stayed):
        return []
    names, opened_ms, now_ms = step.topics.intersection(last.topics), last.opened.timestamp_ms, step.at.timestamp_ms
    changes = rack_changes(topics, names, opened_ms, now_ms)
    if changes:
        return [_rack_cause(change) for change in changes]
    known = {each.at for each in last.causes if each.kind == CauseKind.RACK_CHANGED}
    reach_ms = step.metadata_age_ms + _longest_rebalance_ms(step.old)
    before = rack_changes(topics, names, now_ms - reach_ms, opened_ms)
    before = [change for change in before if change.at not in known]
    ahead = rack_changes(topics, names, now_ms, now_ms + CLOCK_TOLERANCE_MS)
    hint = f"if the leader of generation {last.epoch} did not know of it"
    return [_rack_cause(change)._replace(hint=hint) for change in before[-1:]] or list(map(_rack_cause, ahead[:1]))


def _rack_cause(change: RackChange) -> Cause:
    detail = f"broker {change.broker} {'came back' if change.is_there else 'went'}: racks of its replicas"
    return cause(CauseKind.RACK_CHANGED, change.at, topics=change.topics, detail=detail, source="cluster metadata")


def growth_causes(topics: TopicHistory | None, open_history: OpenHistory, step: Transition) -> list[Cause]:
    """Return a cause for partitions that a topic has grown by, if a member of librdkafka may see them only now.

    Each such member joins again once it sees them, whoever leads, and whatever the group did before (rd_kafka_cgrp.c):
    they explain one rebalance each, and the leader that has assigned them, none.
    """
    there = (open_history.memberships.get(member_id) for member_id in step.old.members if member_id in step.new.members)
    watching = [member for member in there if member is not None and member.told.client is KnownClient.LIBRDKAFKA]
    if topics is None or not watching or is_downgrade(step.last):
        return []
    since = topics.version_at(step.at.timestamp_ms - step.metadata_age_ms - _longest_rebalance_ms(step.old))
    # Who joined later has asked for the topics since. The last change comes first.
    watching.sort(key=lambda member: -member.joined.timestamp_ms)
    joined = {name: member.joined.timestamp_ms for member in watching for name in member.subscribed_topics}
    changes = reversed(topics.changes(joined, since, topics.version_at(step.at.timestamp_ms)))
    grown = [each for each in changes if each.kind == "grown" and joined[each.name] < each.at.timestamp_ms]
    for change in grown[:1]:
        knows = step.last.leader if is_assigned(change, highest_had(step.old)) else None
        before = (each for each in watching if each.joined.timestamp_ms < change.at.timestamp_ms)
        unaware = [each for each in before if change.name in each.subscribed_topics and each.member_id != knows]
        if open_history.growths_seen.count(change.at) < len(unaware):
            open_history.growths_seen = [*(at for at in open_history.growths_seen if at == change.at), change.at]
            hint = "if a member of librdkafka had not seen it yet: each joins again once it does"
            return [each._replace(hint=hint) for each in topic_causes([change])]
    return []


def created_meanwhile(group_id: str, topics: TopicHistory | None, step: Transition) -> list[Cause]:
    """Return a cause if the leader of a Kafka Streams application joins again for the topics that it created.

    It creates repartition topics while it assigns, and assigns them. Its consumer had not known them when it joined.
    The names of such topics begin with the application id, which is the group id.
    """
    last = step.last
    same_leader = last.leader is not None and last.leader in step.new.members
    if topics is None or step.old.protocol != STREAMS_PROTOCOL or not same_leader or last.topics_version < 0:
        return []
    if not _is_soon(last.opened, step, step.metadata_age_ms + _longest_rebalance_ms(step.old)):
        return []
    since = topics.version_at(last.opened.timestamp_ms - CREATION_MS)
    internal = {name for name in step.topics.intersection(last.topics) if name.startswith(f"{group_id}-")}
    changes = topics.changes(internal, since, last.topics_version)
    # By the clock of a controller that is ahead it created them later: what it assigned of them tells.
    until, had = topics.version_at(last.opened.timestamp_ms + CLOCK_TOLERANCE_MS), highest_had(step.old)
    changes += [each for each in topics.changes(internal, last.topics_version, until) if is_assigned(each, had)]
    return topic_causes(change for change in changes if change.kind == "created")


def _is_soon(before: LogPosition, step: Transition, within_ms: int) -> bool:
    """Whether the generation came so soon after that record; not if one of them has no time."""
    waited_ms = elapsed_ms(before.timestamp_ms, step.at.timestamp_ms)
    return waited_ms is not None and waited_ms <= within_ms


def unwanted_topics(group: ClassicGroup, member: ClassicMember) -> set[str]:
    """Return the topics that a member was assigned and does not subscribe to, as far as that can be read."""
    asked = asked_for(group, member)
    if asked is None:
        return set()
    return {name for role, name in given_to(group, member).held if role == "partition"} - asked.topics


def _longest_rebalance_ms(group: ClassicGroup) -> int:
    """Return how long the group waits for its members to join again."""
    return max(
        (member.rebalance_timeout_ms or member.session_timeout_ms for member in group.members.values()), default=0
    )
