"""When log partitions had no coordinator."""

from operator import itemgetter

import pytest

from coordinator_core.cluster.broker_history import NO_LEADER, BrokerHistory
from coordinator_core.cluster.coordinators_away import CoordinatorAway, coordinators_away
from coordinator_core.records import GROUP_LOG, LogPosition

PLACE = GROUP_LOG, 0


def at(offset: int) -> LogPosition:
    return LogPosition(0, offset, offset * 1_000)


def history(*, leader: int = 1) -> BrokerHistory:
    """Brokers 1 and 2 are there from the beginning, and one of them leads the partition."""
    brokers = BrokerHistory()
    for broker in (1, 2):
        brokers.note_registration(broker, at(broker), fenced=True, tells_shutdown=True)
        brokers.note_fenced(broker, at(broker + 2), fenced=False)
    brokers.note_leader(*PLACE, leader, 0, at(5))
    return brokers


def test_a_partition_without_a_leader_has_no_coordinator() -> None:
    brokers = history()
    brokers.note_shutdown(1, at(10))
    brokers.note_leader(*PLACE, NO_LEADER, None, at(11))
    brokers.note_fenced(1, at(12), fenced=True)
    brokers.note_registration(1, at(20), fenced=True, tells_shutdown=True)
    brokers.note_fenced(1, at(21), fenced=False)
    assert coordinators_away(brokers) == {
        PLACE: (CoordinatorAway(*PLACE, 1, at(11), None, is_planned=True, fenced=at(12), led=0),)
    }
    brokers.note_leader(*PLACE, 1, None, at(22))
    (away,) = coordinators_away(brokers)[PLACE]
    assert (away.until, away.until_ms) == (at(22), 22_000)
    assert away.overlaps(22_000, 30_000)
    assert not away.overlaps(22_001, 30_000)


def test_leader_epochs_tell_on_which_side_of_an_absence_a_record_lies_and_clocks_where_there_are_none() -> None:
    brokers = history()
    brokers.note_leader(*PLACE, NO_LEADER, None, at(11))
    brokers.note_leader(*PLACE, 1, None, at(22))
    (away,) = coordinators_away(brokers)[PLACE]
    assert away.led == 0
    for last_ms in (10_999, 11_001):
        assert [away.overlaps(0, last_ms, epoch) for epoch in (-1, 0, 2)] == [last_ms == 11_001, False, True]
    assert not away.overlaps(22_001, 30_000, 2), "when a member was last seen has no epoch"


def test_a_leader_that_is_fenced_is_away() -> None:
    """It did not announce it: its records would have said so."""
    brokers = history()
    brokers.note_fenced(1, at(10), fenced=True)
    brokers.note_fenced(1, at(14), fenced=False)
    expected = CoordinatorAway(*PLACE, 1, at(10), at(14), is_planned=False, fenced=at(10))
    assert coordinators_away(brokers) == {PLACE: (expected,)}


def test_where_another_broker_takes_over_from_one_that_is_shut_down_no_coordinator_is_away() -> None:
    brokers = history()
    brokers.note_shutdown(1, at(9))
    brokers.note_leader(*PLACE, 2, None, at(10))
    brokers.note_fenced(1, at(11), fenced=True)
    brokers.note_fenced(1, at(20), fenced=False)
    assert coordinators_away(brokers) == {}


@pytest.mark.parametrize("fenced", [10, 12], ids=["before its partitions are led anew", "behind that"])
def test_a_coordinator_that_failed_was_away_until_another_broker_took_over(fenced: int) -> None:
    """It is fenced, and its partitions get new leaders, with the same write: since when it failed is not known."""
    brokers = history()
    told = [(fenced, lambda place: brokers.note_fenced(1, place, fenced=True))]
    told += [(11, lambda place: brokers.note_leader(*PLACE, 2, None, place))]
    for offset, tell in sorted(told, key=itemgetter(0)):
        tell(LogPosition(0, offset, 10_000))
    (failed,) = coordinators_away(brokers)[PLACE]
    assert (failed.broker, failed.until_ms, failed.is_planned, failed.is_taken_over) == (1, 10_000, False, True)
    assert failed.fenced == LogPosition(0, fenced, 10_000)


def test_a_partition_that_never_had_a_leader_is_not_missed() -> None:
    assert coordinators_away(history(leader=NO_LEADER)) == {}
