"""One record of a log changed, or left out: the frame of the mutations."""

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import NamedTuple

from coordinator_core.records import CoordinatorRecord, Fields

Records = list[CoordinatorRecord]


class Place(NamedTuple):
    """A record of a log that is to be changed; ``rng`` chooses what of it."""

    records: Records
    index: int
    rng: random.Random

    @property
    def record(self) -> CoordinatorRecord:
        return self.records[self.index]

    def before(self) -> Fields | None:
        """The value before under the same key."""
        mine = (each for each in reversed(self.records[: self.index]) if each.type == self.record.type)
        return next((each.value for each in mine if each.key == self.record.key), None)

    def others(self) -> list[Fields]:
        """The last value of the same type of every other member that is there."""
        found: dict[str, Fields] = {}
        for each in self.records[: self.index]:
            if each.type == self.record.type and each.key["memberId"] != self.record.key["memberId"]:
                found.pop(each.key["memberId"], None)
                if each.value is not None:
                    found[each.key["memberId"]] = each.value
        return [*found.values()]


Change = Callable[[Place, Fields], bool]
"""Changes a copy of the record's value; False where that makes no sense there."""


class RecordMutation(NamedTuple):
    """A change of the value of a record of these types.

    ``drops``: the record, of which ``change`` says whether it is one of them, is left out instead; ``tombstones``: one
    without a value. ``stranger``: the record is another member's, of which nobody knows.
    """

    name: str
    types: tuple[int, ...]
    change: Change
    drops: bool = False
    tombstones: bool = False
    stranger: bool = False


def changed_logs(mutation: RecordMutation, records: Records, rng: random.Random) -> Iterator[Records]:
    """The log changed at one record, for all records where that is possible, in random order."""
    for index in rng.sample(range(len(records)), len(records)):
        record = records[index]
        if record.type not in mutation.types:
            continue
        value = deepcopy(record.value)
        if (value is None) is mutation.tombstones and mutation.change(Place(records, index, rng), value or {}):
            key = {**record.key, "memberId": "stranger"} if mutation.stranger else record.key
            kept = [] if mutation.drops else [record._replace(key=key, value=value)]
            yield [*records[:index], *kept, *records[index + 1 :]]


def any_record(place: Place, value: Fields) -> bool:
    """Any record of these types."""
    return True
