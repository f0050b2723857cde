"""Packed data inside the page: gzip, then base64. Groups are packed together, as they have much in common.

Rows of named fields are written as lists, and the names of the fields once: that halves the page.
"""

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, get_type_hints
from urllib.parse import quote

from markupsafe import Markup

from jobs.formatting import SCALARS, plain
from jobs.report.data import GroupDetail
from jobs.tables.row_reader import bare, element

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


class PageTexts(NamedTuple):
    """The parts of a page that the rest of the report does not change, before and behind ``commits``: as the members of
    an object, and as those of a packed row.
    """

    fields_before: str
    fields_behind: str
    values_before: str
    values_behind: str


AROUND: Final = (("line", "findings"), ("commits",), ("offsets", "offsets_seen", "lag"))
"""The other parts of a page: those that are in lists and charts, too, or over time in intervals of the whole report."""
_BEGIN, _PLACE, _END = (GroupDetail._fields.index(name) for name in ("members", "commits", "offsets"))
BEFORE: Final = GroupDetail._fields[_BEGIN:_PLACE]
BEHIND: Final = GroupDetail._fields[_PLACE + 1 : _END]


def texts_of(group: GroupDetail) -> PageTexts:
    """Return the texts of a page."""
    return PageTexts(*(write(group, names) for write in (_fields, _values) for names in (BEFORE, BEHIND)))


def group_json(group: GroupDetail, texts: PageTexts | None) -> str:
    """Return a page as an object of JSON; ``texts``: those that the group itself lacks."""
    before, behind = (_fields(group, BEFORE), _fields(group, BEHIND)) if texts is None else texts[:2]
    first, commits, lag = (_fields(group, names) for names in AROUND)
    return f"{{{first},{before},{commits},{behind},{lag}}}"


def _group_row(group: GroupDetail, texts: PageTexts | None) -> str:
    """Return a page as a packed row."""
    before, behind = (_values(group, BEFORE), _values(group, BEHIND)) if texts is None else texts[2:]
    first, commits, lag = (_values(group, names) for names in AROUND)
    return f'{{"{KINDS[GroupDetail]}":[{first},{before},{commits},{behind},{lag}]}}'


# Both without their brackets: parts that were made on different nights become one object, or one row.
def _fields(group: GroupDetail, names: Sequence[str]) -> str:
    return json_text({name: plain(getattr(group, name)) for name in names})[1:-1]


def _values(group: GroupDetail, names: Sequence[str]) -> str:
    return json_text([_compact(getattr(group, name)) for name in names])[1:-1]


def _kinds(of: object) -> Iterator[type]:
    """Yield the kinds of rows of which one consists, and its own first."""
    core = bare(of)
    if (part := element(of)) is not None:
        yield from _kinds(part)
    elif hasattr(core, "_fields"):
        yield core
        for hint in get_type_hints(core, include_extras=True).values():
            yield from _kinds(hint)


KINDS: Final = {kind: number for number, kind in enumerate(dict.fromkeys(_kinds(GroupDetail)))}
"""The numbers of the kinds of rows: the same in each report, so that the texts of pages can be kept."""


def details(
    groups: Sequence[GroupDetail], most_bytes: int, texts: Mapping[str, PageTexts] = MappingProxyType({})
) -> Details:
    """Return the details of the first groups, at least of one, as far as they fit; ``texts``: see ``write``."""
    chunks: list[Chunk] = []
    waiting: list[str] = []
    used = detailed = 0
    for number, group in enumerate(groups, start=1):
        waiting.append(_group_row(group, texts.get(group.line.group_id)))
        if number < len(groups) and sum(map(len, waiting)) < CHUNK:
            continue
        data = _packed(f"[{','.join(waiting)}]")
        used += len(data)
        if chunks and used > most_bytes:
            break
        first = number - len(waiting)
        chunks.append(Chunk(" ".join(escaped(each.line.group_id) for each in groups[first:number]), data))
        detailed, waiting = number, []
    return Details(chunks, [getattr(kind, "_fields") for kind in KINDS], detailed)  # noqa: B009


def packed(value: object) -> Markup:
    """Return a text, or a value as JSON, packed."""
    return _packed(str(value) if isinstance(value, str) else json_text(plain(value)))


def escaped(text: str) -> str:
    """Return an id percent-encoded: HTML has no way to write some characters, such as NUL."""
    return quote(text, safe="")


def _compact(value: object) -> object:
    """Return a row as an object whose only key is the number of its kind, and whose value has its fields."""
    if not isinstance(value, tuple):
        return value
    values = [part if part.__class__ in SCALARS else _compact(part) for part in value]
    return {KINDS[type(value)]: values} if hasattr(value, "_fields") else values


def json_text(value: object) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _packed(text: str) -> Markup:
    # Without the time in gzip's header the same report has the same bytes.
    return Markup(base64.b64encode(gzip.compress(text.encode(), LEVEL, mtime=0)).decode())
