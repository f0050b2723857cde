"""The result of a comparison in a sentence: what is beyond the error of the method, and what is not."""

from coordinator_core.audit.whatif.replay import Comparison, WhatIfOutcome
from coordinator_core.audit.whatif.share import DeliveryComparison, GivenUpRecords
from jobs.cli.whatif import SAME, result, result_of_limit

ACTUAL = WhatIfOutcome(10, 40, 50, 1.5, 3, 90_000)
REPEATED = ACTUAL._replace(moved=44)


def test_no_difference_is_said() -> None:
    assert result(Comparison(ACTUAL, REPEATED, REPEATED)) == SAME


def test_only_what_is_beyond_the_error_of_the_method_counts() -> None:
    supposed = REPEATED._replace(rebalances=3, moved=41, idle_ms=5_000)
    assert result(Comparison(ACTUAL, REPEATED, supposed)) == (
        "With the change: 3 rebalances instead of 10, 5.0 s without an owner instead of 1 min 30 s. "
        "Not beyond the error of the method: 41 partitions or tasks moved instead of 44."
    )
    near = REPEATED._replace(moved=41)
    assert result(Comparison(ACTUAL, REPEATED, near)) == (
        "No difference is larger than the error of the method: 41 partitions or tasks moved instead of 44."
    )


def test_what_is_not_known_is_not_compared() -> None:
    unknown = [each._replace(idle_ms=None) for each in (ACTUAL, REPEATED, REPEATED._replace(moved=10))]
    assert result(Comparison(*unknown)) == "With the change: 10 partitions or tasks moved instead of 44."


def test_the_records_that_another_limit_gives_up() -> None:
    compared = DeliveryComparison(GivenUpRecords(3, 0, 0), GivenUpRecords(5, 2, 1), is_whole=True)
    assert result_of_limit(compared, 2) == (
        "With a limit of 2 the group would have given up 5 records instead of 3; 2 of them a later delivery did "
        "settle, or may still settle; how another delivery of 1 more would have ended is not known."
    )
