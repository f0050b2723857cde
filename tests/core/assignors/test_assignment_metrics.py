"""Balance, movement and racks in numbers, and several assignors side by side."""

import json

import pytest

from coordinator_core.assignors.assignment_metrics import AssignmentMetrics, measure
from coordinator_core.assignors.case_files.case_types import compare_case
from coordinator_core.assignors.inputs import (
    Assignment,
    GroupSpec,
    MemberSpec,
    StreamsGroupSpec,
    StreamsMemberSpec,
    Tasks,
)
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.errors import InputError
from tests.core.assignors.server.groups import topic_id
from tests.shared_data import ROOT

T = topic_id(1)


def test_what_is_kept_moved_new_and_lost():
    image = TopicImage.of([Topic("t", T, 5, racks=(("r1",), ("r2",), ("r1", "r2"), ("r2",), ()))])
    before = {"a": MemberSpec((T,), {T: [0, 1]}, rack_id="r1"), "b": MemberSpec((T,), {T: [2, 4]})}
    figures = measure(GroupSpec(before), image, Assignment({"a": {T: [0, 2, 3]}, "b": {T: [1]}}))
    assert figures == AssignmentMetrics(
        members=2, units=4, imbalance=2, kept=1, moved=2, fresh=1, lost=1, rack_misses=1
    )


def test_tasks_count_in_every_role():
    spec = StreamsGroupSpec({"a": StreamsMemberSpec("p", Tasks({"0": [0]})), "b": StreamsMemberSpec("q")}, [])
    after = Assignment({"a": Tasks({}, {"0": [0]}), "b": Tasks({"0": [0]}, {}, {"0": [1]})})
    assert measure(spec, TopicImage.of(()), after) == AssignmentMetrics(
        2, 3, 1, kept=1, moved=1, fresh=1, lost=0, rack_misses=0
    )


def test_a_partition_that_cannot_be_misses_no_rack():
    """A log may say anything: neither the last partitions are meant nor is it an error."""
    image = TopicImage.of([Topic("t", T, 1, racks=(("r1",),))])
    before = {"a": MemberSpec((T,), {}, rack_id="r2")}
    figures = measure(GroupSpec(before), image, Assignment({"a": {T: [0, -1, -5, 7]}}))
    assert (figures.units, figures.rack_misses) == (4, 1)


def test_a_group_of_nobody_has_figures():
    assert measure(GroupSpec({}), TopicImage.of(()), Assignment({})) == AssignmentMetrics(0, 0, 0, 0, 0, 0, 0, 0)


def all_recorded(kind: str) -> list[dict]:
    file = ROOT / "tests" / "data" / "vectors" / f"{kind}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def recorded(kind: str) -> dict:
    return all_recorded(kind)[0]


def test_all_assignors_of_the_type_are_compared_round_by_round():
    case = recorded("uniform")
    rows = compare_case(case)
    assert {row.assignor for row in rows} == {"uniform", "range"}
    rounds = [row for row in rows if row.assignor == "uniform"]
    assert [row.round for row in rounds] == [*map(str, range(1, len(rounds))), "all"]
    assert rounds[-1].moved == sum(row.moved for row in rounds[:-1])
    assert all(row.imbalance <= 1 for row in rounds)


@pytest.mark.parametrize(("kind", "names"), [
    ("streams-sticky", {"sticky", "highly_available"}),
    ("client-range", {"range", "roundrobin", "sticky", "cooperative-sticky"}),
    ("connect-eager", {"default", "compatible", "sessioned"}),
])  # fmt: skip
def test_other_types_of_group_compare_too(kind, names):
    assert {row.assignor for row in compare_case(recorded(kind))} == names


def test_an_assignor_that_fails_is_shown_with_its_error():
    case = next(case for case in all_recorded("simple") if any("error" in step for step in case["expected"]["steps"]))
    assert any("NoSuchElementException" in row.error for row in compare_case(case, assignors=["simple"]))


def test_what_assigns_nothing_cannot_be_compared():
    with pytest.raises(InputError, match="nothing that could be compared"):
        compare_case(recorded("hash-order"))
    with pytest.raises(InputError, match="no assignor 'round'"):
        compare_case(recorded("uniform"), assignors=["round"])
