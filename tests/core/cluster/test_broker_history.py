"""Brokers through time: hand-built records of the metadata log."""

import pytest

from coordinator_core.cluster.broker_history import NO_LEADER
from coordinator_core.records import GROUP_LOG, MetadataRecordType
from tests.core.cluster.test_metadata_log import A, B, Log, change, partition, topic

FENCED, UNFENCED = 1, -1


def registered(broker, *, fenced=True, **fields):
    return MetadataRecordType.REGISTER_BROKER, {"brokerId": broker, "rack": None, "fenced": fenced, **fields}


def changed(broker, **fields):
    return MetadataRecordType.BROKER_REGISTRATION_CHANGE, {"brokerId": broker, "brokerEpoch": 1, **fields}


def absences(log):
    return [
        (each.broker, each.since and each.since.offset, each.until and each.until.offset, each.is_planned)
        for each in log.history().brokers.absences()
    ]


def test_a_broker_is_away_from_when_it_is_fenced_until_it_is_not():
    log = Log().batch(registered(1, inControlledShutdown=False)).batch(changed(1, fenced=UNFENCED))
    log.batch(changed(1, logDirs=[])).batch(changed(1, fenced=FENCED)).batch(changed(1, fenced=FENCED))
    log.batch(registered(1, inControlledShutdown=False)).batch(changed(1, fenced=UNFENCED))
    assert absences(log) == [(1, 3, 6, False)]
    brokers = log.history().brokers
    assert [brokers.away_at(offset) == {1} for offset in range(7)] == [True, False, False, True, True, True, False]
    assert [(each.at.offset, each.is_there) for each in brokers.changes(0, 10**6)] == [(1, True), (3, False), (6, True)]
    assert [each.at.offset for each in brokers.changes(2000, 4000)] == [3]


def test_a_broker_that_says_that_it_shuts_down_is_there_until_it_is_fenced():
    log = Log().batch(registered(1, inControlledShutdown=False)).batch(changed(1, fenced=UNFENCED))
    log.batch(changed(1, inControlledShutdown=1)).batch(changed(1, fenced=FENCED))
    assert absences(log) == [(1, 3, None, True)]
    assert log.history().brokers.absences()[0].shutdown.offset == 2
    assert log.history().brokers.away_at(2) == set()
    log.batch(registered(1, inControlledShutdown=False)).batch(changed(1, fenced=UNFENCED))
    log.batch(changed(1, fenced=FENCED))
    assert absences(log) == [(1, 3, 5, True), (1, 6, None, False)], "what it said in its life before does not count"


def controller(node):
    return MetadataRecordType.REGISTER_CONTROLLER, {"controllerId": node}


def killed_with_its_controller(quiet_ms=30_000):
    """A broker is there, and for long nothing is written behind a no-op, as no controller is there."""
    log = Log().batch(registered(1, inControlledShutdown=False)).batch(changed(1, fenced=UNFENCED))
    log.batch((MetadataRecordType.NO_OP, {}))
    return log.lasts(3_000 + quiet_ms)


def test_a_broker_that_was_killed_with_the_controller_is_away_since_the_log_grew_quiet():
    """It registers again before anybody fenced it; or is fenced by the controller that starts in its process."""
    log = killed_with_its_controller().batch(registered(1)).batch(changed(1, fenced=UNFENCED))
    assert absences(log) == [(1, 2, 5, False)]
    (lost,) = log.history().brokers.absences()
    assert not lost.is_fenced
    log = killed_with_its_controller().batch(controller(1)).batch(changed(1, fenced=FENCED)).batch(registered(1))
    assert absences(log.batch(changed(1, fenced=UNFENCED))) == [(1, 2, 7, False)]


def test_a_quiet_log_says_nothing_of_brokers_that_did_not_go_with_the_controller():
    later = killed_with_its_controller()
    for _ in range(60):
        later.batch((MetadataRecordType.NO_OP, {}))
    for log, since in (
        (killed_with_its_controller(quiet_ms=4_000).batch(registered(1)), 4),  # a new controller was chosen
        (later.batch(registered(1)), 64),  # it went long after
        (killed_with_its_controller().batch(controller(9)).batch(changed(1, fenced=FENCED)), 5),  # in another process
    ):
        assert absences(log) == [(1, since, None, False)]
        assert log.history().brokers.absences()[0].is_fenced


def test_a_broker_that_registers_again_before_it_was_fenced_was_away():
    log = Log().batch(registered(1)).batch(changed(1, fenced=UNFENCED)).batch(registered(1))
    assert absences(log.batch(changed(1, fenced=UNFENCED))) == [(1, 2, 3, None)]


def test_records_before_3_3_do_not_say_whether_a_broker_shut_down():
    log = Log().batch(registered(1)).batch((MetadataRecordType.UNFENCE_BROKER, {"id": 1, "epoch": 0}))
    assert absences(log.batch((MetadataRecordType.FENCE_BROKER, {"id": 1, "epoch": 0}))) == [(1, 2, None, None)]


def test_an_unregistered_broker_is_away():
    log = Log().batch(registered(1, fenced=False))
    log.batch((MetadataRecordType.UNREGISTER_BROKER, {"brokerId": 1, "brokerEpoch": 0}))
    assert absences(log) == [(1, 1, None, None)]


@pytest.mark.parametrize(
    ("fenced", "expected", "away_before"), [(FENCED, (7, 50, None, None), set()), (UNFENCED, (7, None, 50, None), {7})]
)
def test_the_first_record_of_a_cut_log_tells_what_a_broker_was_before(fenced, expected, away_before):
    log = Log(start=50).batch(changed(7, fenced=fenced))
    assert absences(log) == [expected]
    assert log.history().brokers.away_at(49) == away_before


def test_each_change_of_the_leader_has_a_new_epoch():
    log = Log().batch(topic(GROUP_LOG, A), partition(A, 0, 1, 2), topic("t", B), partition(B, 0, 1))
    log.batch(change(A, 0, isr=[1])).batch(change(A, 0, leader=-1)).batch(change(A, 0, leader=2))
    brokers = log.batch(change(A, 0, leader=2)).history().brokers
    assert [(each.leader, each.epoch) for each in brokers.leaders(GROUP_LOG, 0)] == [(1, 0), (-1, 1), (2, 2), (2, 3)]
    assert brokers.partitions(GROUP_LOG) == [0]
    assert brokers.leaders("t", 0) == []
    assert brokers.led_again == {(GROUP_LOG, 0): brokers.leaders(GROUP_LOG, 0)[2].at.timestamp_ms}
    assert log.batch(change(B, 0, leader=-1)).history().brokers.led_again["t", 0] is None
    last = brokers.leaders(GROUP_LOG, 0)[-1].at.timestamp_ms
    assert not brokers.is_led_anew(GROUP_LOG, 0, last - 1, last), "the same broker goes on"


def test_the_leader_at_a_time_is_open_while_the_time_is():
    log = Log().batch(topic(GROUP_LOG, A), partition(A, 0, 1, 2)).batch(change(A, 0, leader=-1))
    brokers = log.batch(change(A, 0, leader=2)).history().brokers
    first, away, last = (each.at.timestamp_ms for each in brokers.leaders(GROUP_LOG, 0))
    times = (first - 1, first, away, last, None)
    assert [brokers.leader_at(GROUP_LOG, 0, time_ms) for time_ms in times] == [None, 1, NO_LEADER, 2, 2]
    assert brokers.leader_at(GROUP_LOG, 0, first, away) is None, "two are possible"
    assert brokers.leader_at(GROUP_LOG, 1, last) is None
