"""In which partition of its log something lies."""

from collections.abc import Callable, Iterable, Mapping
from math import gcd, isqrt
from typing import Any, Final

from coordinator_core.java.hash_codes import string_hash
from coordinator_core.records import group_of_key

MOST_PARTITIONS: Final = 100_000
"""No log has more partitions: brokers of today could not keep them. A higher count only fits a damaged log."""


def log_partition_of(key: str, partitions: int) -> int:
    """Return the log partition of a group id, or of a share partition as ``GROUP:TOPIC_ID:PARTITION``.

    It is ``Utils.abs`` of the Java hash code, modulo the number of partitions of the log (GroupCoordinatorService,
    ShareCoordinatorService).
    """
    return _code(key) % partitions


def placing_key(key: Any) -> str:
    """Return of a decoded key what ``log_partition_of`` takes: each share partition has its own, a group the others."""
    group_id = group_of_key(key)
    return share_partition(group_id, key["topicId"], key["partition"]) if "topicId" in key else group_id


def share_partition(group_id: str, topic_id: str, partition: int) -> str:
    """Return a share partition in words, as share coordinators place and name it."""
    return f"{group_id}:{topic_id}:{partition}"


def shown(places: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return how many partitions each log has at least, by topic: one more than the highest of these places."""
    counts: dict[str, int] = {}
    for topic, partition in places:
        counts[topic] = max(counts.get(topic, 1), partition + 1)
    return counts


def counted(
    named: Mapping[str, int],
    placed: Mapping[str, Iterable[tuple[str, int]]],
    at_least: Mapping[str, int],
    names_all: Callable[[], bool],
) -> dict[str, int]:
    """Return how many partitions each log has, by topic, as far as it is known.

    ``named`` has those that a metadata log names, ``at_least`` how many are ``shown`` of each log that was given; of
    the others the keys that are ``placed`` in them may prove it (``proven_count``). Brokers name every topic: where the
    metadata log is whole (``names_all``) and does not have this one, it is a made log, with no more than was given.
    """
    counts = {**named}
    for topic in at_least.keys() - named.keys():
        count = proven_count(placed[topic], at_least[topic])
        if count is None and names_all():
            count = at_least[topic]
        if count is not None:
            counts[topic] = count
    return counts


def proven_count(placed: Iterable[tuple[str, int]], at_least: int) -> int | None:
    """Return how many partitions a log has, from keys of ``log_partition_of`` and the partitions in which they lie.

    ``at_least`` is one more than the highest partition that is known. None: several counts fit these keys, or none up
    to ``MOST_PARTITIONS`` does, as where a key lies in a partition that its hash does not give. Keys are read until
    one count is proven.
    """
    # A key lies at its code modulo the count, so that the count divides the difference of both, and with it the
    # greatest divisor that the differences of all keys share: with ten groups that is nearly always the count itself.
    shared = 0
    for key, partition in placed:
        before, shared = shared, gcd(shared, _code(key) - partition)
        if shared != before and at_least <= shared < at_least * _smallest_factor(shared):
            # It alone fits: its largest divisor is less than the partitions that are known.
            return shared if shared <= MOST_PARTITIONS else None
    return None


def _code(key: str) -> int:
    code = string_hash(key)
    # Java's own ``abs`` of the lowest int is negative; ``Utils.abs`` makes 0 of it.
    return 0 if code == -(2**31) else abs(code)


def _smallest_factor(number: int) -> int:
    """Return the smallest factor above 1 of a number; of 1, that has none, 2."""
    return next((factor for factor in range(2, isqrt(number) + 1) if number % factor == 0), max(number, 2))
