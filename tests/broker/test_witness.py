"""Real brokers of five releases with their logs at INFO: of each departure it is said right how it came about."""

from pathlib import Path

import pytest

from tests.broker.witness import record
from tests.broker.witness.failover import record_failover
from tests.broker.witness.tally import judged, tally
from tests.broker.witness.templates import RELEASES

pytestmark = pytest.mark.long


@pytest.mark.parametrize("release", RELEASES)
def test_each_departure_is_told_right(release: str, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    done = record(home, out, release, until_expiry=False)
    rows = judged(out)
    assert len(rows) == len(done)
    assert tally(rows) == {"right": len(done), "wrong": 0, "unknown": 0}, rows
    assert tally(judged(out, with_broker_log=False))["right"] == 0


@pytest.mark.parametrize("release", ["3.9.1", "4.3.1", "4.4.0"])
def test_each_departure_around_a_failover_is_told_right(release: str, tmp_path: Path) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    done = record_failover(home, out, release)
    assert tally(judged(out)) == {"right": len(done), "wrong": 0, "unknown": 0}
