"""How many of 1,000 changes of one target record in real logs the audit notices."""

import random
from collections import Counter
from collections.abc import Iterator

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.audit.rows import Verdict
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.audit.mutate import MUTATIONS, TARGETS, mutated
from tests.core.stored import next_auditor
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.shared_data import CORPUS

LOGS = ("scenarios", "upgrade", "misc", "churn/full")
COUNT = 1_000
WRONG = (Verdict.DIVERGENT, Verdict.INVALID)


def candidates() -> list[tuple[str, tuple[int, str], int]]:
    """Log, group and index of each record with a target of a group, or with a generation's assignments."""
    found = []
    for name in LOGS:
        for group, records in corpus_log(name).groups.items():
            for index, record in enumerate(records):
                if record.value is not None and record.type in (*TARGETS, RecordType.GROUP_METADATA):
                    found.append((name, group, index))
    return found


def test_changed_targets_are_noticed(capsys) -> None:
    rng = random.Random(848)
    chosen: dict[tuple[str, tuple[int, str]], list[int]] = {}
    for name, group, index in rng.sample(candidates(), 3 * COUNT):
        chosen.setdefault((name, group), []).append(index)
    seen: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    verdicts: Counter[Verdict] = Counter()
    for (name, group), indexes in chosen.items():
        log, topics = corpus_log(name), topic_history(CORPUS / name / "logs")
        for kind, verdict in outcomes(log.groups[group], set(indexes), topics, log.coverage, rng):
            if seen.total() == COUNT:
                break
            seen[kind] += 1
            caught[kind] += verdict is not Verdict.IDENTICAL
            verdicts[verdict] += 1
    with capsys.disabled():
        print(f"\ncaught {caught.total()} of {seen.total()}: {dict(caught)} of {dict(seen)}; {dict(verdicts)}")
    assert seen.total() == COUNT
    assert caught.total() >= 0.99 * COUNT
    assert sum(verdicts[each] for each in WRONG) >= 0.9 * COUNT


def outcomes(
    records: list[CoordinatorRecord], indexes: set[int], topics: TopicHistory, coverage: Coverage, rng: random.Random
) -> Iterator[tuple[str, Verdict]]:
    """Each mutation with the first verdict after it; the audit forks where a record is to be changed."""
    auditor = TargetAuditor(Group(records[0].group_id, from_start=True), None, topics, coverage=coverage)
    for index, record in enumerate(records):
        if index in indexes:
            kind = rng.choice(list(MUTATIONS))
            changed = mutated(record, MUTATIONS[kind], targets_of(auditor), rng)
            if changed is not None:
                fork = next_auditor(auditor, topics, coverage)
                rows = (row for each in (changed, *records[index + 1 :]) for row in fork.feed(each))
                verdict = next((row.verdict for row in rows), None)
                if verdict is not None:
                    yield kind, Verdict(verdict)
        auditor.feed(record)


def targets_of(auditor: TargetAuditor) -> dict[str, dict[str, list[int]]]:
    view = auditor.memory.view
    if view is None:
        return {}
    return {
        member: {name: list(numbers) for name, numbers in (work.active if isinstance(work, Tasks) else work).items()}
        for member, work in view.view.targets.items()
    }
