"""Generated readers: the values and the errors of the plain ones, for whole and for damaged bytes."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import DecodeError
from coordinator_core.wire.codec import reader, writer
from coordinator_core.wire.generated_reader import fast_reader, generated
from coordinator_core.wire.message_layout import Struct, layout
from coordinator_core.wire.schema import Message, RecordSchema, embedded_schemas
from tests.core.wire.strategies import every_version, fields
from tests.core.wire.test_mutations import mutated

BLOBS = [
    (schema.message, version)
    for schema in embedded_schemas().values()
    for version in (schema.message.versions.start, schema.message.versions.stop - 1)
]
DAMAGES = 20


def says(read: Any, data: bytes, position: int) -> object:
    """What a reader returns, or its error in full."""
    try:
        return read(data, position)
    except DecodeError as error:
        return type(error), str(error), error.path, error.position


def check(struct: Struct, data: st.DataObject) -> None:
    """Both readers agree on a value of the struct behind two other bytes, and on damaged forms of it."""
    out = bytearray(b"\0\1")
    value = data.draw(fields(struct))
    writer(struct)(out, value)
    read, plain = fast_reader(struct), reader(struct)
    assert generated(struct)(bytes(out), 2) == plain(bytes(out), 2)
    assert list(read(bytes(out), 2)[0]) == list(plain(bytes(out), 2)[0]), "fields are in another order"
    choose = random.Random(len(out))
    for _ in range(DAMAGES):
        damaged = mutated(bytes(out), choose)
        assert says(read, damaged, 2) == says(plain, damaged, 2)


@pytest.mark.parametrize(
    ("schema", "version"), every_version(), ids=lambda part: part.name if isinstance(part, RecordSchema) else f"v{part}"
)
@given(data=st.data())
def test_records_are_read_as_by_the_plain_reader(schema: RecordSchema, version: int, data: st.DataObject) -> None:
    check(layout(schema.value, version), data)


@pytest.mark.parametrize(
    ("message", "version"), BLOBS, ids=lambda part: part.name if isinstance(part, Message) else f"v{part}"
)
@given(data=st.data())
def test_blobs_are_read_as_by_the_plain_reader(message: Message, version: int, data: st.DataObject) -> None:
    check(layout(message, version), data)
