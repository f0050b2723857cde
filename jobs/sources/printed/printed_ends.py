"""End offsets as Kafka's own tools print them, of all releases.

``kafka-get-offsets`` (before 3.0 ``kafka.tools.GetOffsetShell``) prints ``TOPIC:PARTITION:OFFSET``.
``kafka-consumer-groups --describe`` prints a table, whose columns have had the names ``TOPIC``, ``PARTITION`` and
``LOG-END-OFFSET`` since 0.10, separated by spaces. Neither prints a time: it is that at which the file was written.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jobs.sources.bounded_text import lines_of
from jobs.sources.packed import head_of

LINE: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249}):(?P<partition>\d{1,9}):(?P<end>\d{1,19})?\s*")
NAMES: Final = ("TOPIC", "PARTITION", "LOG-END-OFFSET")

BEGINS: Final = re.compile(
    rb"(?:[^\n]*\n){0,20}?"
    rb"(?:[a-zA-Z0-9._-]{1,249}:\d{1,9}:\d{0,19}[ \t]*\r?(?:\n|$)|[^\n{}]*\bTOPIC\b[^\n]*LOG-END-OFFSET)"
)
"""How such output begins; what the tools say first, such as that a group has no active members, may stand before."""


def printed_ends(path: Path) -> list[dict[str, Any]] | None:
    """Return the end offsets in a file, with the columns of ``end_offsets.COLUMNS``; None: no tool has printed it.

    Raises:
        InputError: the file cannot be read.
        OSError: the same.
    """
    if not path.is_file() or BEGINS.match(head_of(path)) is None:
        return None
    written_ms = os.stat(path).st_mtime_ns // 1_000_000
    # Several groups read one partition, and the tool asks for its end again for each: the highest one is the newest.
    ends: dict[tuple[str, int], int] = {}
    for topic, partition, end in _ends(path):
        ends[topic, partition] = max(end, ends.get((topic, partition), 0))
    return [
        {"topic": topic, "partition": partition, "timestamp_ms": written_ms, "end_offset": end}
        for (topic, partition), end in ends.items()
    ]


def _ends(path: Path) -> Iterator[tuple[str, int, int]]:
    columns: list[str] = []
    for raw in lines_of(path):
        line = raw.decode("utf-8", "replace").strip()
        if (found := LINE.fullmatch(line)) is not None:
            if found["end"]:
                yield found["topic"], int(found["partition"]), int(found["end"])
        elif {*NAMES} <= {*(names := line.split())}:
            columns = names
        elif columns:
            # A group's id may have spaces: columns before the topic are counted from the left only without one.
            cells = line.split()
            shift = len(cells) - len(columns) if "GROUP" in columns[:1] else 0
            at = {name: columns.index(name) + max(0, shift) for name in NAMES}
            if len(cells) > max(at.values()):
                topic, partition, end = (cells[number] for number in at.values())
                if partition.isdecimal() and end.isdecimal():
                    yield topic, int(partition), int(end)
