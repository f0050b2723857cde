"""How many partitions a log has, as the keys that lie in them prove."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.groups.log_partition import counted, log_partition_of, placing_key, proven_count


def placed(names: list[str], count: int) -> list[tuple[str, int]]:
    return [(name, log_partition_of(name, count)) for name in names]


@given(st.lists(st.text()), st.integers(1, 200))
def test_what_is_proven_is_true(names: list[str], count: int) -> None:
    keys = placed(names, count)
    at_least = max((partition for _, partition in keys), default=0) + 1
    assert proven_count(keys, at_least) in (None, count)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 50, 97, 100])
def test_the_groups_of_a_cluster_prove_the_count_without_the_higher_half_of_the_partitions(count: int) -> None:
    half = count // 2 + 1
    clusters = ([f"team-{number}-{cluster}" for number in range(40)] for cluster in range(50))
    there = ([key for key in placed(names, count) if key[1] < half] for names in clusters)
    proven = Counter(proven_count(keys, half) for keys in there)
    assert proven[count] >= 45
    assert proven.keys() <= {count, None}


@pytest.mark.parametrize(
    ("keys", "at_least", "proven"),
    [
        ([], 1, None),
        ([("a", 97)], 98, None),  # its hash is 97: any count above it fits
        ([("d", 0)], 51, 100),  # its hash is 100
        ([("d", 0)], 50, None),  # 50 partitions fit, too
        ([("d", 0), ("b", 48)], 49, 50),  # 98 is 48 modulo 50: the differences are 100 and 50
        ([("d", 0), ("b", 0), ("a", 0)], 1, 1),
        ([("team-8", 1)], 2, None),  # its hash less 1 is the prime 877714231, and no log has so many partitions
        ([("d", 0), ("b", 1)], 50, None),  # 100 and 97 have no factor in common: none of both lies where it belongs
    ],
)
def test_only_a_count_that_alone_fits_is_proven(keys: list[tuple[str, int]], at_least: int, proven: int | None) -> None:
    assert proven_count(keys, at_least) == proven


@pytest.mark.parametrize(
    ("named", "keys", "names_all", "count"),
    [
        ({"t": 4}, [("d", 0)], False, 4),
        ({"t": 4}, [("d", 0), ("b", 48)], True, 4),
        ({}, [("d", 0), ("b", 48)], False, 50),
        ({}, [("d", 0)], False, None),
        ({}, [("d", 0)], True, 49),
        ({"other": 9}, [("d", 0)], False, None),
    ],
)
def test_a_log_of_which_nothing_is_proven_has_no_more_partitions_where_a_whole_metadata_log_does_not_name_it(
    named: dict[str, int], keys: list[tuple[str, int]], names_all: bool, count: int | None
) -> None:
    """Brokers name it there: such a metadata log was made."""
    assert counted(named, {"t": keys}, {"t": 49}, lambda: names_all).get("t") == count


def test_a_share_partition_is_placed_by_itself_and_a_commit_by_its_group() -> None:
    assert placing_key({"groupId": "g", "topicId": "t", "partition": 3}) == "g:t:3"
    assert placing_key({"group": "g", "topic": "t", "partition": 3}) == "g"
    assert placing_key({"groupId": "g", "memberId": "m"}) == "g"
