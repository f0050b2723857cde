"""The schema files: complete, described, and readable wherever the package lies."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_core.errors import SchemaError
from coordinator_core.records import ConnectRecordType, Family, RecordType
from coordinator_core.wire.message_layout import Array, Scalar, Sized, layout
from coordinator_core.wire.schema import Field, Message, embedded_schemas, record_schemas
from tests.shared_data import ROOT


def all_messages() -> Iterator[Message]:
    for family in Family:
        for schema in record_schemas(family).values():
            yield schema.value
            if schema.key:
                yield schema.key
    for embedded in embedded_schemas().values():
        yield embedded.message


def all_fields(fields: tuple[Field, ...]) -> Iterator[Field]:
    for field in fields:
        yield field
        yield from all_fields(field.fields)


def test_every_record_type_of_the_group_coordinator_has_a_schema_of_its_name() -> None:
    assert {schema.type: schema.name for schema in record_schemas(Family.GROUP).values()} == {
        record_type.value: record_type.name for record_type in RecordType
    }


def test_every_record_type_of_the_proposed_connect_group_has_a_schema() -> None:
    assert {schema.type: schema.value.name for schema in record_schemas(Family.CONNECT).values()} == {
        ConnectRecordType.GROUP_METADATA: "ConnectWorkerGroupMetadataValue",
        ConnectRecordType.CONNECTORS_TASKS_METADATA: "ConnectWorkerGroupConnectorsTasksMetadataValue",
        ConnectRecordType.MEMBER_METADATA: "ConnectWorkerGroupMemberMetadataValue",
        ConnectRecordType.TARGET_ASSIGNMENT: "ConnectWorkerGroupTargetAssignmentValue",
        ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT: "ConnectWorkerGroupCurrentMemberAssignmentValue",
        ConnectRecordType.CONFIGURATION: "ConnectWorkerGroupConfigurationValue",
    }


def test_share_state_and_cluster_metadata_have_schemas() -> None:
    assert [schema.name for schema in record_schemas(Family.SHARE).values()] == ["SHARE_SNAPSHOT", "SHARE_UPDATE"]
    assert set(record_schemas(Family.METADATA)) == {
        *range(6),
        7,
        8,
        9,
        12,
        15,
        17,
        20,
        21,
        *range(23, 26),
        *range(27, 30),
    }


def test_every_schema_and_field_is_described() -> None:
    for family in Family:
        for schema in record_schemas(family).values():
            assert schema.about
            if family is not Family.CONNECT:
                assert set(schema.written) == {str(version) for version in schema.value.versions}, schema.name
    for message in all_messages():
        assert all(field.about for field in all_fields(message.fields)), message.name


def test_tagged_fields_have_defaults_and_tags_are_distinct() -> None:
    for message in all_messages():
        for version in message.versions:
            tags = [tag for tag, _ in layout(message, version).tagged]
            assert len(set(tags)) == len(tags)


def test_version_four_of_offset_commits_is_compact_and_first_to_have_a_topic_id() -> None:
    value = record_schemas(Family.GROUP)[RecordType.OFFSET_COMMIT].value
    third, fourth = layout(value, 3), layout(value, 4)
    assert [slot.name for slot in third.slots] == ["offset", "leaderEpoch", "metadata", "commitTimestamp"]
    assert third.slots[2].node == Sized("string", compact=False, nullable=False)
    assert fourth.slots[2].node == Sized("string", compact=True, nullable=False)
    assert [(tag, slot.name, slot.node) for tag, slot in fourth.tagged] == [(0, "topicId", Scalar("uuid"))]


def test_a_version_that_a_message_does_not_have_is_refused() -> None:
    value = record_schemas(Family.GROUP)[RecordType.OFFSET_COMMIT].value
    with pytest.raises(SchemaError, match="OffsetCommitValue has no version 5"):
        layout(value, 5)


def test_a_nullable_range_covers_only_some_versions() -> None:
    message = embedded_schemas()["ConnectProtocolAssignment"].message
    nullable = []
    for version in message.versions:
        node = next(slot.node for slot in layout(message, version).slots if slot.name == "assignment")
        assert isinstance(node, Array)
        nullable.append(node.nullable)
    assert nullable == [False, True, True]


def test_schemas_are_read_from_a_zip_on_the_path(tmp_path: Path) -> None:
    """As Spark ships the package to its workers."""
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for source in (ROOT / "coordinator_core").rglob("*.py"):
            target.write(source, source.relative_to(ROOT))
        for source in (ROOT / "schemas").rglob("*.json"):
            target.write(source, Path("coordinator_core") / source.relative_to(ROOT))
    program = (
        "from coordinator_core.wire import schema, record_codec; from coordinator_core.records import Family;"
        "assert 'package.zip' in schema.__file__, schema.__file__;"
        "print(len(schema.record_schemas(Family.GROUP)), record_codec.decode_key(bytes([0, 2, 0, 1, 103])))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONPATH": str(archive)}, capture_output=True, text=True
    )
    assert found.stdout.split(" ", 1) == ["23", "(2, {'group': 'g'})\n"], found.stderr
