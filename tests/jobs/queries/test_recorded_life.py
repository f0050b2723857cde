"""A random life on a real broker: what is said of owners, commits, causes and times is what its clients knew."""

from collections import Counter

import pytest

from tests.broker.wild.witnesses import against_clients
from tests.core.real_logs import clients, life


@pytest.mark.long
def test_the_clients_of_a_recorded_life_are_not_contradicted() -> None:
    tally: Counter[str] = Counter()
    assert list(against_clients(life().parent, clients(), tally, moments=20)) == []
    assert tally["owners"] > 500
    assert tally["commits"] > 1_000
    assert tally["commits while revoking"] > 50
    assert tally["joins"] > 40
    assert tally["beginnings of classic rebalances"] > 30
    assert tally["commits, owner unknown"] == tally["commits while revoking, owner unknown"] == 0
