"""A group of Connect workers that two logs show at one moment: it moved to KIP-848, or back, and lives in one of them.

The move writes the end of the group into the log that it leaves. Where that log stops before this record, as without
its newest segment, only the other log tells that the group may have gone. Its numbers say which way it went: a
generation becomes the group epoch, the epoch of the last target the next generation, and both only grow.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from coordinator_core.groups.certainty import RecordKey
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, ConnectRecordType, Family, RecordType

GROUP_KEY: Final = {Family.GROUP: RecordType.GROUP_METADATA, Family.CONNECT: ConnectRecordType.GROUP_METADATA}
"""The record by which each log says that such a group is there."""


def without_moved(thens: Iterable[GroupThen]) -> Iterator[GroupThen]:
    """Yield the groups, with nothing claimed of one in a log that it left, or may have left.

    Both come by group id. A group that is certain comes before the trace of it in the other log.
    """
    for _, of_group in groupby(thens, key=lambda then: then.group.group_id):
        shown = list(of_group)
        if left := _logs_left(shown):
            shown = [_in_doubt(then) if then.group.family in left else then for then in shown]
            shown.sort(key=lambda then: then.certainty.may_have_moved)
        yield from shown


def moved_in_words(group_id: str) -> str:
    """Return in words why nothing is claimed of such a group."""
    return (
        f"group {group_id!r} is in {GROUP_LOG} and in {CONNECT_LOG}, and a group lives in one of them: one log ends "
        "before the record of the move, so whether the group is still there is not known"
    )


def _logs_left(shown: Sequence[GroupThen]) -> set[Family]:
    """Return the logs that a group left, or may have left: both where the numbers do not tell."""
    classic = next((then.group.state for then in shown if isinstance(then.group.state, ClassicGroup)), None)
    connect = next((then.group.state for then in shown if isinstance(then.group.state, ConnectGroup)), None)
    # A group of consumers may have the name of a group of workers.
    if classic is None or connect is None or classic.protocol_type != CONNECT_PROTOCOL_TYPE:
        return set()
    generation, epoch, target = classic.generation, connect.group_epoch, connect.assignment_epoch
    # A move back would have made this target's epoch the generation: the classic log is the older one.
    if generation is not None and target is not None and target > generation:
        return {Family.GROUP}
    # A move over would have made this generation the group epoch: the other log is the older one.
    if generation is not None and epoch is not None and generation > epoch:
        return {Family.CONNECT}
    return {Family.GROUP, Family.CONNECT}


def _in_doubt(then: GroupThen) -> GroupThen:
    """Return a group of which it is not known whether it is there."""
    certainty = replace(
        then.certainty,
        exists=False,
        unknown=frozenset((RecordKey(GROUP_KEY[then.group.family]),)),
        unknown_members=(),
        all_members=False,
        may_have_moved=True,
    )
    return then._replace(group=replace(then.group, state=None), certainty=certainty)
