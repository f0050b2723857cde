"""The texts in JSON, whatever its shape: one object a line, a document over many lines, several documents one behind
the other, or one that was cut. A text belongs to the nearest object or array around it that has a time.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from coordinator_core.broker_log.times import NO_TIME, WrittenTime, time_of_value

STRING: Final = r'"(?:[^"\\]|\\.|"")*"'
"""A text in quotes, with backslashes as in JSON and logfmt or with doubled quotes as in CSV."""
TOKEN: Final = re.compile(rf'{STRING}|[{{}}\[\],:"]|[^\s{{}}\[\],:"]+', re.S)
TIME_FIELDS: Final = ("@timestamp", "timestamp", "instant", "timeMillis", "time", "ts", "date", "0")
"""Fields that have the time of a text, the best first; ``0`` is the first place of an array."""
NAMES_TIME: Final = re.compile("time|date", re.I)
MOST_FIELDS: Final = 64
MOST_SCALAR: Final = 64
"""Fields of an object, and characters of one, that are looked at: a time has no more."""
MOST_WAITING: Final = 1000
"""Texts without a time that wait for the end of what is around them."""
MOST_STRING: Final = 1 << 22
"""Characters of a string; what is longer has lost its end."""


class JsonEntry(NamedTuple):
    """An object or array with a time, or with texts: their line, from 0, and the texts; the other fields, the time."""

    texts: list[tuple[int, str]]
    fields: dict[str, Any]
    time: WrittenTime


@dataclass(slots=True)
class _Frame:
    is_list: bool = False
    key: str = ""
    value: object = None
    fields: dict[str, object] = field(default_factory=dict)
    texts: list[tuple[int, str]] = field(default_factory=list)

    def put(self) -> None:
        """Keep the value that has ended."""
        if self.value is not None and len(self.fields) < MOST_FIELDS:
            self.fields[str(len(self.fields)) if self.is_list else self.key] = self.value
        self.value = None

    def time(self) -> WrittenTime:
        known = [name for name in TIME_FIELDS if name in self.fields]
        others = (name for name in self.fields if NAMES_TIME.search(name) and name not in known)
        times = (time_of_value(self.fields[name]) for name in (*known, *others))
        return next((time for time in times if time.local_ms is not None), NO_TIME)


def unquoted(text: str, *, doubled: bool = False) -> str:
    """Return what stands in quotes; ``doubled``: with doubled quotes, as in CSV, and not with backslashes. The last
    quote may be missing.
    """
    inner = text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]
    if doubled:
        return inner.replace('""', '"')
    if "\\" not in inner:
        return inner
    try:
        loaded = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        return inner.replace('\\"', '"')
    # JSON can have half characters, which no file can.
    return str(loaded).encode("utf-8", "replace").decode()


def json_entries(chunks: Iterable[str], wanted: Callable[[str], bool]) -> Iterator[JsonEntry]:
    """Yield the texts that are wanted, with the time and the fields around them, and the other objects with a time.

    ``chunks`` are parts of one text, in order. What is not JSON in it is passed over.
    """
    frames, line, rest = [_Frame(is_list=True)], 0, ""
    for chunk in chain(chunks, [None]):
        rest += chunk or ""
        at = 0
        for token in TOKEN.finditer(rest):
            begin, end = token.span()
            # What ends with the chunk may go on in the next one; so may a string of which only the quote was found.
            if chunk is not None and (end == len(rest) or (token[0] == '"' and len(rest) - begin < MOST_STRING)):
                break
            line += rest.count("\n", at, begin)
            yield from _take(token[0], line, frames, wanted)
            line += rest.count("\n", begin, end)
            at = end
        rest = rest[at:]
    while frames:
        yield from _closed(frames.pop(), frames)


def _take(token: str, line: int, frames: list[_Frame], wanted: Callable[[str], bool]) -> Iterator[JsonEntry]:
    frame = frames[-1]
    match token[0]:
        case "{" | "[":
            frames.append(_Frame(token == "["))
        case "}" | "]":
            if len(frames) > 1:
                yield from _closed(frames.pop(), frames)
        case ":":
            frame.key, frame.value = frame.value if isinstance(frame.value, str) else "", None
        case ",":
            frame.put()
        case '"':
            text = unquoted(token)
            if len(frames) > 1 and wanted(text):
                frame.texts.append((line, text))
            frame.value = text if len(text) <= MOST_SCALAR else None
        case _:
            frame.value = _number(token)


def _number(token: str) -> int | float | None:
    try:
        return float(token) if "." in token else int(token)
    except ValueError:
        return None


def _closed(frame: _Frame, frames: list[_Frame]) -> Iterator[JsonEntry]:
    frame.put()
    time = frame.time()
    above, has_texts = frames[-1] if frames else None, bool(frame.texts)
    if above is None or time is not NO_TIME or len(frame.texts) > MOST_WAITING:
        if frame.texts or time is not NO_TIME:
            yield JsonEntry(frame.texts, frame.fields, time)
    else:
        above.texts += frame.texts
    if above is not None and frame.fields and not has_texts:
        above.value = next(iter(frame.fields.values())) if frame.is_list and len(frame.fields) == 1 else frame.fields
