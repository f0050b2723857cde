"""Previous assignments of many members as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.assignors.inputs import MemberSpec
from coordinator_core.assignors.server.assignment_changes import ints
from coordinator_core.java.order import Ints


class PreviousAssignments(NamedTuple):
    """One row for each partition that a member has: number of the member, number of the topic, and the partition.

    Rows are in the order of members, each member's in the order of its assignment.
    """

    member: Ints
    topic: Ints
    partition: Ints

    @classmethod
    def of(cls, members: Sequence[MemberSpec], order: Iterable[int], topics: Mapping[str, int]) -> PreviousAssignments:
        """Return the rows of members in that order; partitions of other topics are left out."""
        order = list(order)
        previous = [members[index].previous for index in order]
        sets = list(chain.from_iterable(had.values() for had in previous))
        lengths = ints(map(len, sets))
        partition = ints(chain.from_iterable(sets))
        topic = ints(map(topics.get, chain.from_iterable(previous), repeat(-1)))
        member = np.repeat(np.array(order, np.int64), ints(map(len, previous)))
        member, topic = np.repeat(member, lengths), np.repeat(topic, lengths)
        known = topic >= 0
        return cls(member[known], topic[known], partition[known])

    def bases(self, widths: Iterable[int]) -> Ints:
        """Return where each topic's partitions begin if all are numbered in one sequence; ``widths`` counts
        existing ones.
        """
        wide = ints(widths)
        np.maximum.at(wide, self.topic, self.partition + 1)
        return np.concatenate((ints((0,)), np.cumsum(wide)))

    def by_topic(self, topics: int) -> list[Ints]:
        """Return the rows of each topic, in order."""
        order = np.argsort(self.topic, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.topic, minlength=topics))[:-1])
