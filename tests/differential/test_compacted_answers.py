"""The recorded logs, cleaned as a broker would have: nothing wrong is certain, and what is proven is not unknown.

Every answer about a moment, and every row about history, is held against that of the log as it was.
"""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import Verdict
from coordinator_core.groups.describe import CERTAIN_GROUP
from coordinator_core.groups.owners import owners, possible_owners
from coordinator_core.wire.record_codec import decode_key
from jobs import settings
from jobs.queries.from_logs.answers import ReplayedGroups, replay
from jobs.queries.from_logs.history import group_histories
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from tests.core.certainties import KeyedRecord, Rule, needlessly_unknown, wrong_certainties
from tests.core.recorded_logs import RecordedOffset, read_partition, write_cleaned
from tests.differential.histories import key_of
from tests.differential.moments import Comparison
from tests.jobs.queries.same_answers import described
from tests.shared_data import CORPUS

WHOLE = ("scenarios", "churn/full", "upgrade", "misc", "wild")
CLEANINGS = ((1.0, 0.0), (1.0, 1.0), (0.7, 0.5))
"""Which part of each log partition was cleaned, and which part of that lost its tombstones."""
MOMENTS = 12


@pytest.fixture(scope="module", params=WHOLE)
def whole(request: pytest.FixtureRequest) -> Path:
    return CORPUS / request.param / "logs"


@pytest.fixture(params=CLEANINGS, ids=str)
def cleaned(request: pytest.FixtureRequest, whole: Path, tmp_path: Path) -> Path:
    """The logs of groups cleaned, the others as they are."""
    write_cleaned(whole, tmp_path, *request.param, random.Random(15))
    for folder in whole.iterdir():
        if not folder.name.startswith("__consumer_offsets-"):
            shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path


@pytest.fixture(scope="module")
def truth(whole: Path) -> list[tuple[dict[int, int], ReplayedGroups]]:
    """The log as it was, at moments; the last one is its end."""
    chance, logs = random.Random(15), find_logs([whole])
    ends = {number: log[-1].offset + 1 for number, log in partitions(whole)}
    at = [{number: chance.randint(1, end) for number, end in ends.items()} for _ in range(MOMENTS)]
    return [(each, replay(logs, AsOf(offsets=each), pytest.fail)) for each in (*at, ends)]


def partitions(folder: Path) -> Iterator[tuple[int, list[RecordedOffset]]]:
    for each in sorted(folder.glob("__consumer_offsets-*")):
        if log := read_partition(each):
            yield int(each.name.rpartition("-")[2]), log


def keyed_records(folder: Path) -> Iterator[KeyedRecord]:
    for number, log in partitions(folder):
        for entry in log:
            if entry.key is None:
                yield KeyedRecord(number, entry.offset)
            else:
                record_type, key = decode_key(entry.key)
                yield KeyedRecord(number, entry.offset, record_type, key, entry.is_tombstone, entry.is_transactional)


def test_at_moments(cleaned: Path, truth: list[tuple[dict[int, int], ReplayedGroups]]) -> None:
    rule, logs, found = Rule(keyed_records(cleaned)), find_logs([cleaned]), Comparison()
    owned: Counter[str] = Counter()
    for at, true in truth:
        said = replay(logs, AsOf(offsets=at), pytest.fail)
        mine, theirs = described(said), described(true)
        found.answers += len(theirs)
        found.certain += sum(mine[name]["certainty"] == CERTAIN_GROUP for name in theirs.keys() & mine.keys())
        lists_all = all(gaps.lists_all for gaps in said.gaps().values())
        there = (of for partition in rule.partitions for of in rule.there(partition, at[partition]))
        wrong = [*wrong_certainties(mine, theirs, lists_all=lists_all), *wrong_owners(said, true, lists_all, owned)]
        found.add(wrong, needlessly_unknown(mine, there), at)
    print(
        f"\n{found.answers} answers, {found.certain} certain, wrong {dict(found.wrong)}, "
        f"needlessly unknown {dict(found.needless)}; owners {dict(owned)}"
    )
    assert found.examples == []
    assert found.certain > 0


def wrong_owners(
    said: ReplayedGroups, true: ReplayedGroups, lists_all: bool, count: Counter[str]
) -> Iterator[tuple[str, str]]:
    """Owners that are stated and were none, and those left out though nothing says that they may be missing."""
    image, possible = true.image(), Counter[tuple[str, str | None]]()
    for topic in () if image is None else sorted(image.by_name):
        mine, theirs = (
            {(each.group_id, each.topic, each.partition, each.member_id, each.role): each for each in found}
            for found in (owners([then.group for then in each.groups()], image, topic) for each in (said, true))
        )
        possible.update(
            (each.group_id, each.member_id) for each in possible_owners(list(said.groups()), said.image(), topic)
        )
        count["stated"] += len(mine)
        count["true"] += len(theirs)
        for key, each in mine.items():
            true_one = theirs.get(key)
            if true_one is None or any(value not in (None, true_one[index]) for index, value in enumerate(each)):
                yield "owner", f"{each}, in truth {true_one}"
        for key, each in theirs.items() if lists_all else ():
            if key not in mine and not possible.keys() & {(each.group_id, each.member_id), (each.group_id, None)}:
                yield "owner left out", str(each)


def histories(folder: Path) -> dict[str, GroupHistory]:
    audit = settings.load().audit
    return {each.group_id: each for each in group_histories(find_logs([folder]), pytest.fail, audit=audit)}


@pytest.fixture(scope="module")
def true_histories(whole: Path) -> dict[str, GroupHistory]:
    return histories(whole)


NOT_OF_THE_GROUPS_RECORDS = ("hint", "causes")
"""They rest on commits too, of which older ones are compacted away."""


def test_history(cleaned: Path, true_histories: dict[str, GroupHistory]) -> None:
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    for group_id, said in histories(cleaned).items():
        true = true_histories[group_id]
        rows = (*true.epochs, *true.rebalances, *true.memberships, *true.assignments, *true.initializations)
        known = {key_of(row): row for row in rows}
        for row in (*said.epochs, *said.rebalances, *said.memberships, *said.assignments, *said.initializations):
            name = type(row).__name__
            if not row.history_complete:
                tally[f"{name} not complete"] += 1
                continue
            tally[f"{name} complete"] += 1
            one = known.get(key_of(row))
            if one is None:
                wrong.append(f"{group_id}: {row}")
            else:
                wrong += [
                    f"{group_id} {key_of(row)} {part}: {getattr(row, part)}, in truth {getattr(one, part)}"
                    for part in row._fields
                    if part not in NOT_OF_THE_GROUPS_RECORDS and getattr(row, part) != getattr(one, part)
                ]
        wrong += wrong_verdicts(said, true, tally)
        broken = {(each.rule, each.at, each.member_id) for each in true.violations}
        wrong += [f"{each}" for each in said.violations if (each.rule, each.at, each.member_id) not in broken]
        tally["violations"] += len(said.violations)
    print("\n" + "\n".join(f"{name}: {count}" for name, count in sorted(tally.items())))
    assert wrong == []


def wrong_verdicts(said: GroupHistory, true: GroupHistory, tally: Counter[str]) -> Iterator[str]:
    """Verdicts that the whole log does not give."""
    known = {each.at: each for each in true.targets}
    for row in said.targets:
        tally[f"verdict {row.verdict}"] += 1
        if row.verdict != Verdict.UNKNOWN and (row.at not in known or known[row.at].verdict != row.verdict):
            yield f"{row}, in truth {known.get(row.at)}"
