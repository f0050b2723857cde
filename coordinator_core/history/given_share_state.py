"""What was given of the share state log, on which the offsets and deliveries of share groups rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from coordinator_core.history.grounds import UNREADABLE
from coordinator_core.records import SHARE_LOG

NOT_KNOWN: Final = "the offsets and deliveries of share groups"
MOST_NAMED: Final = 5
"""So many partitions, or ranges of offsets, are named."""


@dataclass(slots=True)
class GivenShareState:
    """The partitions of the share state log that were given, and what they lack.

    ``count`` is how many there are as topics say, 0 if that is not known. ``is_placed``: each log tells its partition.
    ``lost`` has the offsets without a record, both included, by partition; ``unreadable`` the first offset whose record
    cannot be decoded.
    """

    partitions: set[int] = field(default_factory=set)
    count: int = 0
    is_placed: bool = True
    lost: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unreadable: dict[int, int] = field(default_factory=dict)

    def note_lost(self, partition: int, spans: Iterable[tuple[int, int]]) -> None:
        """Note offsets without a record, both included; none is given where nothing is lost."""
        if offsets := list(spans):
            self.lost[partition] = offsets

    def note_unreadable(self, partition: int, offset: int) -> None:
        """Note a record that cannot be decoded; those of a partition are noted in order."""
        self.unreadable.setdefault(partition, offset)

    @property
    def shown(self) -> int:
        """How many partitions there are; at least, if that is not known."""
        return max(self.count, max(self.partitions, default=-1) + 1)

    @property
    def absent(self) -> list[int]:
        """The partitions that exist and were not given."""
        return [number for number in range(self.shown) if number not in self.partitions] if self.is_placed else []

    @property
    def doubtful(self) -> list[int]:
        """The partitions that exist, or may exist, and were not given; of unknown ones the first alone."""
        return [*self.absent, *([self.shown] if self._is_not_counted else [])]

    @property
    def _is_not_counted(self) -> bool:
        """Whether partitions may be absent that nothing shows."""
        return bool(self.partitions) and (self.count == 0 if self.is_placed else self.count != 1)

    def missing(self) -> list[str]:
        """Return what is missing for answers about share groups, in words; the list is empty if nothing is."""
        if not self.partitions and self.is_placed:
            return [f"the share state log ({SHARE_LOG}) was not given: {NOT_KNOWN} are not known"]
        reasons = []
        if absent := self.absent:
            named = ", ".join(map(str, absent[:MOST_NAMED])) + (" and others" if len(absent) > MOST_NAMED else "")
            reasons.append(
                f"{len(absent)} of {self.shown} partitions of {SHARE_LOG} were not given ({named}): {NOT_KNOWN} that "
                "are in them are not known"
            )
        if self._is_not_counted:
            reasons.append(
                f"no metadata log says how many partitions {SHARE_LOG} has: {NOT_KNOWN} in partition "
                f"{self.doubtful[-1]} or higher, if there are any, are not known"
                if self.is_placed
                else f"these logs do not tell which partitions of {SHARE_LOG} they are: {NOT_KNOWN} in others, if any, "
                "are not known"
            )
        if self.lost:
            named = "; ".join(f"{SHARE_LOG}-{number} {_spans(spans)}" for number, spans in sorted(self.lost.items()))
            reasons.append(
                f"the share state log lacks records, and what they said of {NOT_KNOWN} is not known: {named}"
            )
        if self.unreadable:
            named = "; ".join(
                f"{SHARE_LOG}-{number} from offset {at} on" for number, at in sorted(self.unreadable.items())
            )
            reasons.append(f"some records each {UNREADABLE}; what they said of {NOT_KNOWN} is not known: {named}")
        return reasons


def _spans(spans: list[tuple[int, int]]) -> str:
    named = ", ".join(f"{first} to {last}" for first, last in spans[:MOST_NAMED])
    return f"offsets {named}" + (" and others" if len(spans) > MOST_NAMED else "")
