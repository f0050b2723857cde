"""JSON Schemas of what commands print with ``--json``, made from the types of their lines."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from inspect import getdoc
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

Schema = dict[str, object]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Final[Mapping[object, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    object: {},
    Any: {},
}


class SchemaMaker:
    """Makes the schemas of types. Objects get a definition each, which others refer to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type: of a named tuple, typed dictionary or dataclass, a reference to its definition.

        Raises TypeError for a type that JSON does not have.
        """
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            about = [argument for argument in arguments[1:] if isinstance(argument, str)]
            return self.of(arguments[0]) | ({"description": about[0]} if about else {})
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is NotRequired:
            return self.of(arguments[0])
        if origin in (tuple, list, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [each.value for each in kind]}
        if _is_object(kind):
            name = kind.__name__
            if name not in self.definitions:
                self.definitions[name] = {}  # a type may refer to itself
                self.definitions[name] = self.object([kind])
            return {"$ref": f"#/$defs/{name}"}
        raise TypeError(f"JSON has no {kind!r}")

    def object(self, parts: Sequence[object], constants: Mapping[str, str] | None = None) -> Schema:
        """Return the schema of an object with the fields of all these types, and with constant fields before them."""
        properties: dict[str, Schema] = {name: {"const": value} for name, value in (constants or {}).items()}
        optional: set[str] = set()
        for part in parts:
            for name, kind in get_type_hints(part, include_extras=True).items():
                properties[name] = self.of(kind)
                if get_origin(kind) is NotRequired:
                    optional.add(name)
        return {
            "description": " ".join(about for part in parts if (about := _about(part))),
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name not in optional],
            "additionalProperties": False,
        }

    def _union(self, kinds: Sequence[Any]) -> Schema:
        parts = [self.of(kind) for kind in kinds]
        if all(part.keys() == {"type"} for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}


def _is_object(kind: object) -> bool:
    return is_typeddict(kind) or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _about(kind: object) -> str:
    """Return the description of a type on one line, in plain text."""
    return " ".join((getdoc(kind) or "").replace("``", "").split())
