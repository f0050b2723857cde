"""The layout of one version of a message: a tree of nodes that says which bytes follow which.

Both codecs (``record_codec`` and ``batch_decode``) are derived from these trees.
"""

from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, Literal

from coordinator_core.errors import SchemaError
from coordinator_core.wire.schema import Field, Message

SCALAR_SIZES: Final = {"boolean": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8, "uuid": 16}

SizedKind = Literal["string", "bytes", "utf16_string"]
_SIZED: Final[dict[str, SizedKind]] = {"string": "string", "bytes": "bytes", "utf16_string": "utf16_string"}


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of fixed width; ``name`` is a key of SCALAR_SIZES."""

    name: str


@dataclass(frozen=True, slots=True)
class Sized:
    """Text or bytes with their length before them.

    Lengths: int16 (string), int32 (bytes), unsigned varint plus 1 (compact); ``utf16_string`` has an int32 count of
    UTF-16 code units, 0 standing for null (Kafka Streams' named topologies).
    """

    kind: SizedKind
    compact: bool
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """Elements with their count before them: int32, or an unsigned varint plus 1 (compact)."""

    element: "Node"
    compact: bool
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A named field of a struct; ``default`` is REQUIRED if it has no default."""

    name: str
    node: "Node"
    tag: int | None
    default: Any


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """Named fields, in the order in which Kafka declares them; on the wire the tagged ones are last.

    A nullable struct begins with its presence: int8 -1 or 1, and inside a tagged field an unsigned varint 0 or 1.
    """

    declared: tuple[Slot, ...]
    flexible: bool
    nullable: bool

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The fields without a tag, in wire order."""
        return tuple(slot for slot in self.declared if slot.tag is None)

    @property
    def tagged(self) -> tuple[tuple[int, Slot], ...]:
        """The tagged fields with their tags, in ascending order."""
        return tuple(sorted(((slot.tag, slot) for slot in self.declared if slot.tag is not None), key=itemgetter(0)))

    def present(self) -> "Struct":
        """Return the same struct without a presence marker."""
        return Struct(self.declared, self.flexible, nullable=False)


Node = Scalar | Sized | Array | Struct


@lru_cache(maxsize=1024)
def layout(message: Message, version: int) -> Struct:
    """Return the fields of ``message`` at ``version`` in wire order.

    Raises SchemaError for a version it does not have.
    """
    if version not in message.versions:
        raise SchemaError(f"{message.name} has no version {version}")
    return _struct(message.fields, version, version in message.flexible, nullable=False)


def smallest(node: Node) -> int:
    """Return the smallest number of bytes that a value of this node takes."""
    match node:
        case Scalar(name):
            return SCALAR_SIZES[name]
        case Sized(kind, compact):
            return 1 if compact else 2 if kind == "string" else 4
        case Array(compact=compact):
            return 1 if compact else 4
        case Struct(nullable=True):
            return 1
        case Struct():
            return sum(smallest(slot.node) for slot in node.slots) + node.flexible


def _struct(fields: tuple[Field, ...], version: int, flexible: bool, *, nullable: bool) -> Struct:
    present = [field for field in fields if version in field.versions]
    if not flexible and (tagged := [field.name for field in present if field.tag is not None]):
        raise SchemaError(f"{tagged[0]} has a tag in version {version}, which is not flexible")
    slots = (Slot(field.name, _node(field, version, flexible), field.tag, field.default) for field in present)
    return Struct(tuple(slots), flexible, nullable)


def _node(field: Field, version: int, flexible: bool) -> Node:
    nullable = version in field.nullable
    if field.type.startswith("[]"):
        element = _value(field.type[2:], field, version, flexible, nullable=False)
        return Array(element, flexible, nullable)
    return _value(field.type, field, version, flexible, nullable=nullable)


def _value(name: str, field: Field, version: int, flexible: bool, *, nullable: bool) -> Node:
    if name == "struct":
        return _struct(field.fields, version, flexible, nullable=nullable)
    if name in _SIZED:
        return Sized(_SIZED[name], flexible, nullable)
    if name in SCALAR_SIZES and not nullable:
        return Scalar(name)
    raise SchemaError(f"{field.name} has the type {name}{', nullable' if nullable else ''}, which no codec knows")
