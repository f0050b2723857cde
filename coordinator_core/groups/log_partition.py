"""In which partition of its log something lies."""

from __future__ import annotations

from coordinator_core.java.hash_codes import string_hash


def log_partition_of(key: str, partitions: int) -> int:
    """Return the log partition of a group id, or of a share partition as ``GROUP:TOPIC_ID:PARTITION``.

    It is ``Utils.abs`` of the Java hash code, modulo the number of partitions of the log (GroupCoordinatorService,
    ShareCoordinatorService).
    """
    code = string_hash(key)
    return (0 if code == -(2**31) else abs(code)) % partitions
