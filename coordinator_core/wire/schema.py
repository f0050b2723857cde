"""Record formats as data: loads ``schemas/*/*.json`` and describes each record type.

A schema file describes one record type (key and value) or one embedded message. Its fields use Kafka's own message
vocabulary: ``type`` (a primitive, ``struct``, or ``[]`` and the type of the elements), ``struct`` (the name of the
struct), ``versions`` (absent: all of the message), ``nullable`` (true or versions), ``tag`` (a tagged field, KIP-482),
``default`` (what Kafka reads where the field is absent, and leaves out of its JSON) and ``about``. ``flexible`` gives
the versions with compact lengths and tagged fields. An ``optional`` field is absent in another layout of the same
version, as two documents or early releases have given one number to both; ``shortType`` is the type of a field there,
where it is another one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, TypeAlias

from coordinator_core.errors import SchemaError
from coordinator_core.records import Family

Source: TypeAlias = dict[str, Any]
"""A schema as its JSON file has it, or a part of it; the module's text says what is in one."""

REQUIRED: Final = object()
"""The default of a field that has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One declared field of a message.

    ``fields`` are the fields of its struct, or of the struct elements of its array; ``struct`` is the name of that
    struct.
    """

    name: str
    type: str
    struct: str
    versions: range
    nullable: range
    tag: int | None
    default: Any
    about: str
    fields: "tuple[Field, ...]"
    optional: bool = False
    short_type: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One key, value or embedded blob in all its versions.

    ``short`` is the other layout of the same versions, without the optional fields, and with their short types; None:
    all have one layout.
    ``early`` is the layout that an early access of Kafka (3.7: KIP-848) wrote under the same version; None: none.
    """

    name: str
    versions: range
    flexible: range
    fields: tuple[Field, ...]
    short: "Message | None" = None
    early: "Message | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordSchema:
    """The schema of one record type. ``name`` is Kafka's name of the type; ``key`` is None where records have no key
    (metadata log).

    ``written`` says for each value version which Kafka versions write it.
    """

    name: str
    family: Family
    type: int
    about: str
    written: Mapping[str, str]
    key: Message | None
    value: Message


@dataclass(frozen=True, slots=True)
class Carrier:
    """A field that holds a blob: ``subscription`` or ``assignment`` of a member of a group of ``protocol_type``,
    or a field of another blob; ``protocol`` (if given) is the one that the group agreed on.
    """

    field: str
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedSchema:
    """The schema of one blob inside a classic group.

    ``version_field`` is the type of its leading version, None if it has none. ``newer_readable``: a newer version
    begins as the highest known one does. ``short_readable``: bytes that end where an older version ends are read as
    that one, whatever number is in front.
    """

    about: str
    written: Mapping[str, str]
    carriers: tuple[Carrier, ...]
    version_field: str | None
    newer_readable: bool
    short_readable: bool
    message: Message


@dataclass(frozen=True, slots=True, eq=False)
class RequestSchema:
    """A request of Kafka's protocol: its number, the header and the body of the request, and the body of its answer."""

    key: int
    header: Message
    request: Message
    response: Message


@dataclass(frozen=True, slots=True, eq=False)
class CoordinatorRequest:
    """A request that the model of the coordinator serves, in Kafka's JSON form: its fields and its versions."""

    api: str
    about: str
    message: Message


@cache
def record_schemas(family: Family) -> Mapping[int, RecordSchema]:
    """Return all record types of one log, by the number in their records."""
    schemas = (_record(source) for source in _read(family.value))
    return {schema.type: schema for schema in sorted(schemas, key=lambda schema: schema.type)}


@cache
def embedded_schemas() -> Mapping[str, EmbeddedSchema]:
    """Return all embedded blobs, by message name."""
    loaded = [_embedded(source) for source in _read("embedded")]
    return {schema.message.name: schema for schema in loaded}


@cache
def control_schemas() -> Mapping[int, Message]:
    """Return the values of the metadata log's control records (KRaft), by the type in their key."""
    return {source["type"]: _message(source["value"]) for source in _read("control")}


@cache
def request_schemas() -> Mapping[str, RequestSchema]:
    """Return the requests that this project sends to brokers, by their name."""
    parts = ("header", "request", "response")
    return {
        source["api"]: RequestSchema(source["key"], *(_message(source[part]) for part in parts))
        for source in _read("requests")
    }


@cache
def coordinator_requests() -> Mapping[str, CoordinatorRequest]:
    """Return the requests that the model of the coordinator serves, by the name of their message."""
    requests = (
        CoordinatorRequest(source["api"], source["about"], _message(source["request"]))
        for source in _read("coordinator_requests")
    )
    return {request.message.name: request for request in requests}


@cache
def broker_messages() -> tuple[Source, ...]:
    """Return the messages of brokers' application logs, in the order in which they are tried."""
    return tuple(message for source in _read("broker_log") for message in source["messages"])


def broker_log_faults() -> tuple[Source, ...]:
    """Return the known faults of Kafka with which a coordinator cannot load its log partition."""
    return tuple(fault for source in _read("broker_log") for fault in source["known_faults"])


def _root() -> Traversable:
    packaged = files("coordinator_core") / "schemas"
    if packaged.is_dir():
        return packaged
    return Path(__file__).resolve().parents[2] / "schemas"


def _read(folder: str) -> Iterator[Source]:
    place = _root() / folder
    if not place.is_dir():
        raise SchemaError(f"no schemas at {place}")
    for entry in sorted(place.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".json"):
            yield json.loads(entry.read_text(encoding="utf-8"))


def _record(source: Source) -> RecordSchema:
    return RecordSchema(
        name=source["record"],
        family=Family(source["family"]),
        type=source["type"],
        about=source["about"],
        written=source["written"],
        key=_message(source["key"]) if "key" in source else None,
        value=_message(source["value"]),
    )


def _embedded(source: Source) -> EmbeddedSchema:
    version_field = source["versionField"]
    return EmbeddedSchema(
        about=source["about"],
        written=source["written"],
        carriers=tuple(
            Carrier(carrier["field"], carrier.get("protocolType"), carrier.get("protocol"))
            for carrier in source["carriers"]
        ),
        version_field=None if version_field == "none" else version_field,
        newer_readable=source["newerReadable"],
        short_readable=source.get("shortReadable", False),
        message=_message({"name": source["message"], **source}),
    )


def _message(source: Source) -> Message:
    versions = _versions(source["versions"], range(0, 1 << 15))
    flexible = _versions(source["flexible"], versions)
    fields = _fields(source["fields"], versions)
    needed = tuple(replace(field, type=field.short_type or field.type) for field in fields if not field.optional)
    is_other = len(needed) < len(fields) or any(field.short_type for field in fields)
    short = Message(source["name"], versions, flexible, needed) if is_other else None
    early = Message(source["name"], versions, flexible, _fields(source.get("earlyAccess", []), versions))
    return Message(source["name"], versions, flexible, fields, short, early if early.fields else None)


def _fields(sources: list[Source], within: range) -> tuple[Field, ...]:
    return tuple(_field(source, within) for source in sources)


def _field(source: Source, within: range) -> Field:
    versions = _versions(source["versions"], within) if "versions" in source else within
    nullable = source.get("nullable", "none")
    return Field(
        name=source["name"],
        type=source["type"],
        struct=source.get("struct", ""),
        versions=versions,
        nullable=versions if nullable is True else _versions(nullable, versions),
        tag=source.get("tag"),
        default=source.get("default", REQUIRED),
        about=source["about"],
        fields=_fields(source.get("fields", []), versions),
        optional=source.get("optional", False),
        short_type=source.get("shortType"),
    )


def _versions(text: str, within: range) -> range:
    """``none``, ``3``, ``1-4`` or ``3+`` as a range; ``+`` ends where ``within`` does."""
    if text == "none":
        return range(0)
    low, dash, high = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return range(int(low), within.stop)
    versions = range(int(low), int(high if dash else low) + 1)
    if versions.start not in within or versions.stop > within.stop:
        raise SchemaError(f"versions {text} reach beyond those of the message")
    return versions
