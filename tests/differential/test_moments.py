"""A compacted log, asked for earlier moments: nothing wrong is certain, and what the rule proves is not unknown."""

import random
from pathlib import Path

import pytest

from coordinator_core.groups.describe import CERTAIN_GROUP
from jobs.queries.from_logs.answers import replay
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from tests.core.certainties import Rule, needlessly_unknown, wrong_certainties
from tests.differential.moments import Comparison, keyed_records
from tests.jobs.queries.same_answers import described
from tests.shared_data import CORPUS

MOMENTS = 60


def moments(rule: Rule, ends: dict[int, int], chance: random.Random) -> list[dict[int, int]]:
    """End offsets of every partition, within what both logs have."""
    return [{partition: chance.randint(1, ends[partition]) for partition in rule.partitions} for _ in range(MOMENTS)]


@pytest.mark.parametrize(
    ("full", "compacted"),
    [
        ("churn/full", "churn/after_compaction"),
        ("scenarios", "scenarios/compacted_keep"),
        ("scenarios", "scenarios/compacted_drop"),
    ],
)
def test_a_compacted_log_at_earlier_moments(full: str, compacted: str) -> None:
    rule, whole = (Rule(keyed_records(CORPUS / name / "decoded.jsonl.gz")) for name in (compacted, full))
    ends = {partition: whole.end(partition) for partition in whole.partitions}
    logs = {name: _group_logs(CORPUS / name / "logs") for name in (full, compacted)}
    found = Comparison()
    for at in moments(rule, ends, random.Random(15)):
        said, true = (replay(logs[name], AsOf(offsets=at), pytest.fail) for name in (compacted, full))
        mine, theirs = described(said), described(true)
        found.answers += len(theirs)
        found.certain += sum(mine[name]["certainty"] == CERTAIN_GROUP for name in theirs.keys() & mine.keys())
        lists_all = all(gaps.lists_all for gaps in said.gaps().values())
        there = (of for partition in rule.partitions for of in rule.there(partition, at[partition]))
        found.add(wrong_certainties(mine, theirs, lists_all=lists_all), needlessly_unknown(mine, there), at)
    print(
        f"\n{compacted}: {found.answers} answers, {found.certain} certain, wrong {dict(found.wrong)}, "
        f"needlessly unknown {dict(found.needless)}"
    )
    assert found.examples == []
    assert found.answers > 1000


def _group_logs(folder: Path) -> list:
    return find_logs([folder], topics=["__consumer_offsets"])
