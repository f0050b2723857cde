"""A map that remembers its past: thousands of versions share all entries that did not change."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class VersionedMap(Generic[K, V]):
    """Keys to the versions (rising integers) at which their value changed; None stands for "not there"."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[K, tuple[list[int], list[V | None]]] = {}

    def put(self, key: K, value: V | None, version: int) -> None:
        """Give ``key`` a value from ``version`` on; versions never fall. The last value put at a version holds."""
        versions, values = self._entries.setdefault(key, ([], []))
        # Records of one batch become visible together: within a version only the last value counts.
        if versions and versions[-1] == version:
            values[-1] = value
        else:
            versions.append(version)
            values.append(value)

    def at(self, key: K, version: int) -> V | None:
        """Return the value that ``key`` had at ``version``."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        index = bisect_right(entry[0], version)
        return entry[1][index - 1] if index else None

    def latest(self, key: K) -> V | None:
        """Return the newest value of ``key``."""
        entry = self._entries.get(key)
        return entry[1][-1] if entry else None

    def changes(self, key: K, after: int = -1, upto: int | None = None) -> Iterator[tuple[int, V | None]]:
        """Return each (version, value) of ``key`` with ``after < version <= upto``, oldest first."""
        versions, values = self._entries.get(key, ((), ()))
        start = bisect_right(versions, after)
        end = len(versions) if upto is None else bisect_right(versions, upto)
        return zip(versions[start:end], values[start:end], strict=True)

    def past(self, key: K, version: int) -> Iterator[tuple[int, V | None]]:
        """Yield each (version, value) of ``key`` from the one that held at ``version`` back to its first."""
        versions, values = self._entries.get(key, ((), ()))
        for index in range(bisect_right(versions, version) - 1, -1, -1):
            yield versions[index], values[index]

    def versions(self, keys: Iterable[K], after: int = -1, upto: int | None = None) -> list[int]:
        """Return the versions in ``(after, upto]`` at which any of ``keys`` changed, oldest first."""
        return sorted({version for key in keys for version, _ in self.changes(key, after, upto)})

    def view(self, version: int) -> Mapping[K, V]:
        """Return the map as it was at ``version``, in order of first appearance. It costs nothing until it is read."""
        return _View(self, version)

    def __iter__(self) -> Iterator[K]:
        """Every key that was ever there."""
        return iter(self._entries)


class _View(Mapping[K, V]):
    __slots__ = ("_map", "_version")

    def __init__(self, versions: VersionedMap[K, V], version: int) -> None:
        self._map = versions
        self._version = version

    def __getitem__(self, key: K) -> V:
        value = self._map.at(key, self._version)
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return (key for key in self._map if self._map.at(key, self._version) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
