"""The messages of the coordinator in a broker's application log, by their patterns in ``schemas/broker_log``.

What stands behind a message in a line depends on the layout. A message that ends with words of its own ends there,
whatever follows. One that ends with a value ends where the layout's tail begins, which the other lines of the file
show: ``coordinator_core.broker_log.lines``.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from coordinator_core.broker_log.events import EventKind
from coordinator_core.wire.schema import broker_messages

MEMBERS_LATE: Final = "members_late"
"""One line about several members; each of them was too late."""
GROUPS_DELETED: Final = "groups_deleted"
"""One line about several groups."""
LOG: Final = re.compile(r"__consumer_offsets-(\d+)")
UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NAMED_MEMBER: Final = re.compile(rf"memberId='?(.*?-{UUID})")
LISTED_MEMBER: Final = re.compile(rf"(?:^|, )(.*?{UUID})(?=, |$)")
LIST: Final = re.compile(r"\w*[\[({](.*)[\])}]", re.S)
"""Member ids of a list: client or instance id, which may be any text, and a UUID."""
JAVA_OBJECT: Final = re.compile(r"(?:\w+\.)*(\w+?)(?:Assignor)?@[0-9a-f]+")
"""What a share group's assignor is called in a line of Kafka 4.0 to 4.4: the class, and where it lies in memory."""
NO_INSTANCE: Final = ("null", "None", "Optional.empty")
SOME: Final = re.compile(r"(?:Some|Optional)[(\[](.*)[)\]]")
"""An instance id as Scala's Option and Java's Optional print it."""
VALUE: Final = re.compile(r"\(\?P<")
OPTIONAL: Final = re.compile(r"\(\?:[^()]*\)\?")
WORD: Final = re.compile("[a-z]{3}", re.I)
NO_WORD_BEHIND: Final = r"(?!\w)"


class End(StrEnum):
    """How the pattern of a message ends: with words, behind which the layout goes on; with a value; or before the
    message does.
    """

    WORDS = "words"
    VALUE = "value"
    BEFORE = "before"


class BrokerMessage(NamedTuple):
    """A message of the coordinator: parts of which it always has one, its pattern, and how that ends."""

    kind: str
    has: tuple[str, ...]
    pattern: re.Pattern[str]
    end: End


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


class FoundMessage(NamedTuple):
    """A message that was found in a text, and where it ends in it."""

    message: BrokerMessage
    match: re.Match[str]


@cache
def messages() -> tuple[BrokerMessage, ...]:
    """Return all messages, in the order in which they are tried."""
    return tuple(_compiled(message["kind"], message["has"], message["pattern"]) for message in broker_messages())


def _compiled(kind: str, has: str | list[str], pattern: str) -> BrokerMessage:
    end = _end(pattern)
    if end is End.WORDS:
        # Without its "$": behind words of the message's own the layout goes on in the same text.
        pattern = f"{pattern[:-1]}{NO_WORD_BEHIND}"
    return BrokerMessage(kind, (has,) if isinstance(has, str) else tuple(has), re.compile(pattern, re.S), end)


def _end(pattern: str) -> End:
    if not pattern.endswith("$"):
        return End.BEFORE
    values = list(VALUE.finditer(pattern))
    # To the parenthesis that closes the last value: words behind it show where the message ends.
    at, depth = (values[-1].end() if values else 0), 1 if values else 0
    while depth:
        depth += {"(": 1, ")": -1}.get(pattern[at], 0) if pattern[at - 1] != "\\" else 0
        at += 1
    return End.WORDS if WORD.search(OPTIONAL.sub("", pattern[at:])) else End.VALUE


def fixed_part(text: str) -> str | None:
    """Return a part of a message that the text has, whether or not it is that message; None: it has none."""
    return next((part for part, _ in _by_part() if part in text), None)


def find_message(text: str) -> FoundMessage | None:
    """Return the message with which the text begins; None: it begins with none of them."""
    for part, message in _by_part():
        if part in text and (match := message.pattern.match(text)) is not None:
            return FoundMessage(message, match)
    return None


@cache
def _by_part() -> tuple[tuple[str, BrokerMessage], ...]:
    return tuple((part, message) for message in messages() for part in message.has)


def said(found: FoundMessage) -> Iterator[Said]:
    """Yield what a message says."""
    kind, fields = found.message.kind, found.match.groupdict()
    group = fields.get("group")
    if fields.get("count") == "0" and kind in (EventKind.CLEANED_UP, EventKind.OFFSETS_DELETED):
        return
    if kind == MEMBERS_LATE:
        for member_id in dict.fromkeys(_listed(fields["members"] or "")):
            yield Said(EventKind.MEMBER_TIMED_OUT, group, member_id)
        return
    if kind == GROUPS_DELETED:
        for group_id in re.split(r", ", (fields["groups"] or "").strip("[]")):
            yield Said(EventKind.GROUP_DELETED, group_id)
        return
    reason = fields.get("reason")
    if kind in (EventKind.REQUEST_ALLOWED, EventKind.REQUEST_DENIED):
        request = fields["request"] or fields["operation"]
        reason = f"{fields['who']} at {fields['host']}: {request}"
    if kind == EventKind.TARGET_COMPUTED and (named := JAVA_OBJECT.fullmatch(reason or "")) is not None:
        reason = named[1].lower()
    log = LOG.fullmatch(fields.get("log") or "")
    yield Said(
        kind,
        group,
        fields.get("member") or None,
        _instance(fields.get("instance")),
        _number(fields.get("epoch")),
        reason,
        _number(fields.get("ms")),
        fields.get("topic"),
        _number(fields.get("partition")),
        None if log is None else _number(log[1]),
    )


def _listed(text: str) -> list[str]:
    """Member ids of a list or a map as Java and Scala print them."""
    if named := NAMED_MEMBER.findall(text):
        return named
    inner = LIST.fullmatch(text.rstrip("."))
    return LISTED_MEMBER.findall(text if inner is None else inner[1])


def _instance(text: str | None) -> str | None:
    if text is None or text in NO_INSTANCE:
        return None
    some = SOME.fullmatch(text)
    return text if some is None else some[1]


def _number(text: str | None) -> int | None:
    """A number that no counter of Kafka reaches is none."""
    return int(text) if text is not None and text.lstrip("-").isdecimal() and len(text) < 19 else None
