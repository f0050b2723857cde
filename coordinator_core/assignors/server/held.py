"""Previous assignments of many members as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from coordinator_core.assignors.spec import MemberSpec

Ints = np.ndarray[Any, np.dtype[np.int64]]


class Held(NamedTuple):
    """One row for each partition that a member holds: number of the member, of the topic, and the partition.

    Rows come member by member, each in the order of its assignment.
    """

    member: Ints
    topic: Ints
    partition: Ints

    @classmethod
    def of(cls, members: Sequence[MemberSpec], order: Iterable[int], topics: Mapping[str, int]) -> Held:
        """The rows of members in that order; partitions of other topics are left out."""
        order = list(order)
        previous = [members[index].previous for index in order]
        sets = list(chain.from_iterable(had.values() for had in previous))
        lengths = ints(map(len, sets))
        partition = ints(chain.from_iterable(sets))
        topic = ints(topics.get(name, -1) for had in previous for name in had)
        member = np.repeat(np.array(order, np.int64), ints(map(len, previous)))
        member, topic = np.repeat(member, lengths), np.repeat(topic, lengths)
        known = topic >= 0
        return cls(member[known], topic[known], partition[known])


def ints(numbers: Iterable[int]) -> Ints:
    """The numbers as an array."""
    return np.fromiter(numbers, np.int64)
