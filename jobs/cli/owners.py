"""``owners``: which member had a partition, a connector or a task, now, at a moment, or over time."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated

import typer

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.errors import InputError
from coordinator_core.groups.moved_groups import moved_in_words
from coordinator_core.groups.owners import connector_tasks, owners, possible_owners
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.whole_numbers import whole_number
from jobs.cli.answer_source import AnswerSource
from jobs.cli.describe import print_list
from jobs.cli.gaps import check_moment, naming_moved, warn_of_missing
from jobs.cli.lines import OwnerIntervalLine, OwnershipTime
from jobs.cli.options import AtOffsetOption, AtOption, parse_moment, with_options
from jobs.cli.output import utc
from jobs.formatting import number_ranges
from jobs.queries.ownership import ReadInterval, in_order, interval_of, is_topic_shown, of_partition, owned_by
from jobs.relations.moment import AsOf


@with_options(AnswerSource)
def owners_command(
    source: AnswerSource,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of a topic, a connector, or a task: jdbc-0.")],
    partition: Annotated[int | None, typer.Argument(metavar="[PARTITION]", help="Only this partition or task.")] = None,
    at: AtOption = None,
    at_offset: AtOffsetOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="Every owner in the log, with the records that begin and end its time.")
    ] = False,
) -> None:
    """Show which member had each partition of a topic, or ran a connector and its tasks, in every group.

    Each line says in which member epoch the member got it, since when, and the log position that proves it. Which tasks
    of a streams group read the topic is decided by the group's topology at the moment; a task that is older than the
    topic's partition has no beginning.
    """
    if history and (at is not None or at_offset):
        raise typer.BadParameter("give either --history or a moment")
    moment = parse_moment(at, at_offset)
    answers = source.answers()
    then = answers.at(moment)
    if not history:
        check_moment(source.console, then, moment)
    image = then.image()
    thens, name = list(naming_moved(source.console, then.groups())), topic
    groups = [one.group for one in thens]
    connectors = connector_tasks(groups)
    if partition is None and topic not in connectors and (image is None or topic not in image.by_name):
        # A name such as jdbc-0 may also be that of a topic or connector: those that exist go first.
        topic, partition = _as_task(topic, connectors)
    if image is None and topic not in connectors:
        source.console.warn(
            "no topics are known of that moment: groups that record topic ids match no topic name, and which tasks of "
            "streams groups have a partition of it is known only where they read no other topic"
        )
    owning = owners(groups, image, topic, partition)
    lives = then.lives(topic)
    wanted = owned_by(topic, groups, has_partition_of_task=lives is not None)
    intervals = answers.owned(wanted) if owning or history else ()
    parts = [part for row in in_order(intervals) for part in of_partition(row, lives)]
    if not parts and not owning and topic in connectors:
        _require_task(connectors[topic], topic, partition, moment)
    elif not parts and not owning and image is not None:
        known = then.knowledge()
        moved = {then.group.group_id for then in thens if then.certainty.may_have_moved}
        # Records of groups name connectors, too, and topics that were deleted since.
        missing = [*known.reasons_with_topics(), *map(moved_in_words, sorted(moved))]
        _require_partition(image, topic, partition, moment, missing)
    is_whole = warn_of_missing(source.console, then, of_topics=topic not in connectors)
    for reason in [] if all(part.row.history_complete for part in parts) else then.knowledge().about_history():
        source.console.warn(reason)
    possible = [] if history else list(possible_owners(thens, image, name))
    if not (owning or parts or possible or is_whole):
        raise InputError(
            f"no owner of {name!r} {moment.in_words}, which does not prove that there was none: "
            + "; ".join(then.knowledge().reasons())
        )
    if history:
        given, last_ms = then.knowledge().topics, then.span()[1]
        owned = [
            _interval(part, is_shown=is_topic_shown(part, given, last_ms))
            for part in parts
            if partition in (None, part.row.partition)
        ]
        print_list(source, owned, f"owners of {name} over time", is_whole=is_whole)
        return
    lines = [
        owner._asdict() | _begin(_part_at(interval_of(owner, intervals, moment), lives)) | {"list_complete": is_whole}
        for owner in (*owning, *possible)
    ]
    print_list(source, lines, f"owners of {name}", is_whole=is_whole)


def _part_at(row: AssignmentRow | None, lives: Sequence[TopicInterval] | None) -> ReadInterval | None:
    """Return the last time of the interval that belongs to the topic; the owner has it at the moment."""
    return None if row is None else max(of_partition(row, lives), key=lambda part: part.until_ms or inf, default=None)


def _interval(part: ReadInterval, *, is_shown: bool) -> OwnerIntervalLine:
    row = part.row
    return {
        "group_id": row.group_id,
        "partition": None if row.partition < 0 else row.partition,
        "member_id": row.member_id,
        "role": row.role,
        **_begin(part),
        "history_complete": row.history_complete and part.since is not None and is_shown,
    }


def _begin(part: ReadInterval | None) -> OwnershipTime:
    """Return when an interval began and ended; nulls where the history does not show it."""
    since = None if part is None else part.since
    until = None if part is None else part.until
    begun = since if part is not None and part.row.history_complete else None
    return {
        "epoch": None if part is None or begun is None else part.row.epoch,
        "since": None if begun is None else utc(begun.timestamp_ms),
        "until": None if part is None or part.until_ms is None else utc(part.until_ms),
        "log": None if since is None else f"{since.partition}:{since.offset}",
        "until_log": None if until is None else f"{until.partition}:{until.offset}",
    }


def _as_task(name: str, connectors: Mapping[str, set[int]]) -> tuple[str, int | None]:
    """Return connector and number of a task's name as Connect writes it, such as ``jdbc-0``; another name as it is."""
    connector, _, number = name.rpartition("-")
    task = whole_number(number)
    return (name, None) if task is None or connector not in connectors else (connector, task)


def _require_task(tasks: set[int], connector: str, number: int | None, moment: AsOf) -> None:
    """Raise InputError where the connector did not have this task at the moment."""
    if number is not None and number not in tasks:
        listed = number_ranges(tasks) or "none"
        raise InputError(f"connector {connector!r} had no task {number} {moment.in_words}; its tasks: {listed}")


def _require_partition(
    image: TopicImage, topic: str, partition: int | None, moment: AsOf, missing: Sequence[str]
) -> None:
    """Raise InputError where the cluster did not have the topic, or this partition of it, at the moment.

    ``missing``: what is not known of topics and connectors, in words.
    """
    known = image.by_name.get(topic)
    if known is None and missing:
        raise InputError(
            f"no trace of a topic or connector {topic!r} {moment.in_words}, which does not prove that there was none: "
            + "; ".join(missing)
        )
    if known is None:
        raise InputError(f"no topic or connector {topic!r} {moment.in_words}")
    if partition is not None and not 0 <= partition < known.partitions:
        there = f"partitions 0 to {known.partitions - 1}"
        raise InputError(f"topic {topic!r} had {there} {moment.in_words}, not {partition}")
