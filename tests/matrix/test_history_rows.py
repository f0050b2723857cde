"""Rows of the history of damaged logs: one that says of itself that nothing is missing is that of the whole log, and
nothing is missing of what the damage does not touch. Seeds choose the logs and the damage.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from coordinator_core.audit.folds.two_logs import by_log, combined
from coordinator_core.history.rows import GroupEpochRow, HistoryRow
from coordinator_core.records import Family, RecordType, group_of_key
from coordinator_core.wire.record_codec import decode_key
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs, ignore
from tests.core.log_cleaner import compact
from tests.core.recorded_logs import RecordedOffset, read_partition, write_partition
from tests.differential.histories import key_of
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batches
from tests.jobs.queries.unreadable_logs import NEWER
from tests.matrix.judge import CLAIMED, says_less
from tests.matrix.other_removals import WORKERS
from tests.matrix.removals import TOPIC
from tests.matrix.scenarios import simulated
from tests.shared_data import CORPUS

Rows = dict[tuple[object, ...], HistoryRow]

SEEDS = range(1, 61)
COPIES = 10
"""How often the logs of a seed are damaged in the long tier."""
DAMAGES = ("lost", "lost", "unreadable", "unreadable", "kept", "dropped", "begins later", "nothing")
ENDS = ("ended", "finished", "left", "until")


def histories(folder: Path) -> dict[str, Rows]:
    """Return the rows of each group by their keys. Workers may have a history in each of two logs."""
    found: dict[str, Rows] = defaultdict(dict)
    for of in chain.from_iterable(map(by_log, combined(group_histories(find_logs([folder]), ignore, None, None)))):
        rows = chain[HistoryRow](of.epochs, of.rebalances, of.memberships, of.assignments, of.initializations)
        found[of.group_id] |= {(*key_of(row), getattr(row, "group_type", "") == "CONNECT"): row for row in rows}
    return found


# --- damage ----------------------------------------------------------------------------------------------------------


class Touched(NamedTuple):
    """The groups of which a damaged partition may lack records, and the first offset that is damaged."""

    groups: frozenset[str | None]
    first: int


def damaged(whole: Path, left: Path, chance: Random) -> list[Touched]:
    """Write logs of which each partition of groups is damaged in up to two ways, or whole."""
    left.mkdir(parents=True)
    touched = []
    for folder in sorted(whole.iterdir()):
        log = read_partition(folder) if folder.name.startswith((TOPIC, WORKERS)) else []
        groups = {entry.offset: _group_of(entry, folder.name) for entry in log if entry.key is not None}
        if any(groups.values()):
            touched.append(_damage(log, groups, left / folder.name, chance))
        else:
            (left / folder.name).symlink_to(folder)
    return touched


def _group_of(entry: RecordedOffset, log: str) -> str | None:
    """Return the group whose state a record tells; of committed offsets none."""
    assert entry.key is not None
    record_type, key = decode_key(entry.key, Family.CONNECT if log.startswith(WORKERS) else Family.GROUP)
    return None if record_type <= RecordType.OFFSET_COMMIT and "topic" in key else group_of_key(key)


def _damage(log: list[RecordedOffset], groups: dict[int, str | None], folder: Path, chance: Random) -> Touched:
    chosen = [entry for entry in log if groups.get(entry.offset)]
    kept, base, lost, unreadable = log, 0, set[tuple[int, int]](), set[int]()
    for damage in chance.choices(DAMAGES, k=2):
        at = chance.choice(chosen)
        if damage == "lost":
            last = at.offset + chance.choice((0, 0, 1, 2, 5))
            lost |= {each.batch for each in log if each.batch[1] >= at.offset and each.batch[0] <= last}
        elif damage == "unreadable" and at.value is not None:
            unreadable.add(at.offset)
        elif damage in ("kept", "dropped"):
            kept = compact(kept, at.offset, at.offset if damage == "dropped" else 0, chance)
        elif damage == "begins later":
            base = max(base, at.batch[0])
    kept = [each for each in kept if each.offset >= base] or log[-1:]
    write_partition(folder, (_unreadable(each) if each.offset in unreadable else each for each in kept))
    _spoil(folder, {first for first, _ in lost}, base)
    there = {each.offset for each in kept if each.batch not in lost}
    gone = [each.offset for each in log if each.offset not in there]
    of = groups.values() if gone else (groups[offset] for offset in unreadable)
    return Touched(frozenset(of), min([log[-1].offset + 1, *gone, *unreadable]))


def _unreadable(entry: RecordedOffset) -> RecordedOffset:
    return entry._replace(value=NEWER + (entry.value or b"")[2:])


def _spoil(folder: Path, lost: set[int], base: int) -> None:
    """Give the batches that begin with these offsets a wrong bit, and name the segment by its first offset."""
    (file,) = folder.iterdir()
    found = [(data[:-1] + bytes([data[-1] ^ 1]) if at in lost else data) for at, data in batches(file.read_bytes())]
    file.write_bytes(b"".join(found))
    file.rename(folder / f"{base:020}.log")


# --- the judge -------------------------------------------------------------------------------------------------------


def faults(said: Rows, true: Rows, first: int | None) -> Iterator[str]:
    """Yield what rows say that is wrong, or needlessly not known, where a group lacks records from ``first`` on."""
    opened = (row.opened.offset for row in true.values() if isinstance(row, GroupEpochRow))
    if len({is_of_workers for *_, is_of_workers in true}) == 2:
        opened = iter(())  # each of the two logs tells something of the other
    known = max((offset for offset in opened if first is not None and offset < first), default=-1)
    for key, one in true.items():
        end = next((getattr(one, name) for name in ENDS if hasattr(one, name)), None)
        if (first is None or (end is not None and end.offset < known)) and said.get(key) != one:
            yield f"needless {said.get(key)} for {one}"
    for key, row in said.items() if first is not None else ():
        if key not in true:
            if row.history_complete:
                yield f"wrong invented: {row}"
            continue
        for name in row._fields if row.history_complete else {*CLAIMED}.intersection(row._fields):
            mine, theirs = getattr(row, name), getattr(true[key], name)
            if name != "hint" and mine != "unknown" and not says_less(_plain(mine), _plain(theirs)):
                yield f"wrong {name}: {mine} for {theirs} in {row}"


def _plain(value: Any) -> Any:
    """Return a value as an answer has it."""
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def judged(whole: Path, place: Path, seed: int | str, copies: int) -> tuple[Counter[str], list[str]]:
    """Return how many cells there are, which are a group and a damage, and what is wrong with them."""
    truth, found = histories(whole), Counter[str]()
    of_whole = (row for rows in truth.values() for row in rows.values())
    wrong = [f"{seed} whole needless {row}" for row in of_whole if not row.history_complete]
    for copy in range(copies):
        touched = damaged(whole, place / str(copy), Random(f"{seed} {copy}"))
        said = histories(place / str(copy))
        for group_id, true in truth.items():
            first = min((each.first for each in touched if group_id in each.groups), default=None)
            of_cell = [f"{seed} {copy} {fault}" for fault in faults(said.get(group_id, {}), true, first)]
            found["untouched" if first is None else "touched"] += 1
            found[
                "wrong" if any("needless:" not in each for each in of_cell) else "needless" if of_cell else "right"
            ] += 1
            wrong += of_cell
    return found, wrong


@pytest.mark.parametrize("copies", [5, pytest.param(30, marks=pytest.mark.long)])
def test_rows_of_the_samples(copies: int, tmp_path: Path) -> None:
    found, wrong = judged(SAMPLE_LOGS, tmp_path, "samples", copies)
    assert wrong == [], found


@pytest.mark.long
@pytest.mark.parametrize("corpus", ["scenarios", "wild", "upgrade", "misc"])
def test_rows_of_recordings(corpus: str, tmp_path: Path) -> None:
    found, wrong = judged(CORPUS / corpus / "logs", tmp_path, corpus, COPIES)
    assert wrong == [], found


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_many_seeds(seed: int, tmp_path: Path) -> None:
    found, wrong = judged(simulated(seed, tmp_path / "simulated"), tmp_path, seed, COPIES)
    assert wrong == [], found
