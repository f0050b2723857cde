"""What groups were at a moment, from logs or the tables: ``groups``, ``describe``, ``offsets`` and ``owners``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

import typer

from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import InputError
from coordinator_core.groups.describe import Description, describe, group_state
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import Commits, GroupOffsets, TopicPartition
from coordinator_core.groups.owners import connector_tasks, owners
from coordinator_core.groups.share.offsets import describe_share_partitions
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.records import LOG_TOPICS, Family
from jobs.cli.answer_source import AnswerSource
from jobs.cli.option_groups import with_options
from jobs.cli.options import AtOffsetOption, AtOption, EndsOption, parse_moment
from jobs.cli.output import print_json, print_lines, print_table, ranges, utc
from jobs.formatting import number_ranges
from jobs.queries.interface import GroupsThen
from jobs.sources.end_offsets import newest_ends

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every group, one line each.")]


@with_options(AnswerSource)
def groups_command(
    source: AnswerSource,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
) -> None:
    """The groups, with type, state, members and number of committed offsets."""
    then = source.answers().at(parse_moment(at, at_offset))
    lines = [_summary(group, offsets) for group, offsets in then.groups()]
    print_lines(lines, as_json=source.json, title="groups")


@with_options(AnswerSource)
def describe_command(
    source: AnswerSource,
    group: Annotated[str | None, typer.Argument(metavar="[GROUP]", help="Group id.")] = None,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
    all_groups: AllOption = False,
    ends: EndsOption = None,
) -> None:
    """A group as Kafka's Admin client would describe it: state, epochs, members, assignments, offsets."""
    if all_groups == (group is not None):
        raise typer.BadParameter("give either a group or --all")
    moment = parse_moment(at, at_offset)
    then = source.answers().at(moment, group)
    around = then.surroundings()
    if ends is not None:
        around = replace(around, data_end=newest_ends(ends, moment.time_ms))
    chosen = then.groups() if group is None else [_find(then, group)]
    for each, offsets in chosen:
        described = describe(each, offsets, around)
        if all_groups and source.json:
            described = {"group": each.group_id, **described}
        if source.json:
            print_json(described)
        else:
            _print_description(described)


@with_options(AnswerSource)
def offsets_command(
    source: AnswerSource,
    group: GroupArgument,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
    ends: EndsOption = None,
) -> None:
    """The committed offsets of a group, and apart from them those of open transactions; with end offsets, the lag.

    Of a share group: the share partitions with their start offsets, and the records by delivery state.
    """
    moment = parse_moment(at, at_offset)
    then = source.answers().at(moment, group)
    found, offsets = _find(then, group)
    known = {} if ends is None else newest_ends(ends, moment.time_ms)
    if isinstance(found.state, ShareGroup):
        shared = _share_partitions(found.group_id, found.state, then, known)
        print_lines(
            shared if source.json else _without_counts(shared), as_json=source.json, title=f"offsets of {group}"
        )
        return
    lines = _commits(offsets.committed, "committed", known)
    for _, commits in sorted(offsets.pending.items()):
        lines += _commits(commits, "pending", known)
    print_lines(lines, as_json=source.json, title=f"offsets of {group}")


def _share_partitions(
    group_id: str, state: ShareGroup, then: GroupsThen, ends: Mapping[TopicPartition, int]
) -> list[Description]:
    """Return the share partitions of a group; raises InputError where the log that has their state is not there."""
    log = then.surroundings().share_state
    if log is None:
        raise InputError(
            f"group {group_id!r} is a share group: its offsets are in {LOG_TOPICS[Family.SHARE]}, which is not given"
        )
    return describe_share_partitions(group_id, state, log, ends)


def _without_counts(partitions: Iterable[Description]) -> list[Description]:
    """Return the lines of a table: delivery counts are a list, which does not fit into one."""
    return [{name: value for name, value in each.items() if name != "counts"} for each in partitions]


@with_options(AnswerSource)
def owners_command(
    source: AnswerSource,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of a topic, a connector, or a task: jdbc-0.")],
    partition: Annotated[int | None, typer.Argument(metavar="[PARTITION]", help="One partition or task only.")] = None,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
) -> None:
    """Who held the partitions of a topic, or ran a connector and its tasks, in every group."""
    then = source.answers().at(parse_moment(at, at_offset))
    image = then.image()
    groups = [group for group, _ in then.groups()]
    connectors = connector_tasks(groups)
    title = f"owners of {topic}"
    if partition is None and topic not in connectors and (image is None or topic not in image.by_name):
        topic, partition = _as_task(topic, connectors)
    if image is None and topic not in connectors:
        source.console.warn("no topics are known of that moment: groups that record topic ids match no topic name")
    found = owners(groups, image, topic, partition)
    if not found and topic in connectors:
        _require_task(connectors[topic], topic, partition)
    elif not found and image is not None:
        _require_partition(image, topic, partition)
    print_lines([owner._asdict() for owner in found], as_json=source.json, title=title)


def _as_task(name: str, connectors: Mapping[str, set[int]]) -> tuple[str, int | None]:
    """Return connector and number of a task's name as Connect writes it, such as ``jdbc-0``; another name as it is."""
    connector, _, number = name.rpartition("-")
    return (connector, int(number)) if connector in connectors and number.isdecimal() else (name, None)


def _require_task(tasks: set[int], connector: str, number: int | None) -> None:
    """Raise InputError where the connector did not have this task at the moment."""
    if number is not None and number not in tasks:
        listed = number_ranges(tasks) or "none"
        raise InputError(f"connector {connector!r} had no task {number} at that moment; its tasks: {listed}")


def _require_partition(image: TopicImage, topic: str, partition: int | None) -> None:
    """Raise InputError where the cluster did not have the topic, or this partition of it, at the moment."""
    known = image.by_name.get(topic)
    if known is None:
        raise InputError(f"no topic or connector {topic!r} in these logs at that moment")
    if partition is not None and not 0 <= partition < known.partitions:
        raise InputError(f"topic {topic!r} had partitions 0 to {known.partitions - 1} at that moment, not {partition}")


def _find(then: GroupsThen, group_id: str) -> tuple[Group, GroupOffsets]:
    for group, offsets in then.groups():
        if group.group_id == group_id:
            return group, offsets
    raise InputError(f"no group {group_id!r} in these logs at that moment; see history {group_id}")


def _summary(group: Group, offsets: GroupOffsets) -> Description:
    state = group.state
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group_state(group),
        "epoch": state.group_epoch if isinstance(state, EpochGroup) else getattr(state, "generation", None),
        "members": None if state is None else len(state.members),
        "offsets": len(offsets.committed),
    }


def _commits(commits: Commits, status: str, ends: Mapping[TopicPartition, int]) -> list[Description]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": commit.offset,
            "endOffset": ends.get(partition),
            "lag": max(0, ends[partition] - commit.offset) if partition in ends and commit.offset >= 0 else None,
            "leaderEpoch": commit.leader_epoch,
            "metadata": commit.metadata,
            "committed": utc(commit.commit_timestamp),
            "expires": utc(commit.expire_timestamp),
            "status": status,
            "producerId": commit.producer_id,
            "logPartition": commit.at.partition,
            "logOffset": commit.at.offset,
        }
        for partition, commit in sorted(commits.items())
    ]


def _print_description(described: Description) -> None:
    """The group's own fields on one line each, then its members and its offsets."""
    own: Description = next((described[part] for part in _DESCRIBES if "groupId" in described.get(part, ())), {})
    fields = {**own, **described["listing"]}
    state, epoch = fields["groupState"], fields.get("groupEpoch")
    target = fields.get("targetAssignmentEpoch")
    line = {
        "group": fields["groupId"],
        "type": fields["type"],
        "state": state,
        "protocol": fields["protocol"] or None,
        "assignor": fields.get("partitionAssignor") or None,
        "epoch": epoch,
        "target epoch": target,
        "topology epoch": fields.get("topologyEpoch"),
    }
    if "describe_connect" in described:
        line |= {
            "assignment error": own["assignmentError"] or None,
            "work": _assigned(own["work"]),
            "unassigned": _assigned(own["unassigned"]) or None,
        }
    print_table("group", [line])
    if "topology_check" in described:
        print_table("topics do not fit the topology", [described["topology_check"]])
    if own.get("members"):
        print_table("members", [_member(member) for member in own["members"]])
    offsets = described.get("offsets")
    if offsets:
        columns = next((list(value) for value in offsets.values() if value), ["offset"])
        nothing = dict.fromkeys(columns)
        lines = [{"partition": name, **nothing, **(value or {})} for name, value in offsets.items()]
        print_table("offsets", lines)
    if described.get("share_partitions"):
        print_table("share partitions", _without_counts(described["share_partitions"]))


# Where a type has several descriptions, the one that says most comes first.
_DESCRIBES = ("describe_consumer", "describe_share", "describe_streams", "describe_connect", "describe_classic")


def _member(member: Description) -> Description:
    return {
        "member": member.get("consumerId") or member.get("memberId"),
        "instance": member.get("groupInstanceId") or member.get("instanceId"),
        "client": member["clientId"],
        "host": member.get("host") or member.get("clientHost"),
        "rack": member["rackId"],
        **({"url": member["url"]} if "url" in member else {}),
        "epoch": member["memberEpoch"],
        "assigned": _assigned(member["assignment"]),
        "target": _assigned(member.get("targetAssignment")),
    }


def _assigned(assignment: Description | None) -> str | None:
    """Partitions, tasks by role as ``active 0_1 0_2``, or connectors with their tasks."""
    if assignment is None:
        return None
    if "topicPartitions" in assignment:
        return ranges(assignment["topicPartitions"])
    if "connectors" in assignment:
        return " ".join(
            part
            for part in (
                f"connectors {', '.join(assignment['connectors'])}" if assignment["connectors"] else "",
                f"tasks {ranges(assignment['tasks'])}" if assignment["tasks"] else "",
            )
            if part
        )
    roles = []
    for name, tasks in assignment.items():
        if tasks:
            units = (f"{each['subtopologyId']}_{number_ranges(each['partitions'])}" for each in tasks)
            roles.append(f"{name.removesuffix('Tasks')} {' '.join(units)}")
    return " ".join(roles)
