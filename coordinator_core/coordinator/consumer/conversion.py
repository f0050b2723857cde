"""Classic groups that become consumer groups while members are present, and back (KIP-848, online migration)."""

from collections.abc import Sequence

from coordinator_core.coordinator.classic import rebalance as classic_rebalance
from coordinator_core.coordinator.classic.group import LiveClassicGroup, LiveClassicMember
from coordinator_core.coordinator.consumer import records
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.consumer.members import new_member
from coordinator_core.coordinator.lookup import no_upgrade
from coordinator_core.coordinator.member_timers import expect_heartbeat
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.record_templates import Unwritten, target_assignment, target_epoch
from coordinator_core.coordinator.subscriptions import topic_names
from coordinator_core.errors import DecodeError
from coordinator_core.groups import consumer_protocol
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.consumer.state import ClassicMemberMetadata, ClassicProtocol, ConsumerMember
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.groups.shard import CoordinatorShard


def upgrade(op: Operation, classic: LiveClassicGroup) -> LiveConsumerGroup:
    """Return the consumer group that the classic one becomes, as its records will make it; raises ApiError if it
    cannot.

    Its epochs are the generation, its target and current assignments the last ones of the classic group. Members that
    wait for a rebalance are asked to join again.
    """
    _check_upgrade(op, classic)
    for member in classic.members.values():
        classic_rebalance.refuse_join(op, member, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
    for member in classic.members.values():
        classic_rebalance.refuse_sync(op, member, ErrorCode.REBALANCE_IN_PROGRESS)
    # Before the records of the new group: behind them its tombstone would remove that group when the log is loaded.
    op.erase(classic)
    group = LiveConsumerGroup(classic.group_id)
    log = CoordinatorShard()

    def follow(record: Unwritten) -> None:
        group.follow(op.unwritten(*record), log)

    for member in classic.members.values():
        converted = _as_consumer(op, classic, member)
        follow(records.member_metadata(group.group_id, converted))
        follow(records.current_assignment(group.group_id, converted))
    members = [group.log.members[member_id] for member_id in group.view.members]
    metadata_hash = op.memory.metadata_hash(group.subscriptions.topics, op.topics)
    tail: list[Unwritten] = [records.group_epoch(group.group_id, classic.generation, metadata_hash)]
    tail += [
        target_assignment(CONSUMER_RECORDS, group.group_id, member.member_id, _numbers(member.assigned))
        for member in members
    ]
    tail.append(target_epoch(CONSUMER_RECORDS, group.group_id, classic.generation, 0))
    for record in tail:
        follow(record)
    op.write_all(records.member_metadata(group.group_id, member) for member in members)
    op.write_all(tail)
    op.write_all(records.current_assignment(group.group_id, member) for member in members)
    for member in classic.members.values():
        expect_heartbeat(op, group, member.member_id, member.session_timeout_ms)
    return group


def _numbers(assigned: PartitionEpochs) -> dict[str, list[int]]:
    return {topic: list(epochs) for topic, epochs in assigned.items()}


def _check_upgrade(op: Operation, classic: LiveClassicGroup) -> None:
    config = op.memory.config
    if not config.group_consumer_migration_policy.upgrades:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > config.group_consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise no_upgrade(classic, LiveConsumerGroup, reason)


def _as_consumer(op: Operation, classic: LiveClassicGroup, member: LiveClassicMember) -> ConsumerMember:
    """The member with what it had in the classic group."""
    assigned: dict[str, list[int]] = {}
    try:
        if member.assignment:
            named, user_data = consumer_protocol.assigned_partitions(member.assignment)
            if user_data:
                raise no_upgrade(
                    classic,
                    LiveConsumerGroup,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                    "default assignor before re-attempting the upgrade",
                )
            assigned = consumer_protocol.by_topic_id(named, op.topics)
        if classic.protocol is None:
            # Kafka fails here where the group has not yet agreed on a protocol.
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "No value present")
        subscription = consumer_protocol.subscription(member.metadata(classic.protocol))
    except DecodeError:
        raise no_upgrade(classic, LiveConsumerGroup, "the embedded consumer protocol is malformed") from None
    converted = new_member(member.member_id)
    converted.member_epoch = converted.previous_member_epoch = classic.generation
    converted.instance_id = member.instance_id
    converted.rack_id = subscription.rack_id
    converted.rebalance_timeout_ms = member.rebalance_timeout_ms
    converted.client_id, converted.client_host = member.client_id, member.client_host
    converted.subscribed_topic_names = topic_names(subscription.topics)
    converted.assigned = {topic: dict.fromkeys(numbers, classic.generation) for topic, numbers in assigned.items()}
    converted.classic = ClassicMemberMetadata(
        member.session_timeout_ms, tuple(ClassicProtocol(*protocol) for protocol in member.protocols)
    )
    return converted


def downgrade_after_leave(op: Operation, group: LiveConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Make the group a classic one if only classic members remain and it is allowed; they have to rebalance then."""
    staying = len(group.log.members) - len(leaving)
    classic_leaving = sum(member.classic is not None for member in leaving)
    if group.classic_members - classic_leaving != staying or staying <= 0:
        return False
    if not _may_downgrade(op, staying):
        return False
    op.write_all(group.tombstones())
    gone = {member.member_id for member in leaving}
    members = [group.log.members[member_id] for member_id in group.view.members if member_id not in gone]
    classic = _as_classic(op, group, members, {})
    classic_rebalance.prepare(op, classic)
    return True


def can_downgrade_replacing(op: Operation, group: LiveConsumerGroup, former: ConsumerMember) -> bool:
    """Whether a classic member that replaces this one, the last consumer, makes the group a classic one."""
    members = len(group.log.members)
    return group.classic_members == members - 1 and former.classic is None and _may_downgrade(op, members)


def downgrade_replacing(
    op: Operation, group: LiveConsumerGroup, former: ConsumerMember, joining: ConsumerMember, *, rebalances: bool
) -> None:
    """Make the group a classic one with ``joining`` instead of ``former``, whose records are already written."""
    op.write_all(group.tombstones({former.member_id: joining.member_id}))
    members = [group.log.members[member_id] for member_id in group.view.members if member_id != former.member_id]
    classic = _as_classic(op, group, [*members, joining], {joining.member_id: former.member_id})
    if rebalances:
        classic_rebalance.prepare(op, classic)


def _may_downgrade(op: Operation, members: int) -> bool:
    config = op.memory.config
    return config.group_consumer_migration_policy.downgrades and members <= config.group_max_size


def _as_classic(
    op: Operation, group: LiveConsumerGroup, members: Sequence[ConsumerMember], former_ids: dict[str, str]
) -> LiveClassicGroup:
    """The classic group of these members, stable at the group epoch, with the targets as assignments; it is written.

    ``former_ids`` says whose target a member takes where it is not its own.
    """
    classic = LiveClassicGroup(
        group.group_id, ClassicGroupState.STABLE, state_timestamp_ms=op.now, generation=group.group_epoch
    )
    for member in members:
        if member.classic is not None:
            protocols = tuple((name, metadata) for name, metadata in member.classic.supported_protocols)
            as_classic = LiveClassicMember.of(member, member.classic.session_timeout_ms, protocols)
            classic.add(as_classic, CONSUMER_PROTOCOL_TYPE)
    classic.protocol = classic.select_protocol()
    classic.subscribed_topics = classic.current_topics()
    try:
        for joined in classic.members.values():
            target = group.view.targets.get(former_ids.get(joined.member_id, joined.member_id), {})
            joined.assignment = consumer_protocol.assignment(target, op.topics, joined.metadata(classic.protocol))
    except DecodeError as error:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the classic group {group.group_id}: {error}."
        ) from None
    classic_rebalance.begin_converted(op, classic)
    return classic
