"""What commands say where the logs do not prove all that they are asked for."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from coordinator_core.errors import InputError
from coordinator_core.groups.moved_groups import moved_in_words
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.share.partition_offsets import lacks_share_state
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.history.knowledge import MOST_NAMED
from coordinator_core.records import GROUP_LOG
from jobs.cli.console import Console
from jobs.cli.output import utc
from jobs.queries.interface import GroupsThen
from jobs.relations.moment import AsOf


def warn_of_missing(
    console: Console,
    then: GroupsThen,
    group_id: str | None = None,
    *,
    of_topics: bool = False,
    of_offsets: bool = False,
) -> bool:
    """Say once what the logs lack from before the moment; ``of_topics``: for an answer that rests on topics, too.

    ``group_id``: for one about a group that was found, None: about all; ``of_offsets``: for one about committed
    offsets.

    Returns whether no group, member or offset can have been there without a trace in them.
    """
    known = then.knowledge()
    gaps = known.incomplete
    facts = {
        "whole_from": {name: log.whole_from for name, log in gaps.items()},
        "lost": {name: log.lost for name, log in gaps.items() if log.lost >= 0},
    }
    reasons = known.reasons_with_topics(group_id) if of_topics else known.reasons(group_id)
    for number, reason in enumerate(reasons):
        console.warn(reason, **facts if gaps and number == 0 else {})
    for reason in known.about_offsets() if of_offsets else ():
        console.warn(reason)
    return known.lists_all


def warn_of_share_state(console: Console, then: GroupsThen, groups: Iterable[GroupThen]) -> None:
    """Say what the share state log lacks where it does not prove the state of all share partitions of these groups."""
    around = then.surroundings()
    if any(
        isinstance(shown.group.state, ShareGroup)
        and (
            around.share_state is None
            or lacks_share_state(shown.group.group_id, shown.group.state, around.share_state, around.topics)
        )
        for shown in groups
    ):
        for reason in then.knowledge().about_share_groups():
            console.warn(reason)


def naming_moved(console: Console, groups: Iterable[GroupThen]) -> Iterator[GroupThen]:
    """Yield the groups, and say once of each for which two logs disagree why nothing is claimed of it."""
    named = None
    for shown in groups:
        group_id = shown.group.group_id
        if shown.certainty.may_have_moved and group_id != named:
            console.warn(moved_in_words(group_id))
            named = group_id
        yield shown


def lacks_deliveries(then: GroupsThen, groups: Iterable[GroupThen]) -> list[str]:
    """Return in words what the share state log lacks for an answer about all that these groups delivered."""
    states = (shown.group.state for shown in groups)
    if any(isinstance(state, ShareGroup) and state.state_partitions is not None for state in states):
        return then.knowledge().about_share_groups()
    return []


def check_moment(console: Console, then: GroupsThen, moment: AsOf) -> None:
    """Say where the moment lies before the first record of the logs; a later one than the last is among what lacks.

    Raises InputError where it names a log partition that is not there: all others would be answered as of their end.
    """
    given = [name.rpartition("-")[::2] for name in then.gaps()]
    topics = {topic for topic, _ in given}
    # Both logs of groups have partitions of the same numbers: an offset is one of this log where it was given.
    there = {number for topic, number in given if topic == GROUP_LOG or GROUP_LOG not in topics}
    if strange := [number for number in sorted(moment.offsets) if str(number) not in there]:
        known = then.knowledge().given
        may_exist = strange[0] < known.count(GROUP_LOG) or GROUP_LOG in known.not_counted()
        why = "which was not given" if may_exist else "which these logs of groups do not have"
        raise InputError(f"--at-offset names partition {strange[0]}, {why}")
    if moment.time_ms is None:
        return
    first, _ = then.span()
    if first is not None and moment.time_ms < first:
        console.warn(
            f"the moment {utc(moment.time_ms)} is before the first record of these logs, which is of {utc(first)}"
        )


def note_gone(console: Console, then: GroupsThen, moment: AsOf, there: Collection[str]) -> None:
    """Say which groups the records up to the moment name that are not there at it: all that is left of them may be
    tombstones.
    """
    if gone := sorted(set(then.named()) - set(there)):
        many = "1 group does" if len(gone) == 1 else f"{len(gone)} groups do"
        more = f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else ""
        console.note(f"{many} not exist {moment.in_words}: {', '.join(gone[:MOST_NAMED])}{more} (see history GROUP)")


def refuse_unproven_list(then: GroupsThen, rows: Sequence[object], *, is_whole: bool) -> None:
    """Raise InputError for an empty list of groups where groups may have left no trace in these logs."""
    if not rows and not is_whole:
        missing = "; ".join(then.knowledge().reasons())
        raise InputError(f"no group was found, which does not prove that there was none: {missing}")


def find_group(then: GroupsThen, moment: AsOf, group_id: str) -> GroupThen:
    """A group at the moment; raises InputError where the log does not mention it."""
    for of_group in then.groups():
        if of_group.group.group_id == group_id:
            return of_group
    known = then.knowledge()
    if not (missing := known.about_group(group_id)):
        raise InputError(f"no group {group_id!r} {moment.in_words}; see history {group_id}")
    raise InputError(
        f"no trace of a group {group_id!r} {moment.in_words}, which does not prove that there was none: "
        + "; ".join(missing)
    )
