"""Random logs of all types of groups, compacted or cut: nothing wrong is certain, and what is proven is not unknown."""

from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.records import Family
from jobs.queries.from_logs.answers import ReplayedGroups, replay
from jobs.relations.moment import AsOf
from tests.core.certainties import KeyedRecord, Rule, needlessly_unknown, wrong_certainties
from tests.core.log_cleaner import compact, lose
from tests.core.random_coordinator import Entry, RandomCoordinator, key_of, segment
from tests.jobs.queries.memory_logs import MemoryLog
from tests.jobs.queries.same_answers import described


def then(data: bytes, family: Family, end: int) -> ReplayedGroups:
    return replay([MemoryLog(data, family)], AsOf(offsets={0: end}), lambda message: None)


families = st.sampled_from([Family.GROUP, Family.GROUP, Family.GROUP, Family.CONNECT])


@given(st.integers(0, 1 << 30), families, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_compacted_log(seed: int, family: Family, clean: float, tombstones: float, moment: float) -> None:
    chance = Random(seed)
    whole = RandomCoordinator(chance, family).run(60)
    clean_end = round(clean * len(whole))
    left = compact(whole, clean_end, round(tombstones * clean_end), chance)
    end = round(moment * len(whole))
    said = then(segment(left, family), family, end)
    wrong = wrong_about(said, whole, family, end)
    if all(entry.producer_id is None for entry in left):  # nothing shows that there were transactions
        wrong = [each for each in wrong if each[0] != "offsets_stable"]
    assert wrong == []
    if family is Family.GROUP:
        there = Rule(keyed_records(left)).there(0, end)
        assert list(needlessly_unknown(described(said), there)) == []


@given(st.integers(0, 1 << 30), families, st.floats(0, 1), st.booleans(), st.floats(0, 1))
def test_a_damaged_log(seed: int, family: Family, clean: float, is_cut: bool, moment: float) -> None:
    """A batch has a wrong checksum, or, behind what was compacted, it is not there at all."""
    chance = Random(seed)
    whole = RandomCoordinator(chance, family).run(60)
    left = compact(whole, round(clean * len(whole) / 2), 0, chance)
    lost = chance.choice(left)
    end = round(moment * len(whole))
    if is_cut and has_repeated(left, lost.batch[0]):
        data = segment(lose(left, *lost.batch), family)
    else:
        data = with_wrong_checksum(
            segment(left, family), segment([each for each in left if each.batch == lost.batch], family)
        )
    said = then(data, family, end)
    assert wrong_about(said, whole, family, end) == []
    assert any(gaps.lost >= 0 for gaps in said.gaps().values()) == (end > lost.batch[0])


def wrong_about(said: ReplayedGroups, whole: list[Entry], family: Family, end: int) -> list[tuple[str, str]]:
    lists_all = all(gaps.lists_all for gaps in said.gaps().values())
    true = then(segment(whole, family), family, end)
    return [*wrong_certainties(described(said), described(true), lists_all=lists_all)]


def keyed_records(log: list[Entry]) -> Iterator[KeyedRecord]:
    for entry in log:
        record = entry.record
        if record is None:
            yield KeyedRecord(0, entry.offset)
        else:
            yield KeyedRecord(
                0, entry.offset, record.type, record.key, record.value is None, entry.producer_id is not None
            )


def has_repeated(log: list[Entry], end: int) -> bool:
    """Whether a key occurs twice below an offset: compaction cannot have been there."""
    keys = [key_of(entry.record) for entry in log if entry.record is not None and entry.offset < end]
    return len(set(keys)) < len(keys)


def with_wrong_checksum(data: bytes, batch: bytes) -> bytes:
    at = data.index(batch) + len(batch) - 1
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
