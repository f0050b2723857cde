"""Tree bins: the orders that a real java.util.HashMap gave, and the laws of red-black trees.

``tests/data/java_tree`` has the orders, and the program that wrote them (OpenJDK 17).
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.java.hash_codes import INTEGER, STRING, KeyType
from coordinator_core.java.order import HashMap
from coordinator_core.java.tree import UNTREEIFY_THRESHOLD, TreeBin
from tests.shared_data import ROOT

CASES = [
    json.loads(line)
    for line in (ROOT / "tests" / "data" / "java_tree" / "java-tree-bins.jsonl").read_text().splitlines()
]
KEY_TYPES: dict[str, KeyType[Any]] = {"int": INTEGER, "string": STRING}
BUCKET = st.lists(st.integers(-400, 400).map(lambda number: number * 64), unique=True, min_size=9, max_size=60)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_orders_are_java_s(number: int) -> None:
    case = CASES[number]
    table: HashMap[Any, int] = HashMap(KEY_TYPES[case["key"]], case["capacity"])
    orders, most = [], 0
    for op, *key in case["ops"]:
        if op == "order":
            orders.append(list(table))
        elif op == "put":
            table[key[0]] = 0
        elif op == "cia":
            table.compute_if_absent(key[0], int)
        else:
            table.remove(key[0], by_iterator=op == "iterator_remove")
        most = max(most, len(table))
    assert orders == case["orders"]
    assert most > UNTREEIFY_THRESHOLD


def black_height(node: Any, low: float, high: float) -> int:
    """The black nodes on each path below a node, of which all have to have the same number; keys by hash in order."""
    if node is None:
        return 0
    assert low < node.hash < high
    assert not (node.red and any(child is not None and child.red for child in (node.left, node.right)))
    assert all(child is None or child.parent is node for child in (node.left, node.right))
    left, right = black_height(node.left, low, node.hash), black_height(node.right, node.hash, high)
    assert left == right
    return left + (not node.red)


def keys_below(node: Any) -> set[int]:
    return set() if node is None else {node.key} | keys_below(node.left) | keys_below(node.right)


def check(bin_: TreeBin[int], keys: set[int]) -> None:
    root = bin_._root
    assert root is not None
    assert not root.red
    black_height(root, float("-inf"), float("inf"))
    assert keys_below(root) == set(bin_) == keys
    assert len(bin_) == len(keys)


@given(BUCKET, st.data())
def test_a_bin_is_a_red_black_tree_beside_a_chain_of_the_same_keys(keys: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(keys)))
    bin_, held = TreeBin(INTEGER, keys[:first]), set(keys[:first])
    check(bin_, held)
    for key in keys[first:]:
        bin_.add(key)
        held.add(key)
        check(bin_, held)
        assert next(iter(bin_)) == bin_._root.key  # type: ignore[union-attr]
    for key in data.draw(st.permutations(sorted(held))):
        by_iterator = data.draw(st.booleans())
        held.discard(key)
        if not bin_.discard(key, by_iterator=by_iterator):
            assert set(bin_) == held
            assert len(held) <= UNTREEIFY_THRESHOLD + 4
            return
        check(bin_, held)
        if not by_iterator:
            assert next(iter(bin_)) == bin_._root.key  # type: ignore[union-attr]


def test_a_key_is_chained_behind_its_parent_in_the_tree() -> None:
    bin_ = TreeBin(INTEGER, [64 * number for number in range(9)])
    bin_.add(64 * 9)
    order = list(bin_)
    assert order.index(64 * 9) == order.index(64 * 8) + 1
