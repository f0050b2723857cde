"""The form of request data: what each field may contain, and its default. ``schemas/coordinator_requests`` declares it.

A broker never sees a request of another form: its decoder refuses it. Here the data is a dictionary from any source, so
it is checked, and refused with INVALID_REQUEST.
"""

from collections.abc import Callable, Mapping
from operator import is_, itemgetter
from typing import Any, NamedTuple, TypeVar

from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.records import Fields
from coordinator_core.wire import schema
from coordinator_core.wire.schema import Field, coordinator_requests

MAX_STRING = 32_767
"""The longest string of the protocol, in bytes."""

Check = Callable[[Any], bool]


class RequestField(NamedTuple):
    """A field: the check of a value, the default of an absent one (REQUIRED: none), the fields of its elements."""

    name: str
    fits: Check
    default: Any
    nullable: bool = False
    elements: "RequestShape | None" = None


REQUIRED: object = object()
_NEEDS_NO_CHECK = frozenset((type(None), bool))
"""Types whose values need no check once a value of the type was accepted."""


class RequestShape:
    """The fields of a structure in some versions of a request.

    Requests of one kind have values of the same few types again and again. Per tuple of value types it caches the
    checks that types alone cannot decide: lengths, ranges and elements.
    """

    def __init__(self, versions: range, *fields: RequestField) -> None:
        self.versions, self.fields = versions, fields
        names = [field.name for field in fields]
        # The first name once more, as itemgetter gives no tuple for one name alone.
        self._values: Callable[[Fields], Any] = itemgetter(*names, *names[:1])
        self._defaults: Fields = {field.name: field.default for field in fields if field.default is not REQUIRED}
        self._known: dict[tuple[type, ...], tuple[tuple[int, Check, RequestShape | None], ...]] = {}

    def inner(self, name: str) -> "RequestShape":
        """Return the form of the structures in a field; raises KeyError if there are none."""
        return {field.name: field.elements for field in self.fields if field.elements is not None}[name]

    def filled(self, data: object, where: str) -> Any:
        """Return the data itself if no field is missing; fields that the shape does not know are kept."""
        if type(data) is not dict:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{where} is not a structure.")
        try:
            values = self._values(data)
        except KeyError:
            data = self._defaults | data
            if len(data) < len(self.fields) or not all(field.name in data for field in self.fields):
                return self._slowly(data, where)
            values = self._values(data)
        types = tuple(map(type, values))
        left = self._known.get(types)
        if left is None:
            filled = self._slowly(data, where)
            self._known[types] = tuple(
                (index, field.fits, field.elements)
                for index, field in enumerate(self.fields)
                if types[index] not in _NEEDS_NO_CHECK
            )
            return filled
        filled = data
        for index, fits, elements in left:
            value = values[index]
            if not fits(value):
                raise _unfit(where, self.fields[index].name)
            if elements is not None and value:
                name = self.fields[index].name
                inner = _inner(value, elements, f"{where}.{name}")
                if inner is not value:
                    filled = dict(data) if filled is data else filled
                    filled[name] = inner
        return filled

    def _slowly(self, data: Fields, where: str) -> Fields:
        filled = dict(data)
        for name, fits, default, nullable, elements in self.fields:
            value = data.get(name, default)
            filled[name] = value
            if (value is None and nullable) or value is default is not REQUIRED:
                continue
            if value is REQUIRED or not fits(value):
                raise _unfit(where, name)
            if elements is not None and value:
                filled[name] = _inner(value, elements, f"{where}.{name}")
        return filled


def _inner(value: Any, shape: RequestShape, where: str) -> Any:
    """A structure or a list of structures with every field in it; the same object if nothing is missing."""
    if type(value) is dict:
        return shape.filled(value, where)
    filled = [shape.filled(element, where) for element in value]
    return value if all(map(is_, filled, value)) else filled


def _unfit(where: str, name: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, f"{where}.{name} is not what the protocol asks for.")


def _is_string(value: object) -> bool:
    if type(value) is not str or len(value) > MAX_STRING:
        return False
    if value.isascii():
        return True
    try:
        return len(value.encode()) <= MAX_STRING
    except UnicodeEncodeError:
        return False


_INT = frozenset((int,))


def _are_int32(value: object) -> bool:
    if type(value) is not list or not _INT.issuperset(map(type, value)):
        return False
    return not value or (min(value) >= -(2**31) and max(value) < 2**31)


def _is_list(value: object) -> bool:
    return type(value) is list


_CHECKS: dict[str, Check] = {
    "string": _is_string,
    "int32": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "int64": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "boolean": lambda value: type(value) is bool,
    "bytes": lambda value: type(value) is bytes,
    "struct": lambda value: type(value) is dict,
    "[]string": lambda value: _is_list(value) and all(map(_is_string, value)),
    "[]int32": _are_int32,
    "[]struct": _is_list,
}
"""The check of a value by the type that the schema gives to its field."""


def _request_field(field: Field) -> RequestField:
    default = REQUIRED if field.default is schema.REQUIRED else field.default
    if field.type == "bytes" and isinstance(default, str):
        default = default.encode()  # JSON has no bytes
    elements = RequestShape(field.versions, *map(_request_field, field.fields)) if field.fields else None
    return RequestField(field.name, _CHECKS[field.type], default, bool(field.nullable), elements)


_SHAPES = {
    name: RequestShape(request.message.versions, *map(_request_field, request.message.fields))
    for name, request in coordinator_requests().items()
}
DataT = TypeVar("DataT")


def shape_of(fields: type[DataT]) -> RequestShape:
    """Return the form of the request whose fields these are (a class of ``record_fields.coordinator_requests``)."""
    return _SHAPES[fields.__name__]


def checked(request: Request, fields: type[DataT]) -> DataT:
    """Return the request's data with every field of this class in it; raises ApiError for another form or version."""
    shape = shape_of(fields)
    if request.version not in shape.versions:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{request.api} has no version {request.version}")
    filled: DataT = shape.filled(request.data, request.api)
    return filled


def require(condition: bool, message: str) -> None:
    """Raise ApiError (INVALID_REQUEST) with this message unless the condition holds."""
    if not condition:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def not_blank(data: Mapping[str, Any], *names: str, of: str = "") -> None:
    """Raise ApiError for a text that consists of white space only; null is allowed. ``of`` goes before the name."""
    for name in names:
        value = data[name]
        # Java's String.trim: everything up to the space counts as white.
        if value is not None and not (value and value[-1] > " ") and not value.strip(_WHITE):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{of}{name[0].upper()}{name[1:]} can't be empty.")


_WHITE = "".join(map(chr, range(0x21)))
