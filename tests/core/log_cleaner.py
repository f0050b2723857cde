"""What Kafka's log cleaner leaves of a log partition, and what is left where batches of it are lost."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Protocol, TypeVar


class Logged(Protocol):
    """One offset of a log: a record, or the end of a transaction, which has no key.

    ``batch`` has the first and the last offset of its batch. Of the end of a transaction ``ends`` says whether it was
    committed.
    """

    @property
    def offset(self) -> int: ...
    @property
    def batch(self) -> tuple[int, int]: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def is_tombstone(self) -> bool: ...
    @property
    def producer_id(self) -> int | None: ...
    @property
    def ends(self) -> bool | None: ...


Entry = TypeVar("Entry", bound=Logged)


def compact(log: Sequence[Entry], clean_end: int, tombstones_end: int, chance: Random) -> list[Entry]:
    """What the log cleaner leaves that has cleaned the log up to an offset: of each key the newest record there.

    The segment that is written to is not cleaned. What transactions wrote that were aborted goes, what those wrote that
    are open stays, and from the first of them on nothing is cleaned. Tombstones below ``tombstones_end`` go too, and
    markers of which no record is left, or not.
    """
    outcomes = _outcomes(log)
    is_open = (entry.offset for entry in log if outcomes.get(entry.offset, True) is None)
    clean_end = min([clean_end, log[-1].offset, *is_open])
    tombstones_end = min(tombstones_end, clean_end)
    newest: dict[bytes, int] = {}
    for entry in log:
        if entry.key is not None and entry.offset < clean_end and outcomes.get(entry.offset, True):
            newest[entry.key] = entry.offset
    kept = [
        entry
        for entry in log
        if entry.key is None
        or entry.offset >= clean_end
        or (newest.get(entry.key) == entry.offset and not (entry.is_tombstone and entry.offset < tombstones_end))
    ]
    begins = _begins(log)
    with_data = {begins[entry.offset] for entry in kept if entry.offset in begins and entry.key is not None}
    return [
        entry
        for entry in kept
        if entry.key is not None
        or begins.get(entry.offset) in with_data
        or entry.offset >= tombstones_end
        or chance.random() < 0.5
    ]


def lose(log: Iterable[Entry], first: int, last: int) -> list[Entry]:
    """The log without the batches that have an offset in this range."""
    return [entry for entry in log if entry.batch[1] < first or entry.batch[0] > last]


def _outcomes(log: Iterable[Logged]) -> dict[int, bool | None]:
    """Of each record of a transaction whether it was committed; None: it is open."""
    outcomes: dict[int, bool | None] = {}
    waiting: dict[int, list[int]] = {}
    for entry in log:
        if entry.producer_id is None:
            continue
        if entry.ends is None:
            waiting.setdefault(entry.producer_id, []).append(entry.offset)
            outcomes[entry.offset] = None
        else:
            outcomes |= dict.fromkeys(waiting.pop(entry.producer_id, ()), entry.ends)
    return outcomes


def _begins(log: Iterable[Logged]) -> dict[int, tuple[int, int]]:
    """Of each record and marker of a transaction the transaction: its producer, and its number."""
    numbers: dict[int, int] = {}
    found = {}
    for entry in log:
        if entry.producer_id is not None:
            found[entry.offset] = (entry.producer_id, numbers.get(entry.producer_id, 0))
            if entry.ends is not None:
                numbers[entry.producer_id] = numbers.get(entry.producer_id, 0) + 1
    return found
