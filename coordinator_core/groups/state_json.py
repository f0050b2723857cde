"""Groups as JSON, for the table that keeps their state from one night to the next.

The form follows from the state's own classes: a dataclass is an object with its field names, a tuple a list, bytes are
base64. Every text carries the version of the form, so that a later release reads it or says that it must rebuild.
"""

from __future__ import annotations

import base64
import json
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar

from coordinator_core.errors import StateFormatError
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import Group, GroupType
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.records import Family

VERSION = 1
"""Of the form of ``encode_group``; raised with every change of a state class, so that older forms are refused."""

_STATES: dict[GroupType, Any] = {
    GroupType.CLASSIC: ClassicGroup,
    GroupType.CONSUMER: ConsumerGroup,
    GroupType.SHARE: ShareGroup,
    GroupType.STREAMS: StreamsGroup,
    GroupType.CONNECT: ConnectGroup,
}

Json = Any
T = TypeVar("T")


class Coder(NamedTuple):
    """How values of one type become what ``json`` can write, and back."""

    to_json: Callable[[Any], Json]
    from_json: Callable[[Json], Any]


def encode_group(group: Group) -> str:
    """Return the group as one JSON text."""
    return write_json(group_to_json(group))


def decode_group(text: str) -> Group:
    """Return the group that ``encode_group`` wrote.

    Raises:
        StateFormatError: it is something else, or of another version.
    """
    return group_from_json(read_json(text, "group"))


def group_to_json(group: Group) -> Json:
    """Return the group as what ``json`` can write."""
    return {
        "version": VERSION,
        "groupId": group.group_id,
        "fromStart": group.from_start,
        "reloaded": group.reloaded,
        "family": group.family.value,
        "type": group.type,
        "state": None if group.type is None else coder(_STATES[group.type]).to_json(group.state),
    }


def group_from_json(stored: Json) -> Group:
    """Return the group that ``group_to_json`` wrote.

    Raises:
        StateFormatError: it is something else, or of another version.
    """
    return read_stored(stored, "group", VERSION, _group_from)


def _group_from(stored: Json) -> Group:
    group_type, state = stored["type"], stored["state"]
    return Group(
        stored["groupId"],
        None if group_type is None else coder(_STATES[GroupType(group_type)]).from_json(state),
        from_start=stored["fromStart"],
        family=Family(stored["family"]),
        reloaded=stored["reloaded"],
    )


def write_json(stored: Json) -> str:
    """Return the text of what is stored."""
    return json.dumps(stored, separators=(",", ":"))


def read_json(text: str, what: str) -> Json:
    """Return what ``write_json`` wrote; ``what`` is its name in messages. Raises StateFormatError if this is none."""
    try:
        return json.loads(text)
    except (ValueError, TypeError) as error:
        raise StateFormatError(f"not a stored {what}") from error


def read_stored(stored: Json, what: str, version: int, build: Callable[[Json], T]) -> T:
    """Return what ``build`` makes of a stored JSON object; ``what`` is its name in messages.

    Raises StateFormatError if it is no such object, is of another version, or ``build`` cannot make sense of it.
    """
    try:
        found = stored["version"]
    except (TypeError, KeyError) as error:
        raise StateFormatError(f"not a stored {what}") from error
    if found != version:
        raise StateFormatError(f"a {what} stored in form {found}, this release reads {version}: rebuild from the log")
    try:
        return build(stored)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateFormatError(f"a stored {what} that its form does not explain: {error!r}") from error


@cache
def coder(of: Any) -> Coder:
    """Return the coder of a type made of dataclasses, named tuples, enums, lists, tuples, dicts, text, numbers and
    bytes.

    Raises TypeError for a type made of anything else.
    """
    origin, arguments = typing.get_origin(of), typing.get_args(of)
    if of in (int, str, bool, float):
        return _AS_IS
    if of is bytes:
        return Coder(lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode)
    if origin in (typing.Union, types.UnionType):
        return _optional(arguments)
    if origin is list:
        return _list(coder(arguments[0]), list)
    if origin is tuple:
        return _list(coder(arguments[0]), tuple)
    if origin is dict:
        return _dict(arguments[0], coder(arguments[1]))
    if isinstance(of, type) and issubclass(of, Enum):
        return Coder(lambda value: value.value, of)
    if isinstance(of, type) and issubclass(of, tuple) and hasattr(of, "_fields"):
        return _named_tuple(of)
    if is_dataclass(of):
        return _dataclass(typing.cast(type, of))
    raise TypeError(f"{of!r} has no JSON form")


_AS_IS = Coder(lambda value: value, lambda value: value)


def _optional(arguments: tuple[Any, ...]) -> Coder:
    (some,) = (each for each in arguments if each is not type(None))
    to_json, from_json = coder(some)
    if to_json is _AS_IS.to_json:
        return _AS_IS
    return Coder(
        lambda value: None if value is None else to_json(value),
        lambda value: None if value is None else from_json(value),
    )


def _list(element: Coder, make: Callable[[Any], Any]) -> Coder:
    to_json, from_json = element
    if to_json is _AS_IS.to_json:
        return Coder(list, make)
    return Coder(lambda value: [to_json(each) for each in value], lambda value: make(from_json(each) for each in value))


def _dict(key: type, element: Coder) -> Coder:
    """JSON has text for keys only; the order of a dict is kept, as the order of members means something."""
    to_json, from_json = element
    if key not in (int, str):
        raise TypeError(f"a dict with keys {key!r} has no JSON form")
    return Coder(
        lambda value: {str(name): to_json(each) for name, each in value.items()},
        lambda value: {key(name): from_json(each) for name, each in value.items()},
    )


def _named_tuple(of: Any) -> Coder:
    hints = typing.get_type_hints(of)
    coders = [coder(hints[name]) for name in of._fields]
    return Coder(
        lambda value: [each.to_json(field) for each, field in zip(coders, value, strict=True)],
        lambda value: of(*(each.from_json(field) for each, field in zip(coders, value, strict=True))),
    )


def _dataclass(of: type) -> Coder:
    hints = _type_hints(of)
    coders = {field.name: coder(hints[field.name]) for field in fields(of)}

    def from_json(value: Json) -> Any:
        if value.keys() != coders.keys():
            raise KeyError(f"{of.__name__} with fields {', '.join(value)}")
        return of(**{name: each.from_json(value[name]) for name, each in coders.items()})

    return Coder(lambda value: {name: each.to_json(getattr(value, name)) for name, each in coders.items()}, from_json)


def _type_hints(of: type) -> dict[str, Any]:
    """The types of the fields, with the type variables of a generic base replaced by what the class gives for them."""
    hints = typing.get_type_hints(of)
    given: dict[Any, Any] = {}
    for base in getattr(of, "__orig_bases__", ()):
        given |= zip(typing.get_origin(base).__parameters__, typing.get_args(base), strict=True)
    return {name: _replaced(hint, given) for name, hint in hints.items()}


def _replaced(hint: Any, given: dict[Any, Any]) -> Any:
    if hint in given:
        return given[hint]
    variables = getattr(hint, "__parameters__", ())
    return hint[tuple(given[each] for each in variables)] if variables else hint
