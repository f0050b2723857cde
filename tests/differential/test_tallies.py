"""What the audit says of every recorded log: no false alarm, and each verdict that is unknown says what is missing."""

from collections import Counter
from itertools import chain

import pytest

from tests.differential.logs_by_group import TRULY_BROKEN
from tests.differential.tallies import EVERY_LOG, tallies

STREAMS_TOPOLOGY = "the topology, which only the leader has; no invariant is broken"
NOT_IN_THE_LOG = {"scenarios": Counter({f"E-classic: {STREAMS_TOPOLOGY}": 4})}
"""What makes a verdict unknown where no record is missing: what clients of classic groups keep to themselves."""
COMPACTED = ("scenarios/compacted_keep", "scenarios/compacted_drop", "churn/after_compaction")
KNOWN_STATES = {
    "CLASSIC": {"EMPTY", "STABLE"},
    "CONSUMER": {"EMPTY", "ASSIGNING", "RECONCILING", "STABLE"},
    "SHARE": {"EMPTY", "ASSIGNING", "RECONCILING", "STABLE"},
    "STREAMS": {"EMPTY", "ASSIGNING", "RECONCILING", "STABLE", "NOT_READY"},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name.startswith("churn") else []) for name in EVERY_LOG]
)
def test_no_false_alarm_on_a_recorded_log(name: str) -> None:
    counted = tallies(name)
    broken = {
        f"{rule} in {group_id}": times
        for (log, group_id), found in TRULY_BROKEN.items()
        if log == name
        for rule, times in Counter(rule for rule, _ in found).items()
    }
    assert counted.rules == broken
    assert {verdict.split()[-1] for verdict in counted.verdicts} <= {"identical", "unknown"}
    if name in COMPACTED:
        assert all("compacted or cut" in each for each in counted.missing)
        return
    assert counted.missing == NOT_IN_THE_LOG.get(name, Counter())
    states = {tuple(each.split()) for each in counted.states}
    assert states <= {*chain.from_iterable(((of, each) for each in known) for of, known in KNOWN_STATES.items())}
    assert not any(outcome.endswith("unknown") for outcome in counted.outcomes)
