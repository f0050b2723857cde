"""What commands say where the log does not prove all that they are asked for."""

from __future__ import annotations

from coordinator_core.errors import InputError
from coordinator_core.groups.proven_state import GroupThen
from jobs.cli.console import Console
from jobs.cli.output import utc
from jobs.queries.interface import AsOf, GroupsThen
from jobs.queries.missing_records import incomplete, whole_from


def lists_all(then: GroupsThen) -> bool:
    """Whether no group, member or offset can have been there at the moment without a trace in the log."""
    return all(gaps.lists_all for gaps in then.gaps().values())


def warn_of_gaps(console: Console, then: GroupsThen) -> None:
    """Say once from which offset on each log partition is whole up to the moment."""
    gaps = incomplete(then.gaps())
    console.warn(
        "the log lacks records from before this moment, and what they may have said is unknown; "
        f"from these offsets on it is whole: {whole_from(gaps)}",
        whole_from={name: each.whole_from for name, each in gaps.items()},
        lost={name: each.lost for name, each in gaps.items() if each.lost >= 0},
    )


def warn_of_times(console: Console, then: GroupsThen, moment: AsOf) -> None:
    """Say where the moment lies before the first record of the logs, or after the last one."""
    if moment.time_ms is None:
        return
    first, last = then.span()
    if first is not None and moment.time_ms < first:
        console.warn(
            f"the moment {utc(moment.time_ms)} is before the first record of these logs, which is of {utc(first)}"
        )
    elif last is not None and moment.time_ms > last:
        console.warn(
            f"the moment {utc(moment.time_ms)} is after the last record of these logs, which is of {utc(last)}: "
            "the answer is as of then"
        )


def find_group(then: GroupsThen, group_id: str) -> GroupThen:
    """A group at the moment; raises InputError where the log does not mention it."""
    for each in then.groups():
        if each.group.group_id == group_id:
            return each
    if lists_all(then):
        raise InputError(f"no group {group_id!r} in these logs at that moment; see history {group_id}")
    raise InputError(
        f"no trace of a group {group_id!r} in these logs at that moment, but they lack records from before it: "
        f"the group may have been there and be deleted since; see history {group_id}"
    )
