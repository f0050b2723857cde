"""Tree bins: the form of a bucket of java.util.HashMap in which too many keys collide.

A bin is a red-black tree for lookups and a chain that iteration follows. Iteration order depends on the tree: a new key
is chained right behind its parent in the tree, and after each change the root moves to the front of the chain.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from coordinator_core.java.hash_codes import KeyType, spread

K = TypeVar("K")

UNTREEIFY_THRESHOLD = 6


class _Node(Generic[K]):
    """A key in the tree; ``hash`` is HashMap's secondary hash, compared as a signed int."""

    __slots__ = ("hash", "key", "left", "parent", "red", "right")

    def __init__(self, key: K, hash_: int) -> None:
        self.key = key
        self.hash = hash_
        self.red = False
        self.parent: _Node[K] | None = None
        self.left: _Node[K] | None = None
        self.right: _Node[K] | None = None


class TreeBin(Generic[K]):
    """One bucket as a tree; made from the keys of a chain, in chain order."""

    __slots__ = ("_chain", "_root", "_type")

    def __init__(self, key_type: KeyType[K], keys: Iterable[K]) -> None:
        self._type = key_type
        self._chain: list[_Node[K]] = []
        self._root: _Node[K] | None = None
        for key in keys:
            node = _Node(key, spread(key_type.hash_code(key)))
            self._chain.append(node)
            self._insert(node)
        self._root_to_front()

    def __iter__(self) -> Iterator[K]:
        return (node.key for node in self._chain)

    def __len__(self) -> int:
        return len(self._chain)

    def add(self, key: K) -> None:
        """Insert a key that is not in the bin."""
        node = _Node(key, spread(self._type.hash_code(key)))
        parent = self._insert(node)
        at = 0 if parent is None else self._chain.index(parent) + 1
        self._chain.insert(at, node)
        self._root_to_front()

    def discard(self, key: K, *, by_iterator: bool = False) -> bool:
        """Remove a key; return False if the bin has become so small that it must be a chain again.

        An iterator's remove neither shrinks the bin nor moves the root.
        """
        node = next(node for node in self._chain if node.key == key)
        self._chain.remove(node)
        root = self._root
        if not self._chain or root is None:
            return False
        # Java's test for few keys, before the key is taken out: the shape of the tree at its root, not a count.
        if not by_iterator and (root.right is None or root.left is None or root.left.left is None):
            return False
        self._delete(node)
        if not by_iterator:
            self._root_to_front()
        return True

    def _root_to_front(self) -> None:
        root = self._root
        if root is not None and self._chain and self._chain[0] is not root:
            self._chain.remove(root)
            self._chain.insert(0, root)

    def _goes_left(self, node: _Node[K], at: _Node[K]) -> bool:
        if node.hash != at.hash:
            return node.hash < at.hash
        # Java breaks ties of keys that are not Comparable by identity, which no input determines.
        order = self._type.order
        return order is None or bool(order(node.key) <= order(at.key))

    def _insert(self, node: _Node[K]) -> _Node[K] | None:
        """Add a node to the tree; its parent before the tree was balanced."""
        parent, at, left = None, self._root, False
        while at is not None:
            parent, left = at, self._goes_left(node, at)
            at = at.left if left else at.right
        node.parent = parent
        if parent is None:
            self._root = node
            return None
        if left:
            parent.left = node
        else:
            parent.right = node
        node.red = True
        self._balance_insertion(node)
        return parent

    def _balance_insertion(self, node: _Node[K]) -> None:
        while (parent := node.parent) is not None and parent.red and (grand := parent.parent) is not None:
            on_left = parent is grand.left
            uncle = grand.right if on_left else grand.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grand.red = True
                node = grand
                continue
            if node is (parent.right if on_left else parent.left):
                self._rotate(parent, to_left=on_left)
                node, parent = parent, node
            parent.red = False
            grand.red = True
            self._rotate(grand, to_left=not on_left)
        if self._root is not None:
            self._root.red = False

    def _rotate(self, node: _Node[K], *, to_left: bool) -> None:
        """Turn the edge between a node and its right (to_left) or left child, if it has one."""
        child = node.right if to_left else node.left
        if child is None:
            return
        inner = child.left if to_left else child.right
        if to_left:
            node.right, child.left = inner, node
        else:
            node.left, child.right = inner, node
        if inner is not None:
            inner.parent = node
        self._replace(node, child)
        node.parent = child

    def _replace(self, node: _Node[K], other: _Node[K] | None) -> None:
        """Hang ``other`` where ``node`` hangs."""
        parent = node.parent
        if parent is None:
            self._root = other
        elif parent.left is node:
            parent.left = other
        else:
            parent.right = other
        if other is not None:
            other.parent = parent

    def _delete(self, node: _Node[K]) -> None:
        if node.left is not None and node.right is not None:
            self._swap_with_successor(node)
        child = node.left or node.right
        if child is not None:
            self._replace(node, child)
            if not node.red:
                self._balance_deletion(child)
        else:
            # The node itself stands for the missing height while the tree is balanced, and goes afterwards.
            if not node.red:
                self._balance_deletion(node)
            self._replace(node, None)

    def _swap_with_successor(self, node: _Node[K]) -> None:
        """Exchange places and colours with the next larger node, which has no left child."""
        successor = node.right
        assert successor is not None
        while successor.left is not None:
            successor = successor.left
        node.red, successor.red = successor.red, node.red
        left, right, below = node.left, node.right, successor.right
        above = successor.parent
        self._replace(node, successor)
        if above is node:
            successor.right = node
            node.parent = successor
        else:
            assert above is not None
            assert right is not None
            above.left = node
            node.parent = above
            successor.right = right
            right.parent = successor
        successor.left = left
        if left is not None:
            left.parent = successor
        node.left, node.right = None, below
        if below is not None:
            below.parent = node

    def _balance_deletion(self, node: _Node[K]) -> None:
        """Restore equal black heights where the paths through ``node`` lack one."""
        while (parent := node.parent) is not None and not node.red:
            on_left = parent.left is node
            sibling = parent.right if on_left else parent.left
            if sibling is not None and sibling.red:
                sibling.red = False
                parent.red = True
                self._rotate(parent, to_left=on_left)
                sibling = parent.right if on_left else parent.left
            if sibling is None:
                node = parent
                continue
            near, far = (sibling.left, sibling.right) if on_left else (sibling.right, sibling.left)
            if not _is_red(near) and not _is_red(far):
                sibling.red = True
                node = parent
                continue
            if not _is_red(far):
                assert near is not None
                near.red = False
                sibling.red = True
                self._rotate(sibling, to_left=not on_left)
                sibling, far = near, sibling
            sibling.red = parent.red
            if far is not None:
                far.red = False
            parent.red = False
            self._rotate(parent, to_left=on_left)
            node = self._root or node
        node.red = False


def _is_red(node: _Node[K] | None) -> bool:
    return node is not None and node.red
