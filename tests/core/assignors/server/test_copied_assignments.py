"""Copies of assignments: a few changes, made member after member, give what many give, made in columns."""

import random

import numpy as np
import pytest

from coordinator_core.assignors.inputs import MemberSpec
from coordinator_core.assignors.server import copied_assignments
from coordinator_core.assignors.server.copied_assignments import (
    ADDED,
    DROPPED,
    REMOVED,
    AssignmentChanges,
    CopiedAssignments,
)
from coordinator_core.wire.primitives import uuid_text

TOPICS = [uuid_text(random.Random(number).randbytes(16)) for number in range(30)]
WIDTH = 40


def case(seed: int) -> tuple[dict[str, MemberSpec], AssignmentChanges, bool]:
    """Members with what they have, changes of it, and whether an empty topic stays."""
    choose = random.Random(seed)
    topics = choose.sample(TOPICS, choose.randint(1, len(TOPICS)))
    keep_empty, edits = choose.random() < 0.5, AssignmentChanges(topics)
    members = {}
    for index in range(choose.randint(1, 8)):
        had = {
            topic: choose.sample(range(WIDTH), choose.randint(1, WIDTH))
            for topic in choose.sample(topics, choose.randint(0, len(topics)))
        }
        members[f"m-{index}"] = MemberSpec(tuple(topics), had, None, None, len(topics))
        if choose.random() < 0.3:
            edits.copied.add(index)
        for number, topic in enumerate(topics):
            mine = had.get(topic, [])
            match choose.randrange(6):
                case 0 if mine:
                    edits.put(REMOVED, index, number, mine[: choose.randint(1, len(mine))])
                case 1 if mine:
                    edits.put(DROPPED, index, number, -1)
                case 2 | 3:
                    new = [each for each in range(WIDTH) if each not in mine][: choose.randint(1, WIDTH)]
                    edits.put([ADDED] * len(new), index, np.full(len(new), number), new)
    return members, edits, keep_empty


@pytest.mark.parametrize("seed", range(100))
def test_the_number_of_changes_does_not_change_the_result(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for few in (0, 1_000_000):
        monkeypatch.setattr(copied_assignments, "FEW", few)
        members, edits, keep_empty = case(seed)
        made = CopiedAssignments(members, edits, 17, set_capacities={TOPICS[0]: 64}, keep_empty=keep_empty).all()
        results.append(
            [(member, [(topic, list(numbers)) for topic, numbers in had.items()]) for member, had in made.items()]
        )
    assert results[0] == results[1]
