"""The zone of brokers' application logs, from lines whose record is known."""

from coordinator_core.broker_log.all_files import with_zones
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.lines import events

HOUR = 3_600_000
NOON = 1_795_435_200_000
"""2026-11-23 12:00 UTC"""


def bump(broker: int, epoch: int, local: str) -> BrokerEvent:
    text = f"[{local}] INFO [GroupCoordinator id={broker} topic=__consumer_offsets partition=3] "
    (found,) = events(f"{text}[GroupId g] Bumped group epoch to {epoch}.", f"server-{broker}.log", epoch)
    return found


def times(found: list[BrokerEvent]) -> list[int | None]:
    return [None if each.timestamp_ms is None else each.timestamp_ms - NOON for each in found]


def test_one_line_with_a_record_tells_the_zone_of_all() -> None:
    lines = [bump(1, 5, "2026-11-23 14:00:00,010"), bump(1, 9, "2026-11-23 15:00:00,000")]
    assert times(with_zones(lines, {("g", 5): [NOON]})) == [10, HOUR]


def test_without_a_record_no_time_is_known() -> None:
    lines = [bump(1, 5, "2026-11-23 14:00:00,010")]
    assert times(with_zones(lines, {})) == [None]
    assert times(with_zones(lines, {("g", 5): [NOON, NOON + HOUR]})) == [None]


def test_a_broker_without_a_record_has_the_zone_of_the_others_if_they_agree() -> None:
    lines = [bump(1, 5, "2026-11-23 14:00:00,000"), bump(2, 9, "2026-11-23 15:00:00,000")]
    assert times(with_zones(lines, {("g", 5): [NOON]})) == [0, HOUR]
    lines += [bump(3, 6, "2026-11-23 12:00:00,000"), bump(4, 7, "2026-11-23 15:00:00,000")]
    assert times(with_zones(lines, {("g", 5): [NOON], ("g", 6): [NOON]})) == [0, None, 0, None]


def test_where_summer_time_ends_a_time_between_is_not_known() -> None:
    lines = [bump(1, each, f"2026-11-23 {14 + each}:00:00,000") for each in range(4)]
    written = {("g", 0): [NOON], ("g", 3): [NOON + 4 * HOUR]}
    assert times(with_zones(lines, written)) == [0, None, None, 4 * HOUR]


def test_a_record_that_is_far_from_any_zone_is_another_one() -> None:
    lines = [bump(1, 5, "2026-11-23 14:00:00,000")]
    assert times(with_zones(lines, {("g", 5): [NOON + 7 * 60_000]})) == [None]
