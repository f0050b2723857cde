"""The addresses of the page and their answers. Nothing of a request names a file: pages and scripts are in memory."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from coordinator_core.errors import CoordinatorAuditError, InputError, UsageError
from coordinator_core.whole_numbers import whole_number
from jobs.formatting import parse_time, plain
from jobs.report.data import GroupDetail, Report
from jobs.report.render import served_page, served_scripts, served_styles
from jobs.serve.offsets import NoSuchGroupError
from jobs.serve.served_rows import FoundRow, GroupsPage, ServedOffset, ServedSettings

MOST_ROWS: Final = 200
"""Rows of one answer."""
LONGEST_TEXT: Final = 500
"""Characters of one value of a query."""
JSON: Final = "application/json"


ANSWERS: Final[Mapping[str, object]] = {
    "/api/overview": Report,
    "/api/groups": GroupsPage,
    "/api/group": GroupDetail,
    "/api/offsets": tuple[ServedOffset, ...],
    "/api/settings": ServedSettings,
    "/api/search": tuple[FoundRow, ...],
}
"""What the answer of each address is, as JSON."""


class Answer(NamedTuple):
    """The answer to a request."""

    status: int
    kind: str
    body: bytes


class GroupsAsked(NamedTuple):
    """Which groups are asked for: at a moment (None: now), with a text in their id, of one type, with findings,
    with a change since another moment; and which of them, by number."""

    at_ms: int | None = None
    than_ms: int | None = None
    find: str | None = None
    group_type: str | None = None
    only_found: bool = False
    only_changed: bool = False
    first: int = 0
    most: int = 100


class Packed(NamedTuple):
    """JSON that was made before."""

    body: bytes


class ServedPlace(Protocol):
    """Where answers come from: log files, or tables."""

    def overview(self) -> Report:
        """Return the report without its groups."""

    def groups(self, asked: GroupsAsked) -> GroupsPage:
        """Return groups at a moment, by id."""

    def group(self, group_id: str, since_ms: int | None, until_ms: int | None) -> GroupDetail | Packed | None:
        """Return one group, of a window of time; None: the group is unknown."""

    def offsets(self, group_id: str, at_ms: int | None) -> Sequence[ServedOffset]:
        """Return the committed offsets of a group at a moment (None: now)."""

    def settings(self, group_id: str, at_ms: int | None) -> ServedSettings:
        """Return what is set for a group, and for the brokers, at a moment (None: now)."""

    def search(self, text: str) -> Sequence[FoundRow]:
        """Return where a text occurs: groups, members, hosts, topics and nights."""

    def renew(self) -> object:
        """Begin to read what is new, if there is any; return what differs once answers about all groups do."""


class Site:
    """The page, its scripts and styles, and what it asks for."""

    def __init__(self, place: ServedPlace, *, is_live: bool = False) -> None:
        self._place, self._is_live = place, is_live
        self._fixed = {
            "/page.js": Answer(200, "text/javascript; charset=utf-8", served_scripts().encode()),
            "/page.css": Answer(200, "text/css; charset=utf-8", served_styles().encode()),
        }
        self._questions: Mapping[str, Callable[[Mapping[str, str]], object]] = {
            "/api/overview": lambda asked: place.overview(),
            "/api/groups": self._groups,
            "/api/group": self._group,
            "/api/offsets": lambda asked: tuple(place.offsets(_text(asked, "group"), _time(asked, "at"))),
            "/api/settings": lambda asked: place.settings(_text(asked, "group"), _time(asked, "at")),
            "/api/search": lambda asked: tuple(place.search(_text(asked, "find"))),
        }

    def answer(self, path: str, asked: Mapping[str, str]) -> Answer:
        """Return the answer to a request."""
        try:
            if path == "/":
                return Answer(
                    200, "text/html; charset=utf-8", served_page(self._place.overview(), is_live=self._is_live).encode()
                )
            if path in self._fixed:
                return self._fixed[path]
            if (question := self._questions.get(path)) is None:
                return _failure(404, "there is nothing at this address")
            if any(len(value) > LONGEST_TEXT for value in asked.values()):
                raise UsageError(f"a value has more than {LONGEST_TEXT} characters")
            value = question(asked)
        except UsageError as error:
            return _failure(400, str(error))
        except NoSuchGroupError as error:
            return _failure(404, str(error))
        except InputError as error:
            return _failure(503, str(error))
        except CoordinatorAuditError as error:
            return _failure(500, str(error))
        if isinstance(value, Packed):
            return Answer(200, JSON, value.body)
        return Answer(200, JSON, json.dumps(plain(value), ensure_ascii=False, separators=(",", ":")).encode())

    def _groups(self, asked: Mapping[str, str]) -> GroupsPage:
        return self._place.groups(
            GroupsAsked(
                at_ms=_time(asked, "at"),
                than_ms=_time(asked, "than"),
                find=asked.get("find") or None,
                group_type=asked.get("type") or None,
                only_found=asked.get("found") == "1",
                only_changed=asked.get("changed") == "1",
                first=_number(asked, "first", 0),
                most=min(_number(asked, "most", 100), MOST_ROWS),
            )
        )

    def _group(self, asked: Mapping[str, str]) -> GroupDetail | Packed:
        group_id = _text(asked, "group")
        found = self._place.group(group_id, _time(asked, "since"), _time(asked, "until"))
        if found is None:
            raise NoSuchGroupError(f"there is no group {group_id!r}")
        return found


def _failure(status: int, reason: str) -> Answer:
    return Answer(status, JSON, json.dumps({"error": reason}).encode())


def _text(asked: Mapping[str, str], name: str) -> str:
    if name not in asked:
        raise UsageError(f"{name} is missing")
    return asked[name]


def _time(asked: Mapping[str, str], name: str) -> int | None:
    return parse_time(asked[name]) if asked.get(name) else None


def _number(asked: Mapping[str, str], name: str, otherwise: int) -> int:
    number = whole_number(asked[name]) if name in asked else otherwise
    if number is None:
        raise UsageError(f"invalid {name} {asked[name]!r}: use a whole number")
    return number
