"""Chance is the same for ever, and says what it is asked for."""

from collections import Counter

from coordinator_core.simulator.seeded_random import SeededRandom


def test_the_sequence_is_that_of_splitmix64():
    chance = SeededRandom(1234567)
    assert [chance.bits() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_fork_depends_on_its_labels_only():
    drawn, fresh = SeededRandom(5), SeededRandom(5)
    drawn.bits()
    assert drawn.fork("group", 1).bits() == fresh.fork("group", 1).bits()
    assert len({fresh.fork("group", number).bits() for number in range(100)}) == 100
    assert SeededRandom(6).fork("group", 1).bits() != fresh.fork("group", 1).bits()


def test_numbers_are_within_their_bounds_and_all_occur():
    chance = SeededRandom(3)
    assert {chance.between(2, 5) for _ in range(200)} == {2, 3, 4, 5}
    assert chance.below(0) == 0
    assert all(0 <= chance.fraction() < 1 for _ in range(1000))
    waits = [chance.waiting(1000) for _ in range(4000)]
    assert min(waits) >= 1
    assert 900 < sum(waits) / len(waits) < 1100


def test_some_of_several_are_different_ones_in_order():
    chance, counts = SeededRandom(4), Counter()
    for _ in range(3000):
        chosen = chance.some("abcd", 2)
        assert chosen == sorted(set(chosen))
        counts[tuple(chosen)] += 1
    assert len(counts) == 6
    assert min(counts.values()) > 400
    assert chance.some("ab", 5) == ["a", "b"]


def test_uuids_are_of_version_4():
    ids = [value for value, _ in zip(SeededRandom(9).uuids(), range(50), strict=False)]
    assert len(set(ids)) == 50
    assert {each.version for each in ids} == {4}
