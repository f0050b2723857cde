"""A group as an operator sees it: one object in the form of Kafka's Admin client, made from the log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.classic import describe as classic
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.classic.workers import is_connect_group
from coordinator_core.groups.connect import describe as connect
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer import describe as consumer
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import Group, GroupState
from coordinator_core.groups.offsets import Commits, GroupOffsets, TopicPartition
from coordinator_core.groups.share import describe as share
from coordinator_core.groups.share.offsets import describe_share_offsets, describe_share_partitions
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.share.state_log import ShareStateLog
from coordinator_core.groups.streams import describe as streams
from coordinator_core.groups.streams.readiness import FITS, READY, check_topology
from coordinator_core.groups.streams.state import StreamsGroup, StreamsGroupState

Description = dict[str, Any]
CERTAIN = ("ASSIGNING", "RECONCILING")
"""States of groups with epochs that do not depend on what was not seen."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a description needs beyond the group's own log. None: not given, and what depends on it is null.

    ``topics`` names topic ids, ``share_state`` has the offsets of share groups, ``data_end`` the end offsets of data
    partitions. ``default_assignor`` is the first of the brokers' ``group.consumer.assignors``, ``oldest_broker`` the
    lowest of the highest metadata versions that they support; None: brokers are assumed to be newer.
    """

    topics: TopicImage | None = None
    share_state: ShareStateLog | None = None
    data_end: Mapping[TopicPartition, int] | None = None
    default_assignor: str = "uniform"
    oldest_broker: int | None = None


def describe(group: Group, offsets: GroupOffsets, around: Surroundings) -> Description:
    """Return the group with the parts that Admin has for its type: ``listing``, its ``describe_...``, and its
    offsets.

    ``topology_check`` is added, which Admin does not have, where the topics do not fit the topology of a streams group:
    the status (null: unknown) and the topics, as a heartbeat response names them.
    """
    state, group_id = group.state, group.group_id
    described: Description = {"listing": listing(group)}
    if isinstance(state, ClassicGroup):
        described["describe_classic"] = classic.describe_classic(group_id, state)
        if classic.is_consumer_group(state):
            described["describe_consumer"] = classic.describe_consumer(group_id, state)
        if is_connect_group(state):
            described["describe_connect"] = connect.describe_classic_connect(group_id, state, group_state(group))
    elif isinstance(state, ConnectGroup):
        described["describe_connect"] = connect.describe_connect(group_id, state, group_state(group))
        return described
    elif isinstance(state, ConsumerGroup):
        described["describe_consumer"] = consumer.describe_consumer(
            group_id,
            state,
            around.topics,
            around.default_assignor,
            group_state(group),
            whole=group.from_start,
            tells_protocol=around.oldest_broker is None or around.oldest_broker >= consumer.TELLS_PROTOCOL,
        )
    elif isinstance(state, StreamsGroup):
        described["describe_streams"] = streams.describe_streams(
            group_id, state, around.topics, group_state(group), reloaded=group.reloaded, whole=group.from_start
        )
        if (check := _topology_check(state, around.topics)) is not None:
            described["topology_check"] = check
    elif isinstance(state, ShareGroup):
        described["describe_share"] = share.describe_share(group_id, state, around.topics, group_state(group))
        if around.share_state is not None:
            described["share_offsets"] = describe_share_offsets(
                group_id, state, around.share_state, around.topics, around.data_end
            )
            described["share_partitions"] = describe_share_partitions(
                group_id, state, around.share_state, around.data_end
            )
        return described
    described["offsets"] = describe_offsets(offsets.committed)
    described["offsets_stable"] = describe_offsets(offsets.stable())
    return described


def _topology_check(group: StreamsGroup, topics: TopicImage | None) -> Description | None:
    """What keeps a group with members from running on the topics of the moment; None: nothing, or no members."""
    if not group.members:
        return None
    check = check_topology(group, topics)
    is_ready = streams.group_state(group) is not StreamsGroupState.NOT_READY
    if is_ready and check.status in (None, READY):
        return None
    detail = FITS if check.status == READY else check.detail
    return {"detail": detail, "status": None if check.status == READY else check.status}


def listing(group: Group) -> Description:
    """Return the group's entry in ``Admin.listGroups``; a type that the log has not shown is null."""
    state = group.state
    if isinstance(state, ClassicGroup):
        protocol: str | None = state.protocol_type or ""
    else:
        protocol = None if state is None else str(group.type).lower()
    return {
        "groupId": group.group_id,
        "groupState": group_state(group),
        "isSimpleConsumerGroup": None if state is None else protocol == "",
        "protocol": protocol,
        "type": group.type,
    }


def group_state(group: Group) -> str | None:
    """Return the state of a group of any type, as its protocol defines it; None if the log does not show it.

    If records may be missing, a group with epochs may have members that were not seen: then it is only certain that it
    computes a target, or that a member has not reached it.
    """
    state = group.state
    if isinstance(state, ClassicGroup):
        return classic.group_state(state)
    found = _epoch_group_state(state)
    return found if group.from_start or found in CERTAIN else None


def _epoch_group_state(state: GroupState | None) -> str | None:
    if isinstance(state, ConsumerGroup):
        return consumer.group_state(state)
    if isinstance(state, ShareGroup):
        return share.group_state(state)
    if isinstance(state, StreamsGroup):
        return streams.group_state(state)
    if isinstance(state, ConnectGroup):
        return connect.group_state(state)
    return None


def describe_offsets(commits: Commits) -> Description:
    """Return committed offsets as ``Admin.listConsumerGroupOffsets`` gives them: null where the offset is negative."""
    return {
        str(partition): None
        if commit.offset < 0
        else {"leaderEpoch": commit.leader_epoch, "metadata": commit.metadata, "offset": commit.offset}
        for partition, commit in sorted(commits.items())
    }
