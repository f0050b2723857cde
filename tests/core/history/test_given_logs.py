"""Which logs of groups were not given: each cluster has one of all groups, some have one of workers, too."""

from collections.abc import Mapping

import pytest

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.records import CONNECT_LOG, GROUP_LOG

GIVEN = frozenset((0,))


@pytest.mark.parametrize(
    ("partitions", "counts", "absent"),
    [
        ({}, {}, {}),
        ({GROUP_LOG: GIVEN}, {GROUP_LOG: 1}, {}),
        ({GROUP_LOG: None}, {GROUP_LOG: 1}, {}),
        ({GROUP_LOG: GIVEN}, {GROUP_LOG: 2}, {GROUP_LOG: [1]}),
        ({CONNECT_LOG: GIVEN}, {CONNECT_LOG: 1}, {GROUP_LOG: []}),
        ({CONNECT_LOG: GIVEN}, {GROUP_LOG: 2, CONNECT_LOG: 1}, {GROUP_LOG: [0, 1]}),
        ({GROUP_LOG: GIVEN}, {GROUP_LOG: 1, CONNECT_LOG: 2}, {CONNECT_LOG: [0, 1]}),
    ],
)
def test_a_log_that_was_not_given_at_all_is_absent_too(
    partitions: Mapping[str, frozenset[int] | None], counts: Mapping[str, int], absent: Mapping[str, list[int]]
) -> None:
    known = Knowledge(GivenLogs(partitions, counts))
    assert known.given.absent() == absent
    assert known.lists_all == (not absent)
    assert len(known.reasons()) == len(absent)


def test_a_group_that_is_there_lacks_no_partition_of_others() -> None:
    known = Knowledge(GivenLogs({GROUP_LOG: GIVEN}, {GROUP_LOG: 4}))
    assert known.reasons("d") == []
    assert known.reasons("g") == ["group 'g' lies in __consumer_offsets-3, which was not given"]
    assert "3 of 4 partitions" in known.reasons()[0]
    (worker,) = Knowledge(GivenLogs({GROUP_LOG: GIVEN}, {GROUP_LOG: 4, CONNECT_LOG: 1})).reasons("d")
    assert "it may lie in __worker_offsets-0" in worker


@pytest.mark.parametrize(
    ("counts", "said"),
    [({GROUP_LOG: 1}, "group 'g' lies in __consumer_offsets-0"), ({}, "__consumer_offsets was not given: nothing is")],
)
def test_a_group_without_a_trace_among_workers_may_lie_in_the_log_of_groups(
    counts: Mapping[str, int], said: str
) -> None:
    (first, *_) = Knowledge(GivenLogs({CONNECT_LOG: GIVEN}, counts)).about_group("g")
    assert first.startswith(said)


@pytest.mark.parametrize(
    ("partitions", "counts", "said"),
    [
        ({GROUP_LOG: GIVEN}, {}, "groups in partition 1 or higher, if there are any, are missing"),
        ({GROUP_LOG: frozenset((0, 1))}, {}, "groups in partition 2 or higher"),
        ({GROUP_LOG: None}, {GROUP_LOG: 2}, "groups of others may be missing"),
        ({GROUP_LOG: None}, {}, "groups of others may be missing"),
        ({GROUP_LOG: GIVEN, CONNECT_LOG: GIVEN}, {GROUP_LOG: 1}, "how many partitions __worker_offsets has:"),
    ],
)
def test_a_list_is_not_whole_where_nothing_tells_how_many_partitions_there_are(
    partitions: Mapping[str, frozenset[int] | None], counts: Mapping[str, int], said: str
) -> None:
    known = Knowledge(GivenLogs(partitions, counts))
    (reason,) = known.reasons()
    assert said in reason
    assert (known.given.absent(), known.lists_all, known.shows_all_since(0)) == ({}, False, False)
    assert (known.about_group("g"), known.reasons("g")) == ([reason], [])


def test_a_group_without_a_trace_may_be_of_workers_whose_log_is_missing() -> None:
    counts = {GROUP_LOG: 1, CONNECT_LOG: 1}
    (reason,) = Knowledge(GivenLogs({GROUP_LOG: GIVEN}, counts)).about_group("g")
    assert "it may lie in __worker_offsets-0" in reason
    assert Knowledge(GivenLogs({GROUP_LOG: GIVEN, CONNECT_LOG: GIVEN}, counts)).about_group("g") == []


def test_what_compaction_took_of_the_log_of_a_group_is_said_where_its_past_is_not_found() -> None:
    gaps = {f"{GROUP_LOG}-{number}": LogGaps(missing=40 + number) for number in range(2)}
    known = Knowledge(GivenLogs({GROUP_LOG: frozenset({0, 1})}, {GROUP_LOG: 2}), gaps)
    number = log_partition_of("g", 2)
    assert known.about_past("g") == [f"the log lacks records before these offsets: {GROUP_LOG}-{number} {41 + number}"]
    whole = Knowledge(known.given, dict.fromkeys(gaps, LogGaps()))
    assert whole.about_past("g") == []


def test_an_answer_about_a_group_names_the_missing_end_of_its_own_partition() -> None:
    number = log_partition_of("g", 2)
    ends = {f"{GROUP_LOG}-{each}": f"partition {each} ends" for each in range(2)}
    given = GivenLogs({GROUP_LOG: frozenset({0, 1})}, {GROUP_LOG: 2})
    assert Knowledge(given, missing_ends=ends).reasons("g") == [f"partition {number} ends"]
    assert Knowledge(given, missing_ends=ends).reasons() == [*ends.values()]
    unknown = GivenLogs({GROUP_LOG: frozenset({0, 1})})
    assert [*ends.values()] == [
        reason for reason in Knowledge(unknown, missing_ends=ends).reasons("g") if "ends" in reason
    ]
