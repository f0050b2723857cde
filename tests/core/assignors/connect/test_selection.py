"""Who computes a Connect group's assignment, and which assignments it refuses (Connect on KIP-848)."""

import pytest

from coordinator_core.assignors.connect.selection import (
    VersionRange,
    WorkBreach,
    WorkInvariant,
    breaches,
    select_assignor,
    select_worker,
)
from coordinator_core.errors import AssignorError

DOCUMENT = {"A": VersionRange(1, 5), "B": VersionRange(3, 4), "C": VersionRange(2, 4)}


def test_the_worker_whose_range_covers_all_others_is_selected() -> None:
    assert select_worker(DOCUMENT) == "A"
    assert select_worker(dict(reversed(DOCUMENT.items()))) == "A"


def test_the_worker_that_did_it_before_does_it_again_if_it_can() -> None:
    alike = dict.fromkeys("ABC", VersionRange(0, 2))
    assert select_worker(alike) == "A"
    assert select_worker(alike, former="C") == "C"
    assert select_worker(alike, former="gone") == "A"
    assert select_worker(DOCUMENT, former="B") == "A"


def test_no_worker_that_covers_all_is_fatal() -> None:
    with pytest.raises(AssignorError, match="FATAL: no worker supports all versions in use, 1 to 5"):
        select_worker({"A": VersionRange(1, 4), "B": VersionRange(3, 5)})
    with pytest.raises(AssignorError, match="FATAL: no worker in the group"):
        select_worker({})


def test_the_assignor_is_one_that_all_support_by_their_preference() -> None:
    both = ["sessioned", "compatible", "default"]
    assert select_assignor({"A": both, "B": both}) == "sessioned"
    assert select_assignor({"A": both, "B": ["default", "compatible"], "C": ["default", "compatible"]}) == "default"
    assert select_assignor({"A": ["compatible", "default"], "B": ["default", "compatible"]}) == "compatible"


@pytest.mark.parametrize("offered", [{}, {"A": []}, {"A": ["default"], "B": ["sessioned"]}])
def test_no_assignor_in_common_is_an_error(offered: dict[str, list[str]]) -> None:
    with pytest.raises(AssignorError, match="UNSUPPORTED_ASSIGNOR"):
        select_assignor(offered)


WORK = ["A", ("A", 0), ("A", 1)]


def test_a_whole_assignment_is_accepted() -> None:
    assert breaches(["w1", "w2"], WORK, {"w1": ["A", ("A", 1)], "w2": [("A", 0)]}) == []


def test_what_nobody_gets_is_named_unless_it_waits_for_its_worker() -> None:
    assert breaches(["w1"], WORK, {"w1": ["A", ("A", 1)]}) == [WorkBreach(WorkInvariant.ALL_ASSIGNED, ("A", 0))]
    assert breaches(["w1"], WORK, {"w1": ["A", ("A", 1)]}, waiting=[("A", 0)]) == []


def test_what_two_get_is_named_with_both() -> None:
    found = breaches(["w1", "w2"], WORK, {"w1": WORK, "w2": ["A"]})
    assert found == [WorkBreach(WorkInvariant.ASSIGNED_ONCE, "A", ("w1", "w2"))]
    assert breaches(["w1"], WORK, {"w1": [*WORK, "A"]}) == [WorkBreach(WorkInvariant.ASSIGNED_ONCE, "A", ("w1", "w1"))]


def test_a_worker_that_is_not_in_the_group_is_named() -> None:
    found = breaches(["w1"], WORK, {"w1": ["A", ("A", 1)], "w9": [("A", 0)]})
    assert found == [WorkBreach(WorkInvariant.WORKERS_EXIST, "w9", ("w9",))]


def test_the_document_s_own_targets() -> None:
    """Its rule 'all are assigned' refuses what its case 'Worker Leaving the Group' installs, but for what waits."""
    everything = ["AC0", "AT1", "AT2", "BC0", "BT1"]
    joined = {"W1": ["AC0", "AT1", "AT2"], "W2": ["BC0", "BT1"]}
    assert breaches(["W1", "W2"], everything, joined) == []
    left = {"W1": ["AC0", "AT1"], "W3": ["AT2"]}
    assert {breach.unit for breach in breaches(["W1", "W3"], everything, left)} == {"BC0", "BT1"}
    assert breaches(["W1", "W3"], everything, left, waiting=["BC0", "BT1"]) == []
