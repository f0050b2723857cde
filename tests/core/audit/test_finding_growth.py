"""When two rows are one finding at two times, and when it has grown."""

from coordinator_core.audit.finding_growth import KnownFinding

STORM = KnownFinding("g", "rebalance_storm", "m1", "warning", 12, 1_000, 5_000, is_open=True)


def test_one_finding_has_the_same_kind_and_subject_and_shares_time() -> None:
    assert STORM.is_same(STORM._replace(since_ms=5_000, until_ms=9_000))
    assert not STORM.is_same(STORM._replace(since_ms=5_001, until_ms=9_000))
    assert not STORM.is_same(STORM._replace(subject="m2"))
    assert not STORM.is_same(STORM._replace(group_id=None))


def test_it_has_grown_by_value_time_or_level_and_not_by_its_end() -> None:
    assert STORM._replace(value=13).has_grown(STORM)
    assert STORM._replace(until_ms=5_001).has_grown(STORM)
    assert STORM._replace(level="alarm").has_grown(STORM)
    assert not STORM._replace(is_open=False).has_grown(STORM)
    assert not STORM._replace(level="notice", value=11).has_grown(STORM)
