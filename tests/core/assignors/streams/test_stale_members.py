"""Members with an older topology keep what they had, and others take the rest."""

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.assignors.streams.topology import retain_only

BEFORE = {"a": Tasks(active={"0": [0]})}
PROCESSES = {"a": "p", "b": "q", "c": "r"}


def test_a_task_that_another_member_takes_is_no_copy_in_its_process_any_more() -> None:
    """``b`` and ``c`` are a process each, and both have a copy of 0_1, which the stale member ``a`` may not begin."""
    targets = {
        "a": Tasks(active={"0": [0, 1]}),
        "b": Tasks(active={"0": [2]}, standby={"0": [1]}),
        "c": Tasks(active={"0": [3, 4]}, warmup={"0": [1]}),
    }
    assert retain_only(targets, {"a"}, BEFORE, PROCESSES) == {
        "a": Tasks(active={"0": [0]}),
        "b": Tasks(active={"0": [1, 2]}),
        "c": targets["c"],
    }


def test_a_process_without_a_copy_of_the_task_comes_first() -> None:
    targets = {
        "a": Tasks(active={"0": [0, 1]}),
        "b": Tasks(active={"0": [2]}, standby={"0": [1]}),
        "c": Tasks(active={"0": [3, 4]}),
    }
    changed = retain_only(targets, {"a"}, BEFORE, PROCESSES)
    assert changed["b"] == targets["b"]
    assert changed["c"] == Tasks(active={"0": [1, 3, 4]})
