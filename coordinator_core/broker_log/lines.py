"""One line of a broker's application log as events, whatever layout it is written in.

The coordinator's own prefix is searched in the line, so that anything may stand before it: Kafka's default layout, ISO
times, what a container or a collector writes. A line of JSON is read as the text in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.messages import said
from coordinator_core.broker_log.times import NO_TIME, WrittenTime, nearest_quarter, time_before, time_of_value

NEEDLES: Final = (b"[GroupCoordinator ", b"[GroupMetadataManager ", b"[BrokerServer id=", b"[KafkaServer id=")
"""Every line of the coordinator, or of its broker's end, has one of these; all other lines can be passed over."""

MOST_TEXT: Final = 500
MOST_VALUE: Final = 300
"""Characters of a message, and of a value in it, that are kept."""

PREFIX: Final = re.compile(
    r"\[(?:Group(?:Coordinator|MetadataManager)|BrokerServer|KafkaServer) (?:id=|brokerId=)?(?P<broker>\d{1,9})"
    r"(?: topic=__consumer_offsets partition=(?P<partition>\d{1,9}))?\]:? "
)
LEVEL: Final = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
LOGGER: Final = re.compile(r" \((?:[a-z_]\w*\.)+[\w$]+\)$")
"""The logger at the end of the line, as Kafka's default layout has it."""

TEXT_FIELDS: Final = ("message", "log", "msg", "@message", "MESSAGE", "textPayload")
TIME_FIELDS: Final = ("@timestamp", "timestamp", "instant", "timeMillis", "time", "ts", "date")
LEVEL_FIELDS: Final = ("level", "log.level", "severity")
MOST_HEAD: Final = 200
"""Characters at the beginning of a line in which its time is looked for."""
MOST_NESTED: Final = 4
"""So deep a line of JSON may have another one as its message, as log shippers write it; what is deeper is text."""


class _Line(NamedTuple):
    """The text from the coordinator's prefix on, and what the line says around it."""

    prefix: re.Match[str]
    text: str
    time: WrittenTime = NO_TIME
    level: str | None = None

    def around(self) -> _Line:
        """Return the line with the time and the level that stand before the prefix, as far as it has them."""
        if self.time is not NO_TIME:
            return self
        head = self.text[: self.prefix.start()]
        levels = LEVEL.findall(head)
        return self._replace(time=time_before(head), level=self.level or (levels[-1] if levels else None))


def events(text: str, file: str, line: int) -> Iterator[BrokerEvent]:
    """Yield what a line says of the coordinator; nothing for other lines.

    ``text`` has no line end. Values in it are text, and are cut at ``MOST_VALUE`` characters.
    """
    read = _line(text, MOST_NESTED)
    if read is None:
        return
    message = LOGGER.sub("", read.text[read.prefix.end() :])
    # Most lines say nothing that is of use here: what stands around the message is read of the others alone.
    if not (parsed := list(said(message))):
        return
    read = read.around()
    for event in parsed:
        partition = event.log_partition
        if partition is None and read.prefix["partition"] is not None:
            partition = int(read.prefix["partition"])
        local_ms, to_utc = read.time.local_ms, read.time.to_utc_ms
        yield BrokerEvent(
            file=file,
            line=line,
            kind=str(event.kind),
            group_id=event.group_id,
            member_id=event.member_id,
            instance_id=event.instance_id,
            epoch=event.epoch,
            reason=None if event.reason is None else event.reason[:MOST_VALUE],
            duration_ms=event.duration_ms,
            topic=event.topic,
            partition=event.partition,
            broker_id=int(read.prefix["broker"]),
            log_partition=partition,
            level=read.level,
            written=read.time.text,
            local_ms=local_ms,
            timestamp_ms=None if local_ms is None or to_utc is None else local_ms + to_utc,
            text=message[:MOST_TEXT],
        )


def time_of_line(text: str) -> WrittenTime:
    """Return the time of any line of such a log, whatever it says; ``NO_TIME`` if it has none at its beginning."""
    begin = text.find("{", 0, MOST_HEAD)
    if begin >= 0 and (entry := _object(text[begin:])) is not None:
        times = (time_of_value(entry[name]) for name in TIME_FIELDS if name in entry)
        return next((time for time in times if time.local_ms is not None), NO_TIME)
    level = LEVEL.search(text, 0, MOST_HEAD)
    return time_before(text[: MOST_HEAD if level is None else level.start()])


def _line(text: str, depth: int) -> _Line | None:
    """Return the parts of a line; of JSON, those of the text in it, and what the fields around it add."""
    if "{" in text and depth:
        begin = text.find("{")
        prefix = PREFIX.search(text)
        if prefix is not None and begin < prefix.start() and (entry := _object(text[begin:])) is not None:
            return _json_line(entry, time_before(text[:begin]), depth)
    prefix = PREFIX.search(text)
    return None if prefix is None else _Line(prefix, text)


def _object(text: str) -> dict[str, Any] | None:
    try:
        entry, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _json_line(entry: dict[str, Any], outside: WrittenTime, depth: int) -> _Line | None:
    # JSON can have half characters, which no file can.
    own = (entry[name].encode("utf-8", "replace").decode() for name in TEXT_FIELDS if isinstance(entry.get(name), str))
    read = next((line for line in (_line(text.rstrip("\r\n"), depth - 1) for text in own) if line is not None), None)
    if read is None:
        return None
    read = read.around()
    times = (time_of_value(entry[name]) for name in TIME_FIELDS if name in entry)
    around = next((own_time for own_time in times if own_time.local_ms is not None), outside)
    levels = (entry[name] for name in LEVEL_FIELDS if isinstance(entry.get(name), str))
    time = around if read.time is NO_TIME else _with_zone(read.time, around)
    return read._replace(time=time, level=read.level or next(levels, None))


def _with_zone(time: WrittenTime, around: WrittenTime) -> WrittenTime:
    """The time of the text itself, with the zone that the difference from the time around it tells."""
    if time.to_utc_ms is not None or time.local_ms is None or around.local_ms is None or around.to_utc_ms is None:
        return time
    return time._replace(to_utc_ms=nearest_quarter(around.local_ms + around.to_utc_ms - time.local_ms))
