"""No rule fires on what real coordinators wrote, complete or compacted, in whatever pieces it is read."""

import random

import pytest

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.groups.group import Group
from tests.core.stored import next_rules
from tests.core.whole_log import judge
from tests.differential.logs_by_group import (
    EVERYTHING,
    LOGS,
    MORE_TRACE_FILES,
    TRACE_FILES,
    TRULY_BROKEN,
    corpus_log,
    traces,
)
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS


@pytest.mark.parametrize("name", LOGS)
def test_no_rule_fires_on_a_recorded_log(name: str) -> None:
    log, known = corpus_log(name), topic_history(CORPUS / name / "logs")
    for topics in (known, None):
        for (_, group_id), records in log.groups.items():
            group = Group(group_id, from_start=True)
            fired = [(each.rule, each.at.offset) for each in judge(records, group, log.coverage, topics=topics)]
            assert fired == TRULY_BROKEN.get((name, group_id), [])


@pytest.mark.parametrize("name", LOGS)
def test_no_rule_fires_where_nobody_knows_what_is_missing(name: str) -> None:
    for (_, group_id), records in corpus_log(name).groups.items():
        fired = [(each.rule, each.at.offset) for each in judge(records, Group(group_id))]
        assert fired == TRULY_BROKEN.get((name, group_id), [])


@pytest.mark.parametrize("name", [*TRACE_FILES, *MORE_TRACE_FILES])
def test_no_rule_fires_on_a_trace(name: str) -> None:
    for seed, _, known, records in traces(name):
        for topics in (known, None):
            assert (seed, list(judge(records, Group("g1", from_start=True), EVERYTHING, topics=topics))) == (seed, [])


@pytest.mark.parametrize("name", ["consumer", "migration"])
def test_a_damaged_log_gives_the_same_violations_in_pieces(name: str) -> None:
    """One record in twenty is left out, so that rules do fire; the state goes through JSON at every fifth record."""
    rng, found = random.Random(name), 0
    for _, _, _, records in traces(name):
        damaged = [record for record in records if rng.random() > 0.05]
        whole = list(judge(damaged, Group("g1", from_start=True), EVERYTHING))
        rules = RuleFold(Group("g1", from_start=True), None, EVERYTHING)
        pieces = []
        for record in damaged:
            if rng.random() < 0.2:
                rules = next_rules(rules, EVERYTHING)
            pieces += rules.feed(record)
        assert pieces + rules.open_rows() == whole
        found += len(whole)
    assert found > 100
