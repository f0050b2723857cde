"""Records of several types of groups under one id and one member id, in any order: no broker writes that, and nothing
may end in a traceback.
"""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.record_codec import DecodedRecord, decode_record
from tests.core.wire.samples import sample_records

HELD_BY_ANOTHER_TYPE = ((22, 22, 1, 14), (11, 22, 8), (14, 10, 1, 22))
"""Types of records that once ended in a traceback: a current assignment of one type, and a member of another."""


@cache
def of_one_member() -> list[DecodedRecord]:
    """The sample records of groups, all of group ``g`` and of member ``m``."""
    found = []
    for sample in sample_records():
        if sample.family is not Family.GROUP:
            continue
        try:
            record = decode_record(sample.key, sample.value, sample.family)
        except CoordinatorAuditError:
            continue
        ids = {"group": "g", "groupId": "g", "memberId": "m"}
        found.append(record._replace(key={**record.key, **{name: ids[name] for name in ids if name in record.key}}))
    return found


def audit(records: list[DecodedRecord]) -> GroupAudit:
    audit = GroupAudit.begin("g", Family.GROUP, None, Coverage({}), AuditSettings(), from_start=True)
    for number, (record_type, version, key, value) in enumerate(
        (each.type, each.value_version, each.key, each.value) for each in records
    ):
        audit.feed(
            CoordinatorRecord(LogPosition(0, number, 1_000 + number), record_type, key, value, version, number), 0
        )
    audit.open_rows()
    return audit


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=8))
def test_any_records_of_one_id_are_audited(numbers: list[int]) -> None:
    records = of_one_member()
    picked = [records[number % len(records)] for number in numbers]
    assert audit(picked).state()


def test_a_member_of_another_type_has_nothing_of_this_type() -> None:
    records = of_one_member()
    for types in HELD_BY_ANOTHER_TYPE:
        some = [next(each for each in records if each.type == wanted and each.value is not None) for wanted in types]
        assert audit(some).state()
