"""Lines that a broker would have written about a recorded log, made of its history: the truth is known of each."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.history.memberships import LEFT_OR_EXPIRED

LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"


class Told(NamedTuple):
    """A member that went: group, member, and how (a ``CauseKind``)."""

    group_id: str
    member_id: str
    how: str


def line(partition: int, at_ms: int, text: str, ahead: timedelta) -> tuple[int, str]:
    """A line in Kafka's default layout, in a zone that is so far ahead of UTC, and its time."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC) + ahead
    head = f"[{at:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] INFO "
    context = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={partition}] "
    return at_ms, f"{head}{context}{text} ({LOGGER})"


def written(histories: Iterable[GroupHistory], ahead: timedelta = timedelta(0)) -> tuple[str, list[Told]]:
    """The file about these groups, and what it says of members that went."""
    lines: list[tuple[int, str]] = []
    told: list[Told] = []
    for history in histories:
        lines += _epochs(history, ahead)
        lines += _refusals(history, ahead)
        ways = cycle(("member_left", "member_expired", "member_timed_out"))
        for row in history.memberships:
            if row.went_by == LEFT_OR_EXPIRED and row.left is not None and row.group_type != "CONNECT":
                told.append(Told(history.group_id, row.member_id, next(ways)))
                text = _departure(row.group_type, told[-1])
                lines.append(line(row.left.partition, row.left.timestamp_ms - 2, text, ahead))
    lines.sort()
    return "".join(f"{text}\n" for _, text in lines), told


def _departure(group_type: str, told: Told) -> str:
    group, member, how = told
    if group_type == "CLASSIC":
        return {
            "member_left": f"[GroupId {group}] Dynamic member {member} has left group through explicit `LeaveGroup` "
            "request; client reason: the consumer is being closed",
            "member_expired": f"Member {member} in group {group} has failed, removing it from the group.",
            "member_timed_out": f"Group {group} removed dynamic members who haven't joined: [{member}]",
        }[how]
    return (
        f"[GroupId {group}] "
        + {
            "member_left": f"Member {member} left the {group_type.lower()} group.",
            "member_expired": f"Member {member} fenced from the group because the member session expired.",
            "member_timed_out": f"Member {member} fenced from the group because it failed to transition from epoch 2 "
            "within 4000ms.",
        }[how]
    )


def _refusals(history: GroupHistory, ahead: timedelta) -> Iterator[tuple[int, str]]:
    """A conversion that the broker refused after the last epoch."""
    if history.present is not None and history.present.group_type == "CONSUMER":
        at = history.present.opened
        text = f"Cannot downgrade consumer group {history.group_id} to classic group because the online downgrade is "
        yield line(at.partition, at.timestamp_ms + 1, f"{text}disabled.", ahead)


def _epochs(history: GroupHistory, ahead: timedelta) -> Iterator[tuple[int, str]]:
    before: int | None = None
    for row in history.epochs:
        at, group = row.opened, history.group_id
        if row.group_type == "CLASSIC":
            if before is not None:
                text = f"Preparing to rebalance group {group} in state Stable with old generation {before} "
                text += "(reason: Adding new member x with group instance id None; client reason: not provided)."
                yield line(at.partition, at.timestamp_ms - 1, text, ahead)
            text = f"Assignment received from leader x for group {group} for generation {row.epoch}. "
            text += "The group has 1 members, 0 of which are static."
            yield line(at.partition, at.timestamp_ms, text, ahead)
        elif row.group_type != "CONNECT":
            yield line(at.partition, at.timestamp_ms, f"[GroupId {group}] Bumped group epoch to {row.epoch}.", ahead)
        before = row.epoch
