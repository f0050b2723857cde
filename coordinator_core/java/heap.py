"""java.util.PriorityQueue, whose binary heap decides the order of elements that compare as equal."""

from collections.abc import Iterable, Sequence
from functools import lru_cache


class PriorityQueue:
    """A queue of small integers, the one with the smallest priority first; ties are decided by the heap's sift rules.

    ``priority`` is looked up by element and may change while an element is not in the queue.
    """

    __slots__ = ("_heap", "_priority")

    def __init__(self, priority: Sequence[float], elements: Iterable[int] = ()) -> None:
        self._priority = priority
        self._heap: list[int] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: int) -> None:
        """Insert at the end and sift up past parents with a larger priority."""
        heap, priority = self._heap, self._priority
        rank = priority[element]
        at = len(heap)
        heap.append(element)
        while at:
            parent = at - 1 >> 1
            above = heap[parent]
            # As in Java an equal one does not pass its parent: which of several equal ones is first rests on that.
            if rank >= priority[above]:
                break
            heap[at] = above
            at = parent
        heap[at] = element

    def poll(self) -> int:
        """Remove the first element; the last one takes its place and sifts down past smaller children."""
        heap, priority = self._heap, self._priority
        first = heap[0]
        moved = heap.pop()
        size = len(heap)
        if not size:
            return first
        rank = priority[moved]
        at, child = 0, 1
        while child < size:
            below = heap[child]
            least = priority[below]
            right = child + 1
            if right < size and least > priority[heap[right]]:
                child = right
                below = heap[right]
                least = priority[below]
            if rank <= least:
                break
            heap[at] = below
            at = child
            child = 2 * at + 1
        heap[at] = moved
        return first

    def level_round(self) -> list[int]:
        """Poll every element once and add it back with a larger priority; all priorities must be equal.

        Returns the elements in the order in which they are polled. The caller raises their priorities by the same
        amount. The permutation of the heap is the same in every round.
        """
        polled, after = _permutations(len(self._heap))
        order = [self._heap[at] for at in polled]
        self._heap = [self._heap[at] for at in after]
        return order


@lru_cache(maxsize=16)
def _permutations(size: int) -> tuple[list[int], list[int]]:
    """Heap positions in the order in which a level round polls them, and where it leaves them."""
    priority = [0] * size
    queue = PriorityQueue(priority, range(size))
    polled: list[int] = []
    for _ in range(size):
        element = queue.poll()
        polled.append(element)
        priority[element] = 1
        queue.add(element)
    return polled, queue._heap
