"""Every change of one record of a real log that the protocol forbids makes the right rule fire."""

import random
from collections import Counter
from itertools import islice

import pytest

from coordinator_core.groups.group import Group
from tests.core.audit.rules.mutations import MUTATIONS, Mutation, mutations_of
from tests.core.whole_log import judge
from tests.differential.logs_by_group import Log, corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

PER_GROUP = 4


@pytest.fixture(scope="module")
def scenarios() -> Log:
    return corpus_log("scenarios")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_makes_its_rule_fire(mutation: Mutation, scenarios: Log) -> None:
    rng, fired, tried = random.Random(mutation.name), Counter[str](), 0
    topics = topic_history(CORPUS / "scenarios" / "logs")
    for (_, group_id), records in scenarios.groups.items():
        for log in islice(mutations_of(mutation, records, rng), PER_GROUP):
            group = Group(group_id, from_start=True)
            found = {violation.rule for violation in judge(log, group, scenarios.coverage, topics=topics)}
            assert mutation.explains(found), (group_id, found)
            fired.update(found)
            tried += 1
    assert tried > 0
    print(f"\n{mutation.name}: {tried} of {tried}; fired {dict(fired)}")
