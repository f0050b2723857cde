"""What share groups did, as the simulation of their state needs it: share partitions, and which member had which."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.groups.epochs import Partitions
from coordinator_core.groups.share.state_log import SharePartition


class HoldEnd(StrEnum):
    """How a member ceased to have a share partition."""

    MOVED = "moved"
    """The assignor took it away."""
    LEFT = "left"
    CRASHED = "crashed"
    """Its connections broke, so the broker knows at once."""
    EXPIRED = "expired"
    """It was silent until its session ended, and its connections are there."""


@dataclass(slots=True)
class Hold:
    """The time in which a member had a share partition; no ``until_ms``: it still has it at the end."""

    member_id: str
    since_ms: int
    until_ms: int | None = None
    end: HoldEnd | None = None


class ShareLifetime(NamedTuple):
    """A share partition from the moment on when its state was initialised to its removal, if it was removed."""

    which: SharePartition
    since_ms: int
    state_epoch: int
    until_ms: int | None = None


@dataclass(slots=True)
class ShareActivity:
    """What the share groups of one log partition did.

    ``silences`` has, by group and member, the times between which a member's process hung.
    """

    initialized: dict[SharePartition, ShareLifetime] = field(default_factory=dict)
    removed: list[ShareLifetime] = field(default_factory=list)
    holds: dict[SharePartition, list[Hold]] = field(default_factory=dict)
    silences: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    _held: dict[str, dict[tuple[str, SharePartition], Hold]] = field(default_factory=dict)
    _crashed: set[tuple[str, str]] = field(default_factory=set)

    def initialize(self, which: SharePartition, epoch: int, now: int) -> None:
        """Take in that a share partition gets its state, if it has none yet."""
        self.initialized.setdefault(which, ShareLifetime(which, now, epoch))

    def remove(self, gone: Callable[[SharePartition], bool], now: int) -> None:
        """Take in that the state of share partitions was removed, with their topic or their group."""
        for which in [partition for partition in self.initialized if gone(partition)]:
            self.removed.append(self.initialized.pop(which)._replace(until_ms=now))

    def assign(self, group_id: str, targets: Mapping[str, Partitions], now: int, gone: HoldEnd) -> None:
        """Take in that the group's members now have these partitions; members that are not there went as ``gone``."""
        held = self._held.setdefault(group_id, {})
        wanted = {
            (member_id, SharePartition(group_id, topic_id, partition))
            for member_id, target in targets.items()
            if (group_id, member_id) not in self._crashed
            for topic_id, partitions in target.items()
            for partition in partitions
        }
        for key in [key for key in held if key not in wanted]:
            self._end(held.pop(key), HoldEnd.MOVED if key[0] in targets else gone, now)
        # Sorted, as a set has another order in each process, and holds are simulated in the order that they have here.
        for member_id, which in sorted(wanted - held.keys()):
            hold = held[member_id, which] = Hold(member_id, now)
            self.holds.setdefault(which, []).append(hold)

    def crash(self, group_id: str, member_id: str, now: int) -> None:
        """Take in that a member's process died."""
        self._crashed.add((group_id, member_id))
        held = self._held.get(group_id, {})
        for key in [key for key in held if key[0] == member_id]:
            self._end(held.pop(key), HoldEnd.CRASHED, now)

    def hang(self, group_id: str, member_id: str, now: int, until_ms: int) -> None:
        """Take in that a member's process hangs until then."""
        self.silences.setdefault((group_id, member_id), []).append((now, until_ms))

    def hangs_until(self, group_id: str, member_id: str, now: int) -> int | None:
        """Return the time at which a process that hangs now goes on; None if it does not hang."""
        silences = self.silences.get((group_id, member_id), ())
        return max((until for since, until in silences if since <= now < until), default=None)

    @staticmethod
    def _end(hold: Hold, end: HoldEnd, now: int) -> None:
        hold.until_ms, hold.end = now, end
