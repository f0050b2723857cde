"""The messages of the coordinator in a broker's application log, by their patterns in ``schemas/broker_log``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from coordinator_core.broker_log.events import EventKind
from coordinator_core.wire.schema import broker_messages

MEMBERS_LATE: Final = "members_late"
"""One line about several members; each of them was too late."""
GROUPS_DELETED: Final = "groups_deleted"
"""One line about several groups."""
LOG: Final = re.compile(r"__consumer_offsets-(\d+)")
MEMBER_IN_LIST: Final = re.compile(r"[^\s,\[\](){}=]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""Member ids of a list: client or instance id, and a UUID; Kafka's own map of them has more around it."""
JAVA_OBJECT: Final = re.compile(r"(?:\w+\.)*(\w+?)(?:Assignor)?@[0-9a-f]+")
"""What a share group's assignor is called in a line of Kafka 4.0 to 4.4: the class, and where it lies in memory."""


class BrokerMessage(NamedTuple):
    """A message of the coordinator: a part that it always has, and its pattern."""

    kind: str
    has: str
    pattern: re.Pattern[str]


class Said(NamedTuple):
    """What a message says; the fields are those of ``BrokerEvent``."""

    kind: str
    group_id: str | None = None
    member_id: str | None = None
    instance_id: str | None = None
    epoch: int | None = None
    reason: str | None = None
    duration_ms: int | None = None
    topic: str | None = None
    partition: int | None = None
    log_partition: int | None = None


@cache
def messages() -> tuple[BrokerMessage, ...]:
    """Return all messages, in the order in which they are tried."""
    return tuple(
        BrokerMessage(message["kind"], message["has"], re.compile(message["pattern"], re.S))
        for message in broker_messages()
    )


def said(text: str) -> Iterator[Said]:
    """Yield what a message says; nothing for a message that is none of these."""
    for message in messages():
        if message.has in text and (match := message.pattern.match(text)) is not None:
            yield from _read(message.kind, match.groupdict())
            return


def _read(kind: str, fields: dict[str, str | None]) -> Iterator[Said]:
    group = fields.get("group")
    if kind == MEMBERS_LATE:
        for member_id in dict.fromkeys(MEMBER_IN_LIST.findall(fields["members"] or "")):
            yield Said(EventKind.MEMBER_TIMED_OUT, group, member_id)
        return
    if kind == GROUPS_DELETED:
        for group_id in re.split(r", ", (fields["groups"] or "").strip("[]")):
            yield Said(EventKind.GROUP_DELETED, group_id)
        return
    reason = fields.get("reason")
    if kind == EventKind.TARGET_COMPUTED and (named := JAVA_OBJECT.fullmatch(reason or "")) is not None:
        reason = named[1].lower()
    log = LOG.fullmatch(fields.get("log") or "")
    instance = fields.get("instance")
    yield Said(
        kind,
        group,
        fields.get("member") or None,
        None if instance in ("null", "None", "Optional.empty") else instance,
        _number(fields.get("epoch")),
        reason,
        _number(fields.get("ms")),
        fields.get("topic"),
        _number(fields.get("partition")),
        None if log is None else _number(log[1]),
    )


def _number(text: str | None) -> int | None:
    """A number that no counter of Kafka reaches is none."""
    return int(text) if text is not None and text.lstrip("-").isdecimal() and len(text) < 19 else None
