"""The modules of ``coordinator_core/record_fields``: ``python -m jobs.typed_records`` writes them from ``schemas/``.

Each message becomes one ``TypedDict``, but for keys that many record types have, each struct inside it another, and
each record type a ``CoordinatorRecord`` of its key and value. Control records, and those of the metadata log that no
code looks into, have no types. A field that the decoder does not yield in every version, or only if it was written (a
tagged or an optional field), is ``NotRequired``. A request to the coordinator becomes one ``TypedDict``, too: the model
fills in what a client left out, so that each field is there. A test compares the modules that are checked in with what
this makes.

The types are final, so that mypy tells those of a union apart by their fields. A value has besides a field that no
record has, ``_type``: without it mypy drops from a union each type that has all fields of another.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import Final, NamedTuple

from coordinator_core import record_fields
from coordinator_core.errors import SchemaError
from coordinator_core.records import Family, MetadataRecordType
from coordinator_core.wire.schema import (
    CoordinatorRequest,
    Field,
    Message,
    RecordSchema,
    coordinator_requests,
    embedded_schemas,
    record_schemas,
)

PLACE: Final = Path(record_fields.__file__).parent
MADE: Final = "Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."
WIDTH: Final = 120

_PYTHON: Final = {
    "boolean": "bool",
    "int8": "int",
    "int16": "int",
    "uint16": "int",
    "int32": "int",
    "int64": "int",
    "uuid": "str",
    "string": "str",
    "utf16_string": "str",
    "bytes": "bytes",
}
_GROUP_MODULES: Final = ("consumer_group", "share_group", "streams_group")
"""Modules of the record types of ``__consumer_offsets`` whose names begin so."""
_KEYS: Final = {("groupId",): "GroupIdKey", ("groupId", "memberId"): "MemberKey"}
"""The keys that many record types have, by their fields: they are written once, in ``beyond_schema``."""
_METADATA: Final = frozenset(
    {
        MetadataRecordType.REGISTER_BROKER,
        MetadataRecordType.UNREGISTER_BROKER,
        MetadataRecordType.TOPIC,
        MetadataRecordType.PARTITION,
        MetadataRecordType.CONFIG,
        MetadataRecordType.PARTITION_CHANGE,
        MetadataRecordType.FEATURE_LEVEL,
        MetadataRecordType.FENCE_BROKER,
        MetadataRecordType.UNFENCE_BROKER,
        MetadataRecordType.REMOVE_TOPIC,
        MetadataRecordType.BROKER_REGISTRATION_CHANGE,
    }
)
"""The records of the metadata log whose fields are read; all others only decode."""


class _Class(NamedTuple):
    """One ``TypedDict``: its base classes, and for each field the annotation and what it is."""

    name: str
    bases: tuple[str, ...]
    fields: dict[str, tuple[str, str]]

    @property
    def layout(self) -> dict[str, str]:
        """The annotation of each field."""
        return {name: annotation for name, (annotation, _) in self.fields.items()}


def modules() -> dict[str, str]:
    """The text of each generated module by its file name."""
    records: dict[str, list[RecordSchema]] = {}
    for family in (Family.GROUP, Family.CONNECT, Family.SHARE, Family.METADATA):
        for schema in record_schemas(family).values():
            if family is not Family.METADATA or schema.type in _METADATA:
                records.setdefault(_module_of(schema), []).append(schema)
    bodies = {name: list(_records(schemas)) for name, schemas in records.items()}
    bodies["embedded"] = [
        line for schema in embedded_schemas().values() for line in _value(schema.message, schema.about)
    ]
    made = {f"{name}.py": _module(f"{name.replace('_', ' ')} records", body) for name, body in bodies.items()}
    requests = [line for request in coordinator_requests().values() for line in _request(request)]
    return made | {"coordinator_requests.py": _module("requests to the coordinator", requests)}


def _module_of(schema: RecordSchema) -> str:
    if schema.family is not Family.GROUP:
        return str(schema.family.value)
    name = schema.name.lower()
    known = (module for module in _GROUP_MODULES if name.startswith(module))
    return next(known, "classic_group" if name.startswith("group") else "offset_commit")


def _module(subject: str, body: list[str]) -> str:
    text = "\n".join(body)
    typing = ", ".join(word for word in ("Literal", "NotRequired", "TypedDict", "final") if word in text)
    shared = ", ".join(word for word in (*_KEYS.values(), "TrailingBytes", "UnknownTaggedFields") if word in text)
    imports = [f"from typing import {typing}"] if typing else []
    if typing and shared:
        imports.append("")
    if shared:
        imports.append(f"from coordinator_core.record_fields.beyond_schema import {shared}")
    if "CoordinatorRecord[" in text:
        imports.append("from coordinator_core.records import CoordinatorRecord")
    return "\n".join([f'"""Fields of the {subject}. {MADE}"""', "", *imports, *body, ""])


def _records(schemas: Iterable[RecordSchema]) -> Iterator[str]:
    for schema in schemas:
        key = None if schema.key is None else _KEYS.get(tuple(field.name for field in schema.key.fields))
        if schema.key is not None and key is None:
            key = schema.key.name
            yield from _class(_message(schema.key), f"Key of {schema.name}.")
        yield from _value(schema.value, schema.about)
        if key is not None:
            line = f"{_stem(schema.value)}Record = CoordinatorRecord[{key}, {schema.value.name}]"
            yield from ("", "")
            yield from _split(line, "[", "]") if len(line) > WIDTH else (line,)


def _split(line: str, opening: str, closing: str) -> Iterator[str]:
    """A line too long for one, as the formatter breaks it."""
    head, inner = line.removesuffix(closing).split(opening, 1)
    yield head + opening
    yield "    " + inner
    yield closing


def _stem(message: Message) -> str:
    return message.name.removesuffix("Value").removesuffix("Request")


def _value(message: Message, about: str) -> Iterator[str]:
    """The classes of a value or an embedded blob, those of its structs first."""
    yield from _structs(message)
    made = _message(message)
    made.fields["_type"] = (f'NotRequired[Literal["{message.name}"]]', "In no record: it sets this type apart.")
    yield from _class(made, about)


def _request(request: CoordinatorRequest) -> Iterator[str]:
    """The classes of a request, those of its structs first."""
    message = request.message
    yield from _structs(message)
    yield from _class(_typed_dict(message, message.name, message.fields, message.versions), request.about)


def _structs(message: Message) -> Iterator[str]:
    structs: dict[str, tuple[_Class, list[str]]] = {}
    _add_structs(structs, message, message.fields, message.versions)
    for struct, used_by in structs.values():
        yield from _class(struct, f"Struct of {', '.join(f'``{name}``' for name in used_by)}.")


def _message(message: Message) -> _Class:
    return _typed_dict(message, message.name, message.fields, message.versions, ("TrailingBytes",))


def _add_structs(
    structs: dict[str, tuple[_Class, list[str]]], message: Message, fields: Iterable[Field], versions: range
) -> None:
    """Add the structs among some fields, those inside first; raises SchemaError if one name has two layouts."""
    for field in fields:
        if not field.fields:
            continue
        _add_structs(structs, message, field.fields, field.versions)
        made = _typed_dict(message, _stem(message) + field.struct, field.fields, field.versions)
        known, used_by = structs.setdefault(field.struct, (made, []))
        if made.layout != known.layout:
            raise SchemaError(f"{message.name} has two structs {field.struct!r}: one name is for one layout")
        if field.name not in used_by:
            used_by.append(field.name)


def _typed_dict(
    message: Message, name: str, fields: Iterable[Field], versions: range, bases: tuple[str, ...] = ()
) -> _Class:
    if message.flexible:
        bases = (*bases, "UnknownTaggedFields")
    annotated = {field.name: (_annotation(message, field, versions), _about(field, versions)) for field in fields}
    return _Class(name, bases or ("TypedDict",), annotated)


def _annotation(message: Message, field: Field, versions: range) -> str:
    """The type of a field as the decoder yields it, of a message or struct that has these versions."""
    name = field.type.removeprefix("[]")
    kind = _stem(message) + field.struct if name == "struct" else _PYTHON[name]
    if field.type.startswith("[]"):
        kind = f"list[{kind}]"
    if field.nullable:
        kind += " | None"
    is_always_there = field.tag is None and not field.optional and field.versions == versions
    return kind if is_always_there else f"NotRequired[{kind}]"


def _about(field: Field, versions: range) -> str:
    if field.tag is not None:
        return f"{field.about} Tagged: absent unless it was written."
    if field.versions != versions:
        first, last = field.versions.start, field.versions.stop - 1
        return f"{field.about} In versions {first} to {last}." if last > first else f"{field.about} In version {first}."
    return field.about


def _class(made: _Class, about: str) -> Iterator[str]:
    yield from ("", "", "@final", f"class {made.name}({', '.join(made.bases)}):")
    yield from _docstring(about)
    if made.fields:
        yield ""
    for name, (annotation, text) in made.fields.items():
        line = f"    {name}: {annotation}"
        if len(line) + len("  # ") + len(text) <= WIDTH:
            yield f"{line}  # {text}"
        else:
            yield from (f"    # {part}" for part in wrap(text, WIDTH - 6, break_on_hyphens=False))
            yield line


def _docstring(text: str) -> Iterator[str]:
    first, *more = wrap(text, WIDTH - 10, break_long_words=False, break_on_hyphens=False)
    yield f'    """{first}' + ("" if more else '"""')
    yield from (f"    {line}" for line in more)
    if more:
        yield '    """'


def main() -> None:
    """Write the modules."""
    for name, text in modules().items():
        (PLACE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
