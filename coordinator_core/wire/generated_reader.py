"""Readers as generated Python functions: what the readers of ``codec`` return, in a third of their time.

A reader of ``codec`` calls one closure for each value. Here the source text of one function is put together for a whole
struct and compiled. That function takes only bytes in which every length fits; at anything else it gives up, and the
reader of ``codec`` reads the same bytes again: it returns the value, or raises the error that names field and position.
"""

import struct
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from coordinator_core.errors import DecodeError
from coordinator_core.wire.codec import reader, tagged_reader
from coordinator_core.wire.message_layout import SCALAR_SIZES, Array, Node, Scalar, Sized, Slot, Struct
from coordinator_core.wire.primitives import MAX_ARRAY, Read, read_unsigned_varint, uuid_text

_FORMATS: Final = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
"""Types of numbers as the module ``struct`` names them."""

_GIVES_UP: Final = (DecodeError, IndexError, ValueError, struct.error)
"""What a generated function raises for bytes that it does not read. UnicodeDecodeError is a ValueError."""


@lru_cache(maxsize=4096)
def fast_reader(node: Struct) -> Read:
    """Return a reader of a struct that is not nullable: the values and errors of ``codec.reader``."""
    read_fast, read_exactly = generated(node), reader(node)

    def read(data: bytes, position: int) -> tuple[object, int]:
        try:
            return read_fast(data, position)
        except _GIVES_UP:
            return read_exactly(data, position)

    return read


def generated(node: Struct) -> Read:
    """Return the generated function alone; for bytes that it does not read it raises one of several exceptions."""
    return _Source().function(node)


_uuid_text = lru_cache(maxsize=1 << 14)(uuid_text)
"""The ids of the same topics stand in most records."""


class _Source:
    """The text of one function ``read(data, at)``, line by line, and the objects that it names.

    Each method that emits lines returns the expression of the value that they read. The lines move ``at`` behind it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            "varint": read_unsigned_varint,
            "uuid": _uuid_text,
            "numbers": struct.unpack_from,
        }
        self._depth = 1

    def function(self, node: Struct) -> Read:
        """Return the function that reads the struct."""
        value = self._struct(node)
        text = "\n".join(("def read(data, at):", "    size = len(data)", *self._lines, f"    return {value}, at"))
        exec(compile(text, f"<reader of {', '.join(slot.name for slot in node.slots)}>", "exec"), self._names)
        made: Read = self._names["read"]
        return made

    def _emit(self, *lines: str) -> None:
        self._lines += ["    " * self._depth + line for line in lines]

    def _name(self, value: object = None) -> str:
        """Return a name that is new in the function; it stands for ``value`` if there is one."""
        name = f"v{len(self._names)}"
        self._names[name] = value
        return name

    def _node(self, node: Node) -> str:
        match node:
            case Scalar(name):
                return self._scalar(name)
            case Array():
                return self._array(node)
            case Struct(nullable=False):
                return self._struct(node)
            case Sized(kind="string" | "bytes"):
                return self._sized(node)
        # Nullable structs and UTF-16 text are rare.
        value = self._name()
        self._emit(f"{value}, at = {self._name(reader(node))}(data, at)")
        return value

    def _scalar(self, name: str) -> str:
        if name in _FORMATS:
            return self._numbers([name])[0]
        value = self._name()
        if name == "uuid":
            self._emit("if at + 16 > size: raise ValueError", f"{value} = uuid(data[at:at + 16])", "at += 16")
        else:
            self._emit(f"{value} = data[at]", f"if {value} > 1: raise ValueError", f"{value} = {value} == 1", "at += 1")
        return value

    def _numbers(self, types: list[str]) -> list[str]:
        """Numbers that follow one another are read together."""
        values = [self._name() for _ in types]
        form = struct.Struct(">" + "".join(map(_FORMATS.__getitem__, types)))
        self._emit(f"{', '.join(values)}, = {self._name(form.unpack_from)}(data, at)", f"at += {form.size}")
        return values

    def _length(self, node: Sized | Array) -> str:
        """The length, -1 for null. A compact one below 127 is one byte."""
        if not node.compact:
            return self._scalar("int16" if isinstance(node, Sized) and node.kind == "string" else "int32")
        length = self._name()
        # A first byte from 0x80 on has others behind it, and is read again together with them.
        self._emit(f"{length} = data[at] - 1", "at += 1")
        self._emit(f"if {length} > 126:", f"    {length}, at = varint(data, at - 1)", f"    {length} -= 1")
        return length

    def _unless_null(self, node: Sized | Array, length: str, value: str) -> None:
        """Begin a block of lines that reads what is not null."""
        if node.nullable:
            self._emit(f"if {length} == -1:", f"    {value} = None", "else:")
            self._depth += 1
        # Below -1, or null where nothing may be: ``codec`` says which, and where.
        self._emit(f"if {length} < 0: raise ValueError")

    def _end_unless_null(self, node: Sized | Array) -> None:
        self._depth -= node.nullable

    def _sized(self, node: Sized) -> str:
        length, value = self._length(node), self._name()
        self._unless_null(node, length, value)
        # A slice beyond the end is no error, but a shorter value: so the end is compared.
        self._emit(f"end = at + {length}", "if end > size: raise ValueError")
        self._emit(
            f"{value} = " + ("str(data[at:end], 'utf-8')" if node.kind == "string" else "data[at:end]"), "at = end"
        )
        self._end_unless_null(node)
        return value

    def _array(self, node: Array) -> str:
        count, value = self._length(node), self._name()
        self._unless_null(node, count, value)
        # An element takes a byte at least: a larger count is damage, and must not make a list of its size.
        self._emit(f"if {count} > {MAX_ARRAY} or {count} > size - at: raise ValueError")
        element = node.element
        if isinstance(element, Scalar) and element.name in _FORMATS:
            letter, width = _FORMATS[element.name], SCALAR_SIZES[element.name]
            self._emit(f"{value} = list(numbers(f'>{{{count}}}{letter}', data, at))", f"at += {count} * {width}")
        else:
            self._emit(f"{value} = []", f"for _ in range({count}):")
            self._depth += 1
            self._emit(f"{value}.append({self._node(element)})")
            self._depth -= 1
        self._end_unless_null(node)
        return value

    def _struct(self, node: Struct) -> str:
        values: list[str] = []
        for is_number, slots in groupby(node.slots, _is_number):
            if is_number:
                values += self._numbers([slot.node.name for slot in slots if isinstance(slot.node, Scalar)])
            else:
                values += [self._node(slot.node) for slot in slots]
        fields = self._name()
        pairs = (f"{slot.name!r}: {value}" for slot, value in zip(node.slots, values, strict=True))
        self._emit(f"{fields} = {{{', '.join(pairs)}}}")
        if node.flexible:
            self._tagged(node, fields)
        return fields

    def _tagged(self, node: Struct, fields: str) -> None:
        """Most structs have no tagged fields, so that their count is 0, or one scalar, as the topic id of a commit."""
        self._emit("if data[at] == 0:", "    at += 1")
        for tag, slot in node.tagged:
            if isinstance(slot.node, Scalar) and tag < 128:
                # One field, its tag and its size are always these three bytes: one comparison instead of three varints.
                head = bytes([1, tag, SCALAR_SIZES[slot.node.name]])
                self._emit(f"elif data[at:at + 3] == {head!r}:", "    at += 3")
                self._depth += 1
                self._emit(f"{fields}[{slot.name!r}] = {self._scalar(slot.node.name)}")
                self._depth -= 1
        self._emit(f"else: at = {self._name(tagged_reader(node.tagged))}(data, at, {fields})")


def _is_number(slot: Slot) -> bool:
    return isinstance(slot.node, Scalar) and slot.node.name in _FORMATS
