"""The lines of one file of a broker's application log as events, whatever layout they are written in.

The coordinator's own prefix is searched in the line: anything may stand before it and behind the message, as Kafka's
layouts, containers and collectors write it. A text in quotes, as in JSON, CSV and logfmt, is read as the text in it.

A message that ends with words of its own shows where it ends, and so what a layout writes behind it: the logger, the
thread, further columns. Of a message that ends with a value, such as a client's reason, that is taken away.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.json_texts import MOST_SCALAR, STRING, JsonEntry, json_entries, unquoted
from coordinator_core.broker_log.messages import End, FoundMessage, find_message, fixed_part, said
from coordinator_core.broker_log.times import NO_TIME, WrittenTime, resolution_of, time_before, with_zone

PIECE: Final = re.compile(r"(?P<dotted>(?:[\w$-]+\.)+[\w$-]+)|(?P<word>[\w$-]+)|(?P<space>\s+)|(?P<other>.)", re.S)
SHAPES: Final = {"dotted": r"(?:[\w$-]+\.)+[\w$-]+", "word": r"[\w$-]+", "space": r"\s+"}
USUAL: Final = re.compile(r"\s+\((?:[\w$-]+\.)+[\w$-]+\)(?:\s+\[[^\]]*\])?\s*$|\s+$")
"""The tail where no line shows one: the logger, as Kafka's default layout has it, and a thread behind it."""
MOST_TAIL: Final = 200
"""Characters of a tail; what is longer is not one."""
MOST_SHAPES: Final = 16
RARE: Final = 20
"""What fewer than one in this many lines shows is not a tail: another message may begin with the same words."""


class LineLayout:
    """The tails that lines of one file have shown, those of texts in quotes and those of others."""

    def __init__(self) -> None:
        self._seen: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        self._patterns: dict[bool, re.Pattern[str]] = {}

    def learn(self, tail: str, *, is_quoted: bool) -> None:
        """Take notice of what stands behind a message."""
        if len(tail) <= MOST_TAIL:
            self._seen[is_quoted][_shape(tail)] += 1
            self._patterns.pop(is_quoted, None)

    def without_tail(self, message: str, *, is_quoted: bool) -> str:
        """Return the message without what the layout writes behind it."""
        if is_quoted not in self._patterns:
            self._patterns[is_quoted] = self._pattern(is_quoted)
        tail = self._patterns[is_quoted].search(message)
        return message if tail is None else message[: tail.start()]

    def _pattern(self, is_quoted: bool) -> re.Pattern[str]:
        seen = self._seen[is_quoted]
        if not seen:
            return USUAL
        usual = [shape for shape, count in seen.most_common(MOST_SHAPES) if count * RARE >= max(seen.values())]
        # The longest first: a shorter one may be the end of it, and would leave the rest of the tail.
        return re.compile("|".join(rf"(?:{shape})\Z" for shape in sorted(usual, key=len, reverse=True)), re.S)


@lru_cache(1024)
def _shape(tail: str) -> str:
    """Return a pattern of tails with other words of the same kind."""
    pieces = (match.lastgroup or "other" for match in PIECE.finditer(tail))
    texts = (match[0] for match in PIECE.finditer(tail))
    return "".join(SHAPES.get(kind) or re.escape(text) for kind, text in zip(pieces, texts, strict=True))


NEEDLES: Final = (
    b"[GroupCoordinator ",
    b"[GroupMetadataManager ",
    b"[BrokerServer id=",
    b"[KafkaServer id=",
    b" on resource = Group:",
    b"Created log for partition ",
    b" is scheduled for deletion",
    b"Kafka version",
)
"""Every line of the coordinator, of its broker's end or release, of the authorizer about a group, or of the log manager
about a partition that comes or goes has one of these; all other lines can be passed over.
"""

MOST_TEXT: Final = 500
MOST_VALUE: Final = 300
"""Characters of a message, and of a value in it, that are kept."""

PREFIX: Final = re.compile(
    r"\[(?P<who>Group(?:Coordinator|MetadataManager)|BrokerServer|KafkaServer) (?:id=|brokerId=)?(?P<broker>\d{1,9})"
    r"(?: topic=__consumer_offsets partition=(?P<partition>\d{1,9}))?\]:? "
    r"|(?=Principal = .* on resource = Group:)"
    r"|(?P<topics>(?=Created log for partition |Log for partition .* is scheduled for deletion|Kafka version ?: \d))"
)
"""What stands before a message of the coordinator; the authorizer, the log manager and a process that starts have no
such prefix, but words of their own.
"""
QUOTED: Final = re.compile(rf'{STRING}|"(?:[^"\\]|\\.|"")*$', re.S)
"""A text in quotes, or the rest of a line behind a quote that does not end."""
LEVEL: Final = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
LEVEL_FIELDS: Final = ("level", "log.level", "severity")
QUIET: Final = ("WARN", "ERROR", "FATAL")
MOST_HEAD: Final = 200
"""Characters at the beginning of a line in which its time is looked for."""
MOST_NESTED: Final = 4
"""So deep a line of JSON may have another one as its message, as log shippers write it; what is deeper is text."""


class _Around(NamedTuple):
    """What stands around a text: a time, a level, and whether the text is in quotes."""

    time: WrittenTime = NO_TIME
    level: str | None = None
    is_quoted: bool = False

    def within(self, head: str) -> "_Around":
        """Return the time and the level that stand before a text, as far as there are some, else those around it."""
        own, levels = time_before(head), LEVEL.findall(head)
        time = self.time if own is NO_TIME else with_zone(own, self.time)
        return self._replace(time=time, level=levels[-1] if levels else self.level)


NOTHING: Final = _Around()


class _Text(NamedTuple):
    """A text with the coordinator's prefix, its line, and what stands around it."""

    line: int
    prefix: re.Match[str]
    around: _Around

    @property
    def head(self) -> str:
        return self.prefix.string[: self.prefix.start()]

    @property
    def message(self) -> str:
        return self.prefix.string[self.prefix.end() :]


class LineReader:
    """Reads the lines of one file: finds out how they are laid out, and counts what it does not understand.

    ``not_understood`` counts the lines that have the fixed part of a message and do not fit its pattern;
    ``first_not_understood`` is the first one: its number and that part. ``informs`` is whether a line of the
    coordinator has a level below WARN, or none. ``resolution_ms`` is how exact its times are.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.not_understood = 0
        self.first_not_understood: tuple[int, str] | None = None
        self.informs = False
        self._layout = LineLayout()
        self.resolution_ms = 1

    def note_times(self, times: Iterable[WrittenTime]) -> None:
        """Find out how exact times of this file are, from those of some of its lines."""
        self.resolution_ms = resolution_of(time.local_ms for time in times if time.local_ms is not None)

    def events(self, lines: Iterable[tuple[int, str]]) -> Iterator[BrokerEvent]:
        """Yield what these lines say of the coordinator; nothing for other lines.

        A line has its number, and no line end. Values are text, and are cut at ``MOST_VALUE`` characters.
        """
        yield from self._events([text for number, line in lines for text in _texts(line, number, MOST_NESTED)])

    def events_of_entries(self, entries: Iterable[JsonEntry]) -> Iterator[BrokerEvent]:
        """Yield what the texts of JSON over many lines say."""
        yield from self._events([text for entry in entries for text in _texts_of_entry(entry, 1, MOST_NESTED)])

    def _events(self, texts: Sequence[_Text]) -> Iterator[BrokerEvent]:
        # In two passes: tails behind messages that end with words tell where those end that end with a value.
        found = [find_message(text.message) for text in texts]
        for text, message in zip(texts, found, strict=True):
            if message is not None and message.message.end is End.WORDS:
                self._layout.learn(text.message[message.match.end() :], is_quoted=text.around.is_quoted)
        for text, message in zip(texts, found, strict=True):
            yield from self._of_text(text, message)

    def _of_text(self, text: _Text, found: FoundMessage | None) -> Iterator[BrokerEvent]:
        part = fixed_part(text.message) if found is None else None
        # Most lines say nothing that is of use here: what stands around the message is read of the others alone.
        if found is None and part is None and self.informs:
            return
        time, level, is_quoted = text.around.within(text.head)
        is_of_groups = text.prefix["topics"] is None and (text.prefix["who"] or "Group").startswith("Group")
        self.informs |= is_of_groups and level not in QUIET
        if found is None and part is None:
            return
        if found is not None and found.message.end is End.WORDS:
            message = found.match[0]
        else:
            message = self._layout.without_tail(text.message, is_quoted=is_quoted)
            found = find_message(message)
        if found is None:
            self.not_understood += 1
            self.first_not_understood = self.first_not_understood or (text.line, (part or "").strip())
            return
        for event in said(found):
            if event.log_partition is None and text.prefix["partition"] is not None:
                event = event._replace(log_partition=int(text.prefix["partition"]))
            reason = None if event.reason is None else event.reason[:MOST_VALUE]
            yield BrokerEvent(
                **event._replace(kind=str(event.kind), reason=reason)._asdict(),
                file=self.file,
                line=text.line,
                broker_id=None if text.prefix["broker"] is None else int(text.prefix["broker"]),
                level=level,
                written=time.text,
                local_ms=time.local_ms,
                timestamp_ms=_in_utc(time),
                text=message[:MOST_TEXT],
                resolution_ms=max(time.resolution_ms, self.resolution_ms),
            )


def events(text: str, file: str, line: int) -> Iterator[BrokerEvent]:
    """Yield what one line says, alone in its file."""
    yield from LineReader(file).events([(line, text)])


def time_of_line(text: str) -> WrittenTime:
    """Return the time of any line of such a log, whatever it says; ``NO_TIME`` if it has none at its beginning."""
    if "{" in text[:MOST_HEAD]:
        for entry in json_entries([text], lambda each: len(each) > MOST_SCALAR):
            for time in times_of_entry(entry):
                return time
    level = LEVEL.search(text, 0, MOST_HEAD)
    return time_before(text[: MOST_HEAD if level is None else level.start()])


def times_of_entry(entry: JsonEntry) -> Iterator[WrittenTime]:
    """Yield the times of an entry that has some: those that its texts begin with, or else that of its fields."""
    own = [time_before(PREFIX.split(text[:MOST_HEAD], maxsplit=1)[0]) for _, text in entry.texts]
    times = [with_zone(time, entry.time) for time in own if time.local_ms is not None] or [entry.time]
    yield from (time for time in times if time.local_ms is not None)


def has_prefix(text: str) -> bool:
    """Whether a text has the coordinator's prefix."""
    return PREFIX.search(text) is not None


def _in_utc(time: WrittenTime) -> int | None:
    return None if time.local_ms is None or time.to_utc_ms is None else time.local_ms + time.to_utc_ms


def _texts(text: str, line: int, depth: int, around: _Around = NOTHING) -> Iterator[_Text]:
    """Yield the parts of a line that have the coordinator's prefix: itself, or the texts in quotes that have it."""
    prefix = PREFIX.search(text)
    if prefix is None:
        return
    if depth and '"' in text[: prefix.start()]:
        quoted = next((each for each in QUOTED.finditer(text) if each.end() > prefix.start()), None)
        if quoted is not None and quoted.start() < prefix.start():
            yield from _in_quotes(text, quoted, line, depth - 1, around)
            return
    yield _Text(line, prefix, around)


def _in_quotes(text: str, quoted: re.Match[str], line: int, depth: int, around: _Around) -> Iterator[_Text]:
    head = text[: quoted.start()]
    if entries := [entry for entry in json_entries([text], has_prefix) if entry.texts]:
        begin = text.find("{")
        around = around.within(head[:begin]) if begin >= 0 else around
        for entry in entries:
            yield from _texts_of_entry(entry, line, depth, around)
        return
    inner = unquoted(quoted[0], doubled=head.rstrip()[-1:] not in ("=", ":") and '\\"' not in quoted[0])
    yield from _texts(inner.rstrip("\r\n"), line, depth, around.within(head)._replace(is_quoted=True))


def _texts_of_entry(entry: JsonEntry, line: int, depth: int, around: _Around = NOTHING) -> Iterator[_Text]:
    level = next((entry.fields[name] for name in LEVEL_FIELDS if isinstance(entry.fields.get(name), str)), around.level)
    time = around.time if entry.time is NO_TIME else with_zone(entry.time, around.time)
    for below, text in entry.texts:
        yield from _texts(text.rstrip("\r\n"), line + below, depth, _Around(time, level, is_quoted=True))
