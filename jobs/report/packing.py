"""Packed data inside the page: gzip, then base64. Groups are packed together, as they have much in common.

Rows of named fields are written as lists, and the names of the fields once: that halves the page.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from jobs.formatting import SCALARS, plain
from jobs.report.data import GroupDetail

CHUNK: Final = 600_000
"""Characters of JSON from which groups are no longer packed together: what is unpacked to open one of them."""

LEVEL: Final = 6
"""Level of compression. The highest one takes three times as long, and saves a hundredth."""


class Chunk(NamedTuple):
    """The details of some groups."""

    ids: str
    data: Markup


class Details(NamedTuple):
    """The details of the first ``groups`` groups; ``fields`` are the names of the fields of each kind of row."""

    chunks: Sequence[Chunk]
    fields: Sequence[Sequence[str]]
    groups: int


def details(groups: Sequence[GroupDetail], most_bytes: int) -> Details:
    """Return the details of the first groups, at least of one, as far as they fit."""
    chunks: list[Chunk] = []
    kinds: dict[type, int] = {}
    waiting: list[str] = []
    used = detailed = 0
    for number, group in enumerate(groups, start=1):
        waiting.append(_json(_compact(group, kinds)))
        if number < len(groups) and sum(map(len, waiting)) < CHUNK:
            continue
        data = _packed(f"[{','.join(waiting)}]")
        used += len(data)
        if chunks and used > most_bytes:
            break
        first = number - len(waiting)
        chunks.append(Chunk(" ".join(escaped(each.line.group_id) for each in groups[first:number]), data))
        detailed, waiting = number, []
    return Details(chunks, [getattr(kind, "_fields") for kind in kinds], detailed)  # noqa: B009


def packed(value: object) -> Markup:
    """Return a text, or a value as JSON, packed."""
    return _packed(str(value) if isinstance(value, str) else _json(plain(value)))


def escaped(text: str) -> str:
    """Return an id percent-encoded: HTML has no way to write some characters, such as NUL."""
    return quote(text, safe="")


def _compact(value: object, kinds: dict[type, int]) -> object:
    """Return a row as an object whose only key is its kind, and whose value has its fields; ``kinds`` may grow."""
    if not isinstance(value, tuple):
        return value
    values = [part if part.__class__ in SCALARS else _compact(part, kinds) for part in value]
    return {kinds.setdefault(type(value), len(kinds)): values} if hasattr(value, "_fields") else values


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _packed(text: str) -> Markup:
    return Markup(base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode())
