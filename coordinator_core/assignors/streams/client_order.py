"""The orders in which Kafka Streams' own assignors go through processes and tasks: ids as what they stand for.

A client's process id is a UUID and its subtopologies are numbered. KIP-1071 has strings for both; those that are
something else come last, by UTF-16 code units.
"""

from __future__ import annotations

import re

from coordinator_core.assignors.inputs import TaskId
from coordinator_core.java.hash_codes import KeyType, int32, utf16

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,10}")

Order = tuple[bool, int, int, bytes]


def process_order(process_id: str) -> Order:
    """Return a sort key for process ids: ``UUID.compareTo`` compares two signed halves."""
    if not _UUID.fullmatch(process_id):
        return True, 0, 0, utf16(process_id)
    raw = bytes.fromhex(process_id.replace("-", ""))
    return False, int.from_bytes(raw[:8], signed=True), int.from_bytes(raw[8:], signed=True), utf16(process_id)


def subtopology_order(subtopology_id: str) -> Order:
    """Return a sort key for subtopology ids: 2 comes before 10."""
    number = int(subtopology_id) if is_number(subtopology_id) else 0
    return not is_number(subtopology_id), number, 0, utf16(subtopology_id)


def is_number(subtopology_id: str) -> bool:
    """Whether the subtopology is numbered, as the Streams client numbers them."""
    return _NUMBER.fullmatch(subtopology_id) is not None


CLIENT_TASK_ID: KeyType[TaskId] = KeyType(
    "org.apache.kafka.streams.processor.TaskId",
    lambda task: int32(31 * (31 * (31 + int(task[0])) + task[1])),
    lambda task: (subtopology_order(task[0]), task[1]),
)
"""The client's own task id, which differs from that of the coordinator; only for numbered subtopologies."""
