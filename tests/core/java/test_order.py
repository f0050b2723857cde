"""Java's collections: known hash codes, shortcuts against the step-by-step tables, trees against their laws."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_core.assignors.server.copied_assignments import ints
from coordinator_core.errors import InputError
from coordinator_core.java import hash_codes as java_hash
from coordinator_core.java.hash_codes import INTEGER, STRING, TASK_ID, UUID, string_hash, utf16
from coordinator_core.java.heap import PriorityQueue
from coordinator_core.java.order import (
    HashMap,
    TimelineHashMap,
    copied_order,
    copy_capacity,
    fill,
    grouped_order,
    hash_order,
    int_order,
    spreads,
)

COLLIDING = st.integers(0, 40).map(lambda number: number * 64) | st.integers(0, 500)
NUMBERS = st.lists(COLLIDING, unique=True, max_size=60)
CAPACITIES = st.sampled_from([0, 1, 2, 16, 20, 100])


def test_hash_codes_are_java_s():
    assert string_hash("") == 0
    assert string_hash("hello") == 99162322
    assert string_hash("polygenelubricants") == -(1 << 31)
    assert string_hash("😀") == 0xD83D * 31 + 0xDE00
    assert java_hash.TOPIC_PARTITION.hash_code(("t", 3)) == 31 * (31 + 3) + ord("t")
    assert TASK_ID.hash_code(("0", 3)) == 31 * ord("0") + 3
    assert java_hash.uuid_hash("AAAAAAAAAAAAAAAAAAAAAQ") == 1


def test_strings_sort_by_utf16_units():
    assert sorted(["\uff5e", "😀", "a"], key=utf16) == ["a", "😀", "\uff5e"]


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAA", "é"])
def test_what_is_no_uuid_is_refused(text):
    with pytest.raises(InputError, match="is not a Uuid"):
        UUID.hash_code(text)


@given(NUMBERS, CAPACITIES)
@example([*range(0, 640, 64), 1, 2, 3], 0)
def test_filled_at_once_as_step_by_step(numbers, capacity):
    assert hash_order(INTEGER, numbers, capacity) == list(fill(INTEGER, numbers, capacity))
    assert int_order(numbers, capacity) == list(fill(INTEGER, numbers, capacity))


@given(NUMBERS, CAPACITIES, st.booleans())
def test_compute_if_absent_at_once_as_step_by_step(numbers, capacity, touched):
    table = fill(INTEGER, numbers, capacity, at_head=True)
    if touched and numbers:
        table.compute_if_absent(numbers[0], lambda: None)
    assert hash_order(INTEGER, numbers, capacity, at_head=True, touched=touched) == list(table)


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.data())
def test_many_tables_at_once_as_one_by_one(tables, data):
    capacities = [data.draw(CAPACITIES) for _ in tables]
    numbers = [number for table in tables for number in table]
    group = ints(index for index, table in enumerate(tables) for _ in table)
    order, crowded = grouped_order(group, spreads(INTEGER, numbers), ints(capacities), ints(map(len, tables)))
    at = 0
    for index, table in enumerate(tables):
        mine = [numbers[position] for position in order[at : at + len(table)].tolist()]
        at += len(table)
        assert index in crowded or mine == list(fill(INTEGER, table, capacities[index]))


@given(st.lists(st.tuples(st.sampled_from("pcri"), COLLIDING), max_size=150), CAPACITIES)
def test_a_table_holds_what_was_put_in_whatever_its_trees_do(steps, capacity):
    table: HashMap[int, int] = HashMap(INTEGER, capacity)
    plain: dict[int, int] = {}
    for step, key in steps:
        if step == "p":
            table[key] = plain[key] = len(plain)
        elif step == "c":
            assert table.compute_if_absent(key, lambda: -1) == plain.setdefault(key, -1)
        elif key in plain:
            assert table.remove(key, by_iterator=step == "i") == plain.pop(key)
    assert sorted(table) == sorted(plain)
    assert dict(table) == plain


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=3)), max_size=80))
def test_a_timeline_map_holds_what_was_put_in(steps):
    table: TimelineHashMap[str, bool] = TimelineHashMap(STRING)
    plain: dict[str, bool] = {}
    for put, key in steps:
        if put:
            table[key] = plain[key] = put
        else:
            assert table.pop(key, None) == plain.pop(key, None)
    assert dict(table) == plain


@pytest.mark.parametrize(
    ("size", "jdk17", "jdk21"), [(0, 16, 16), (12, 17, 16), (13, 18, 18), (24, 33, 32), (48, 65, 64)]
)
def test_the_capacity_of_copies_changed_in_jdk_19(size, jdk17, jdk21):
    assert (copy_capacity(size, 17), copy_capacity(size, 21)) == (jdk17, jdk21)


def test_the_order_of_a_copy_depends_on_the_jdk():
    numbers = [16, *range(11)]
    assert copied_order(INTEGER, numbers, 17)[-1] == 16
    assert copied_order(INTEGER, numbers, 21)[0:2] == [16, 0]


@given(st.lists(st.integers(0, 5), max_size=40))
def test_a_priority_queue_gives_the_least_first(priorities):
    queue = PriorityQueue(priorities, range(len(priorities)))
    assert [priorities[queue.poll()] for _ in priorities] == sorted(priorities)


@given(st.permutations(range(11)), st.integers(1, 11))
def test_a_level_round_is_a_round_of_polls(elements, size):
    stepwise, at_once = [[0] * 11 for _ in range(2)]
    slow, fast = PriorityQueue(stepwise, elements[:size]), PriorityQueue(at_once, elements[:size])
    for _ in range(3):
        polled = []
        for _ in range(size):
            element = slow.poll()
            polled.append(element)
            stepwise[element] += 1
            slow.add(element)
        assert fast.level_round() == polled
        for element in polled:
            at_once[element] += 1
