"""State as JSON, for the tables that keep it from one run to the next: one coder for all classes of state (pydantic).

The form follows from the classes: a dataclass is an object with its field names, a tuple a list, bytes are base64, and
the order of a dict is kept. A field of any other class says with ``StoredAs`` how it is written. Every text carries the
version of the form: a text of another version, or one that lacks a field or has one too many, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from coordinator_core.errors import StateFormatError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreConfig, CoreSchema, SchemaSerializer, SchemaValidator, ValidationError

VERSION: Final = 56
"""Of the form of all state; raised with every change of a class of state or of what its values mean."""

_CONFIG: Final[CoreConfig] = {
    "strict": True,
    "extra_fields_behavior": "forbid",
    "ser_json_bytes": "base64",
    "val_json_bytes": "base64",
}

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class StoredAs:
    """Annotates a field whose class has no form of its own: its value is written as one of the type ``form``.

    ``write`` makes that of the value, ``read`` the value of that; it raises ValueError for what it cannot read.
    """

    form: Any
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        form = handler.generate_schema(self.form)
        written = core_schema.plain_serializer_function_ser_schema(self.write, return_schema=form)
        return core_schema.no_info_after_validator_function(self.read, form, serialization=written)


@dataclass(frozen=True, eq=False, slots=True)
class OneOf:
    """Annotates a field that holds a state of one of some classes: it is written as a pair, the name and the state."""

    names: Mapping[type, str]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        pairs: dict[object, CoreSchema] = {
            name: core_schema.tuple_schema([core_schema.literal_schema([name]), handler.generate_schema(of)])
            for of, name in self.names.items()
        }
        pair = core_schema.tagged_union_schema(pairs, lambda pair: pair[0] if pair else None)
        written = core_schema.plain_serializer_function_ser_schema(
            lambda state: (self.names[type(state)], state), return_schema=pair
        )
        return core_schema.no_info_after_validator_function(itemgetter(1), pair, serialization=written)


class StateForm(Generic[T]):
    """The JSON form of one class of state; ``noun`` is its name in messages."""

    def __init__(self, of: type[T], noun: str) -> None:
        self._of = of
        self._noun = noun

    def encode(self, state: T) -> str:
        """Return the state as one JSON text."""
        _, serializer = self._coders
        return serializer.to_json({"version": VERSION, "state": state}).decode()

    def decode(self, text: str) -> T:
        """Return the state that ``encode`` wrote.

        Raises:
            StateFormatError: the text is something else, or of another version.
        """
        from pydantic_core import ValidationError

        validator, _ = self._coders
        try:
            state: T = validator.validate_json(text)["state"]
        except ValidationError as error:
            raise StateFormatError(self._complaint(text, error)) from error
        return state

    @cached_property
    def _coders(self) -> tuple[SchemaValidator, SchemaSerializer]:
        """Made with the first use: pydantic takes a while to load."""
        from pydantic import TypeAdapter
        from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

        state = _exact(TypeAdapter(self._of).core_schema)
        fields = {"version": core_schema.literal_schema([VERSION]), "state": state}
        stored = core_schema.typed_dict_schema(
            {name: core_schema.typed_dict_field(schema, required=True) for name, schema in fields.items()},
            config=_CONFIG,
        )
        return SchemaValidator(stored, _CONFIG), SchemaSerializer(stored, _CONFIG)

    def _complaint(self, text: str, error: ValidationError) -> str:
        try:
            version = json.loads(text)["version"]
        except (ValueError, TypeError, KeyError):
            return f"not a stored {self._noun}"
        if version != VERSION:
            return f"a {self._noun} stored in form {version}, this release reads {VERSION}: rebuild from the log"
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"a stored {self._noun} that its form does not explain: {place}: {first['msg']}"


def _exact(schema: object) -> Any:
    """Return a schema in which no field may be left out, and each class is read and written as ``_CONFIG`` says."""
    if isinstance(schema, list):
        return [_exact(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "default":
        return _exact(schema["schema"])
    exact = {name: _exact(part) for name, part in schema.items()}
    # A class does not inherit the configuration of what holds it.
    return exact | {"config": _CONFIG} if schema.get("type") == "dataclass" else exact
