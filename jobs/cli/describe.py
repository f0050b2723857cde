"""What groups were at a moment, from logs or the tables: ``groups``, ``describe``, ``offsets`` and ``owners``."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, cast

import typer

from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.errors import InputError, UsageError
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.describe import CERTAIN_GROUP, certainty_label, describe, group_state, state_as_of
from coordinator_core.groups.described import DescribedSharePartition, Description
from coordinator_core.groups.end_offsets import NewestEnds, records_behind
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import Commits, TopicPartition
from coordinator_core.groups.owners import UNKNOWN
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.partition_offsets import describe_share_partitions
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.records import SHARE_LOG
from jobs.cli.answer_source import AnswerSource
from jobs.cli.gaps import (
    check_moment,
    find_group,
    naming_moved,
    note_gone,
    refuse_unproven_list,
    warn_of_missing,
    warn_of_share_state,
)
from jobs.cli.lines import ListedGroup, OffsetLine
from jobs.cli.options import (
    AtOffsetOption,
    AtOption,
    EndsOption,
    GroupArgument,
    SinceOption,
    UntilOption,
    parse_moment,
    with_options,
)
from jobs.cli.output import Line, print_json, print_lines, utc
from jobs.cli.print_description import print_description, print_overview, without_counts
from jobs.formatting import parse_time, plain
from jobs.queries.interface import Answers, GroupsThen
from jobs.relations.moment import AsOf
from jobs.sources.end_offsets import all_ends, newest_ends


class LagLimits(NamedTuple):
    """Selects points by topic, partition and time; None: any."""

    topic: str | None
    partition: int | None
    since: str | None
    until: str | None

    def choose(self, points: list[LagPoint]) -> list[LagPoint]:
        """Return the points that are selected."""
        first = None if self.since is None else parse_time(self.since)
        last = None if self.until is None else parse_time(self.until)
        return [
            point
            for point in points
            if self.topic in (None, point.topic)
            and self.partition in (None, point.partition)
            and (first is None or point.timestamp_ms >= first)
            and (last is None or point.timestamp_ms <= last)
        ]


def print_lag_history(source: AnswerSource, group: str, ends: Path | None, limits: LagLimits) -> None:
    """Print the lag at each snapshot; warn of partitions without an end offset.

    Raises:
        InputError: no end offsets are known, the group is not there, or nothing of it has an end offset.
    """
    answers = source.answers()
    points = answers.lag(group, None if ends is None else all_ends(ends))
    _, offsets, _ = find_group(answers.at(AsOf(), group), AsOf(), group)
    seen = {(point.topic, point.partition) for point in points}
    without = sorted(str(partition) for partition in offsets.committed if partition not in seen)
    known = answers.knowledge()
    reasons = [*known.reasons(group), *known.about_offsets()]
    if not points:
        doubt = f", as far as is known: {'; '.join(reasons)}" if reasons else ""
        raise InputError(
            f"at no snapshot of the end offsets had group {group!r} an offset committed for a partition in it{doubt}"
        )
    if without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        source.console.warn(f"no snapshot has the end offset of {', '.join(without[:3])}{more}: the lag is not known")
    for reason in reasons:
        source.console.warn(reason)
    chosen = limits.choose(points)
    lines = [plain(point) if source.json else _line(point) for point in chosen]
    print_lines(lines, as_json=source.json, title=f"lag of {group} over time")


def _line(point: LagPoint) -> Line:
    return {
        "topic": point.topic,
        "partition": point.partition,
        "time": utc(point.timestamp_ms),
        "lag": point.lag,
        "status": point.status,
        "end": point.end_offset,
        "committed": point.committed_offset,
        "written": point.produced,
        "consumed": point.consumed,
        "log": None if point.committed is None else f"{point.committed.partition}:{point.committed.offset}",
        "missing": point.missing,
    }


GROUP_TYPES: Final = (*GroupType, UNKNOWN.upper())
GROUP_STATES: Final = ("EMPTY", "ASSIGNING", "RECONCILING", "STABLE", "NOT_READY", UNKNOWN.upper())
"""The states that a log shows: of a rebalance of a classic group it has the end only."""
NOT_IN_THE_LOG: Final = {
    "DEAD": "a deleted group leaves nothing but tombstones: the command history shows when a group ended",
    "PREPARINGREBALANCE": "a classic group is logged when a rebalance ends: its state then is STABLE or EMPTY",
    "COMPLETINGREBALANCE": "a classic group is logged when a rebalance ends: its state then is STABLE or EMPTY",
}
"""States that Kafka's Admin client may name, and that no record shows: why none can be listed."""
UNDECIDED: Final = "undecided"
"""The status of an offset that a dump shows without the transaction in which it may have been committed."""
AllOption = Annotated[bool, typer.Option("--all", help="Every group, one line each.")]


@with_options(AnswerSource)
def groups_command(
    source: AnswerSource,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
    group_type: Annotated[
        str, typer.Option("--type", metavar="TYPES", help=f"Limit to these types: {', '.join(GROUP_TYPES)}.")
    ] = "",
    state: Annotated[
        str, typer.Option("--state", metavar="STATES", help=f"Limit to these states: {', '.join(GROUP_STATES)}.")
    ] = "",
) -> None:
    """The groups, with type, state, members and number of committed offsets."""
    types = _named(group_type, GROUP_TYPES, "--type")
    states = _named(state, (*GROUP_STATES, *NOT_IN_THE_LOG), "--state")
    for name in sorted(states & NOT_IN_THE_LOG.keys()):
        source.console.warn(f"no record shows a group in state {name}: {NOT_IN_THE_LOG[name]}")
    moment = parse_moment(at, at_offset)
    then = source.answers().at(moment)
    is_whole = warn_of_missing(source.console, then)
    lines = [_summary(group, is_whole=is_whole) for group in naming_moved(source.console, then.groups())]
    check_moment(source.console, then, moment)
    note_gone(source.console, then, moment, {line["group"] for line in lines})
    if types:
        lines = _limited(source, lines, "type", types)
    if states:
        lines = _limited(source, lines, "state", states)
    refuse_unproven_list(then, lines, is_whole=is_whole)
    print_list(source, lines, "groups", is_whole=is_whole)


def _limited(
    source: AnswerSource, lines: Sequence[ListedGroup], column: Literal["type", "state"], wanted: set[str]
) -> list[ListedGroup]:
    """Return the groups with one of these types or states; warn of groups in which it is unknown."""
    unknown = sum(1 for line in lines if line[column] is None)
    if unknown and UNKNOWN.upper() not in wanted:
        source.console.warn(f"the {column} of {unknown} groups is unknown: they are not listed")
    return [line for line in lines if str(line[column] or UNKNOWN).upper() in wanted]


def _named(text: str, known: Sequence[str], option: str) -> set[str]:
    """Return the names in a comma-separated list; Kafka's spelling (NotReady) is understood as well."""
    by_letters = {_letters(name): name for name in known}
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if _letters(name) not in by_letters:
            raise UsageError(f"invalid {option} {name!r}: use {', '.join(known)}")
    return {by_letters[_letters(name)] for name in names}


def _letters(name: str) -> str:
    return "".join(filter(str.isalpha, name)).upper()


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
    answers = source.answers()
    then = answers.at(moment, group)
    around = then.surroundings()
    if known := known_ends(answers, ends, moment):
        around = replace(around, data_end={partition: end.offset for partition, end in known.items()})
    one = None if group is None else find_group(then, moment, group)
    check_moment(source.console, then, moment)
    of_topics = one is None or not isinstance(one.group.state, ClassicGroup)
    is_whole = warn_of_missing(source.console, then, group, of_topics=of_topics, of_offsets=True)
    warn_of_share_state(source.console, then, then.groups() if one is None else [one])
    chosen = naming_moved(source.console, then.groups() if one is None else [one])
    descriptions = (describe(each, offsets, around, certainty) for each, offsets, certainty in chosen)
    if group is not None:
        for described in descriptions:
            (print_json if source.json else print_description)(described)
    else:
        # One description tells whether there are any; the others are made while they are printed.
        first = list(islice(descriptions, 1))
        refuse_unproven_list(then, first, is_whole=is_whole)
        print_all(source, chain(first, descriptions))


def print_all(source: AnswerSource, descriptions: Iterable[Description]) -> None:
    """Print all groups: as JSON one at a time, for people one line each."""
    if not source.json:
        print_overview(descriptions)
        return
    for described in descriptions:
        print_json({"group": described["listing"]["groupId"], **described})


def known_ends(answers: Answers, ends: Path | None, moment: AsOf) -> NewestEnds:
    """Return the newest end offsets at a moment: of the file, otherwise of the tables.

    Snapshots have times, so for a moment that is an offset of the log only a file says which ones are meant.
    """
    if ends is not None:
        return newest_ends(ends, moment.time_ms)
    return {} if moment.offsets else answers.newest_ends(moment.time_ms)


@with_options(AnswerSource)
def offsets_command(
    source: AnswerSource,
    group: GroupArgument,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
    ends: EndsOption = None,
    lag_history: Annotated[
        bool, typer.Option("--lag-history", help="The lag at each snapshot of the end offsets, with Burrow's status.")
    ] = False,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="TOPIC", help="With --lag-history: limit to this topic.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", metavar="N", help="With --lag-history: limit to this partition.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """The committed offsets of a group, and apart from them those of open transactions; with end offsets, the lag.

    Of a share group: the share partitions with their start offsets, and the records by delivery state. With
    --lag-history: the lag of each partition at the time of each snapshot. Between two snapshots nothing is known.
    """
    moment = parse_moment(at, at_offset)
    limits = (topic, partition, since, until)
    if lag_history:
        if moment != AsOf():
            raise typer.BadParameter("give either --lag-history or a moment")
        print_lag_history(source, group, ends, LagLimits(*limits))
        return
    if any(limit is not None for limit in limits):
        raise typer.BadParameter("--topic, --partition, --since and --until go with --lag-history")
    answers = source.answers()
    then = answers.at(moment, group)
    check_moment(source.console, then, moment)
    described, offsets, certainty = find_group(then, moment, group)
    known = known_ends(answers, ends, moment)
    if isinstance(described.state, ShareGroup):
        warn_of_missing(source.console, then, group)
        warn_of_share_state(source.console, then, [GroupThen(described, offsets, certainty)])
        shared = _share_partitions(described.group_id, described.state, then, known)
        print_lines(shared if source.json else without_counts(shared), as_json=source.json, title=f"offsets of {group}")
        return
    is_whole = certainty.all_offsets
    lines = _commits(offsets.committed, "committed" if certainty.commits_hold else UNDECIDED, known, is_whole)
    for _, commits in sorted(offsets.pending.items()):
        lines += _commits(commits, "pending", known, is_whole)
    lines += [_unknown_commit(partition, is_whole) for partition in sorted(certainty.unknown_offsets)]
    warn_of_missing(source.console, then, group, of_offsets=True)
    print_list(source, lines, f"offsets of {group}", is_whole=is_whole)


def _share_partitions(
    group_id: str, state: ShareGroup, then: GroupsThen, ends: NewestEnds
) -> list[DescribedSharePartition]:
    """Return the share partitions of a group; raises InputError where the log that has their state is not there."""
    log = then.surroundings().share_state
    if log is None:
        raise InputError(f"group {group_id!r} is a share group: its offsets are in {SHARE_LOG}, which is not given")
    of_partitions = {partition: end.offset for partition, end in ends.items()}
    return describe_share_partitions(group_id, state, log, of_partitions)


def print_list(source: AnswerSource, lines: Sequence[Line], title: str, *, is_whole: bool) -> None:
    """Print a list. Rows for people do not repeat what its title says, nor that something is certain."""
    if not source.json:
        plain = (("listComplete", is_whole), ("list_complete", is_whole), ("certainty", CERTAIN_GROUP))
        same_in_all = {name for name, value in plain if all(line.get(name) == value for line in lines)}
        lines = [{name: value for name, value in line.items() if name not in same_in_all} for line in lines]
    print_lines(lines, as_json=source.json, title=title if is_whole else f"{title}, incomplete")


def _summary(then: GroupThen, *, is_whole: bool) -> ListedGroup:
    group, offsets, certainty = then
    state = group.state
    members_are_known = state is not None and certainty.members_are_known
    offsets_are_known = certainty.all_offsets and not certainty.unknown_offsets
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group_state(group, certainty),
        "stateAsOf": state_as_of(group),
        "epoch": group.epoch,
        "members": len(state.members) if state is not None and members_are_known else None,
        "offsets": len(offsets.committed) if offsets_are_known else None,
        "certainty": certainty_label(group, certainty),
        "listComplete": is_whole,
    }


def _commits(commits: Commits, status: str, ends: NewestEnds, is_whole: bool) -> list[OffsetLine]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": commit.offset,
            "endOffset": None if (end := ends.get(partition)) is None else end.offset,
            "lag": None if end is None else records_behind(end, commit.offset, commit.at.timestamp_ms, commit.topic_id),
            "leaderEpoch": commit.leader_epoch,
            "metadata": commit.metadata,
            "committed": utc(commit.commit_timestamp),
            "expires": utc(commit.expire_timestamp),
            "status": status,
            "producerId": commit.producer_id,
            "logPartition": commit.at.partition,
            "logOffset": commit.at.offset,
            "listComplete": is_whole,
        }
        for partition, commit in sorted(commits.items())
    ]


def _unknown_commit(partition: TopicPartition, is_whole: bool) -> OffsetLine:
    known = {**partition._asdict(), "status": UNKNOWN, "listComplete": is_whole}
    return cast("OffsetLine", dict.fromkeys(OffsetLine.__annotations__) | known)
