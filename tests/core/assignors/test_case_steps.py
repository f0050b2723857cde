"""Steps of a case: what the coordinator writes between two calls of an assignor."""

from itertools import permutations

from coordinator_core.assignors.case_files.case_types import run_case
from tests.core.assignors.server.groups import topic_id

IDS = [topic_id(number) for number in range(40)]


def presented_after_replacement(topics: list[str], target: list[str]) -> list[str]:
    """The order of the successor's topics; the static member before it had them in the order of ``target``."""
    member = {"topics": topics, "instance": "i"}
    steps = [
        {"op": "bulk", "members": [{"id": "before", **member}]},
        {"op": "set_target", "assignments": {"before": [[topic, [0]] for topic in target]}},
        {"op": "join", "member": {"id": "after", **member}},
        {"op": "topics", "topics": [], "by": "after"},
    ]
    cluster = [{"name": topic, "id": topic, "partitions": 1} for topic in topics]
    case = {"id": "static", "assignor": "range", "input": {"topics": cluster, "steps": steps}}
    found = run_case(case, presented=True)["steps"]
    assert found[-1]["presented"]["order"] == ["after"]
    return [topic for topic, _ in found[-1]["presented"]["prev"]["after"]]


def test_the_target_of_a_replaced_static_member_is_written_again_in_the_new_order():
    """A consumer is replaced, and its target stays the same but for the order; ids that share a bucket show that."""
    shown = [
        (presented_after_replacement(list(pair), list(pair)), presented_after_replacement(list(pair), list(pair[::-1])))
        for pair in permutations(IDS, 2)
    ]
    assert all(same == other for same, other in shown)
    assert any(order != sorted(order) for order, _ in shown)


def test_task_offsets_of_a_case_decide_where_tasks_are_active():
    """A runs everything; B warms up until it reports that it is within the acceptable lag."""
    ends = {"0_0": 900, "0_1": 900}
    steps = [
        {"op": "join", "member": {"id": "A", "process_id": "a", "offsets": ends, "end_offsets": ends}},
        {"op": "join", "member": {"id": "B", "process_id": "b"}},
        {"op": "report", "members": [{"id": "B", "offsets": {"0_1": 799}, "end_offsets": {"0_1": 900}}], "by": "B"},
        {"op": "report", "members": [{"id": "B", "offsets": {"0_1": 800}, "end_offsets": {"0_1": 900}}], "by": "B"},
    ]
    group = {"subtopologies": [{"id": "0", "tasks": 2, "stateful": True}], "acceptable_recovery_lag": 100}
    case = {"id": "late", "assignor": "streams-highly-available", "input": {**group, "steps": steps}}
    given = [step["assignment"].get("B", {}) for step in run_case(case)["steps"]]
    assert [(roles.get("active"), roles.get("warmup")) for roles in given] == [
        (None, None),
        ({}, {"0": [1]}),
        ({}, {"0": [1]}),
        ({"0": [1]}, None),
    ]
