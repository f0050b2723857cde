"""The modules of record fields are what the schemas say now, and mypy refuses a field that no schema has."""

from pathlib import Path

import pytest
from mypy import api as mypy

from jobs.typed_records import PLACE, modules

ROOT = Path(__file__).parents[2]
MADE = modules()

HANDLER = """
from coordinator_core.groups.epoch_records import MemberRecord
from coordinator_core.record_fields.consumer_group import ConsumerGroupMetadataRecord
from coordinator_core.record_fields.coordinator_requests import JoinGroupRequest
from coordinator_core.record_fields.offset_commit import OffsetCommitValue
from coordinator_core.record_fields.share_group import ShareGroupMemberMetadataRecord
from coordinator_core.records import CoordinatorRecord


def seen(record: ConsumerGroupMetadataRecord) -> tuple[str, int, int]:
    value = record.value
    if value is None:
        return record.key["groupId"], 0, 0
    return record.key["groupId"], value["epoch"], value.get("metadataHash", 0)


def asked(record: MemberRecord) -> str | None:
    value = record.value
    if value is not None and "serverAssignor" in value:
        return value["serverAssignor"]
    return None


def joining(data: JoinGroupRequest) -> list[bytes]:
    return [protocol["metadata"] for protocol in data["protocols"]]


def written(offset: int) -> OffsetCommitValue:
    return {"offset": offset, "metadata": "", "commitTimestamp": 0}
"""


@pytest.mark.parametrize("name", sorted(MADE))
def test_a_module_is_current(name: str) -> None:
    assert (PLACE / name).read_text(encoding="utf-8") == MADE[name], "run python -m jobs.typed_records"


def test_no_module_is_left_from_before() -> None:
    assert {each.name for each in PLACE.glob("*.py")} == {*MADE, "__init__.py", "beyond_schema.py"}


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory):
    cache = tmp_path_factory.mktemp("mypy")

    def run(text: str) -> list[str]:
        options = ["--strict", "--no-error-summary", "--cache-dir", str(cache), "--config-file", ""]
        out, err, _ = mypy.run([*options, "-c", text])
        assert err == ""
        return out.splitlines()

    return run


def test_mypy_takes_the_fields_of_a_record(check, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert check(HANDLER) == []


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('value["epoch"]', 'value["epooch"]', 'TypedDict "ConsumerGroupMetadataValue" has no key "epooch"'),
        ('record.key["groupId"]', 'record.key["group"]', 'TypedDict "GroupIdKey" has no key "group"'),
        ('value.get("metadataHash", 0)', 'value.get("hash", 0)', "Incompatible return value type"),
        ('value.get("metadataHash", 0)', 'value["epoch"] + ""', "Unsupported operand types"),
        ('"commitTimestamp": 0', '"timestamp": 0', 'Missing key "commitTimestamp"'),
        ("record: ConsumerGroupMetadataRecord", "record: CoordinatorRecord", "not indexable"),
        ('data["protocols"]', 'data["protocol"]', 'TypedDict "JoinGroupRequest" has no key "protocol"'),
        ('return value["serverAssignor"]', 'return value["serverAsignor"]', 'has no key "serverAsignor"'),
        ("record: ConsumerGroupMetadataRecord", "record: ShareGroupMemberMetadataRecord", 'has no key "epoch"'),
    ],
)
def test_mypy_refuses_what_no_schema_has(check, monkeypatch, right, wrong, said):
    monkeypatch.chdir(ROOT)
    assert HANDLER.count(right)
    assert any(said in line for line in check(HANDLER.replace(right, wrong)))
