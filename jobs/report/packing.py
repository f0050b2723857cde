"""Packed data inside the page: gzip, then base64. Groups are packed together, as they have much in common."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from jobs.formatting import plain
from jobs.report.data import GroupDetail

CHUNK: Final = 150_000
"""Characters of JSON from which groups are no longer packed together: what is unpacked to open one of them."""


class Chunk(NamedTuple):
    """The details of some groups."""

    ids: str
    data: Markup


def chunks(groups: Sequence[GroupDetail], most_bytes: int) -> tuple[list[Chunk], int]:
    """Return the details of the first groups, at least one, as far as they fit, and the number of these groups."""
    found: list[Chunk] = []
    waiting: list[str] = []
    used = detailed = 0
    for number, group in enumerate(groups, start=1):
        waiting.append(_json(group))
        if number < len(groups) and sum(map(len, waiting)) < CHUNK:
            continue
        data = _packed(f"[{','.join(waiting)}]")
        used += len(data)
        if found and used > most_bytes:
            break
        first = number - len(waiting)
        found.append(Chunk(" ".join(escaped(each.line.group_id) for each in groups[first:number]), data))
        detailed, waiting = number, []
    return found, detailed


def packed(value: Any) -> Markup:
    """Return a text, or a value as JSON, packed."""
    return _packed(str(value) if isinstance(value, str) else _json(value))


def escaped(text: str) -> str:
    """Return an id percent-encoded: HTML has no way to write some characters, such as NUL."""
    return quote(text, safe="")


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def _packed(text: str) -> Markup:
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())
