"""Random numbers from a seed that are the same on every platform and in every release, which no library promises.

SplitMix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
"""

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import UUID

import xxhash

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


class SeededRandom:
    """A sequence of random numbers. ``fork`` returns one that depends on the seed and on labels only."""

    __slots__ = ("_seed", "_state")

    def __init__(self, seed: int) -> None:
        self._seed = self._state = seed & _MASK

    def fork(self, *labels: str | int) -> "SeededRandom":
        """Return the sequence for these labels, independent of the numbers that this one has returned."""
        name = "\0".join(map(str, labels)).encode()
        return SeededRandom(xxhash.xxh3_64_intdigest(name, self._seed))

    def bits(self) -> int:
        """Return the next 64 bits."""
        self._state = (self._state + _GAMMA) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to below ``limit``; 0 where that is not above 0."""
        # In whole numbers, the 64 bits as a fraction of 2**64: a float would round them.
        return self.bits() * limit >> 64 if limit > 0 else 0

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def fraction(self) -> float:
        """Return a number from 0 to below 1."""
        # A double has 53 bits: more of them would be rounded, also up to 1.
        return (self.bits() >> 11) * 2.0**-53

    def waiting(self, mean: int) -> int:
        """Return the time to the next event, at least 1; ``mean`` is the mean interval of the events."""
        # Exponential, by inversion; one minus a fraction is never 0, so the logarithm exists.
        return max(1, round(-mean * math.log1p(-self.fraction())))

    def trials_before(self, share: float) -> int:
        """Return how many trials fail before the first that does not; the share of those that do not is above 0."""
        # Geometric, by inversion: one draw for any number of trials.
        return 0 if share >= 1 else int(math.log1p(-self.fraction()) / math.log1p(-share))

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.below(len(options))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different options (or all, if they are fewer), in their order."""
        left, chosen = min(count, len(options)), []
        for index, option in enumerate(options):
            # With the chance of those still wanted among those still there: all selections are equally likely.
            if self.below(len(options) - index) < left:
                chosen.append(option)
                left -= 1
        return chosen

    def uuid(self) -> UUID:
        """Return a UUID of version 4."""
        return UUID(int=self.bits() << 64 | self.bits(), version=4)

    def uuids(self) -> Iterator[UUID]:
        """Yield UUIDs without end."""
        while True:
            yield self.uuid()
