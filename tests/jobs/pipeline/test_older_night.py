"""A night over the log of an older broker, whose batches have no times: the tables say what the files say."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.offsets.steps import StepCause
from coordinator_core.records import AnyRecord
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.sources.files import GROUP_LOG
from tests.commands import rows_of_command
from tests.core.audit.offsets.test_steps import generation
from tests.core.builders import GroupLog
from tests.core.wire.segments import message
from tests.jobs.logs import write_segment
from tests.jobs.pipeline.test_without_spark import night_here

LATE_MS = 3_600_000


def written(record: AnyRecord, offset: int, version: int = 3) -> bytes:
    """The record in message format 0."""
    value = None if record.value is None else encode_value(record.type, version, record.value)
    return message(offset, encode_key(record.type, record.key), value, magic=0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``logs``, and the ``tables`` of a night: a member commits what it does not own; a group without members ends."""
    home = tmp_path_factory.mktemp("older")
    log, simple = GroupLog("g"), GroupLog("simple")
    begun = generation(log, 1, a=[0], b=[1])
    records = [begun._replace(value={**(begun.value or {}), "currentStateTimestamp": LATE_MS})]
    records += [log.commit("orders", 0, 10, metadata="a"), log.commit("orders", 0, 5, metadata="b")]
    records += [simple.commit("orders", 0, 7)]
    records += [records[-1]._replace(value=None)]
    for number, record in enumerate(records[1:], 1):
        if record.value is not None:
            records[number] = record._replace(value={**record.value, "commitTimestamp": LATE_MS + 1_000 * number})
    batches = [written(record, number) for number, record in enumerate(records)]
    write_segment(home / "logs" / f"{GROUP_LOG}-0", batches)
    night_here(home, home / "logs")
    return home


def asked(home: Path, *words: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The answer from the tables and that from the files."""
    of_tables = rows_of_command(*words, "--tables", str(home / "tables"), "--cluster", "c")
    return of_tables, rows_of_command(*words, "--log", str(home / "logs"))


def test_a_member_that_did_not_own_the_partition_set_it_back(home: Path) -> None:
    stored, read = asked(home, "commits", "g")
    assert stored == read
    (back,) = [row for row in read if row["kind"] == "rewound"]
    assert (back["cause"], back["committer"], back["owner"]) == (StepCause.NOT_OWNER, "b", "a")
    assert back["since"]["timestamp_ms"] == LATE_MS + 2_000


def test_a_group_that_only_committed_and_has_nothing_left_is_gone(home: Path) -> None:
    stored, read = asked(home, "groups")
    assert stored == read
    assert [row["group"] for row in read if "group" in row] == ["g"]
    stored, read = asked(home, "offsets", "g", "--at", "1970-01-01T01:00:01Z")
    assert stored == read
    assert [row["offset"] for row in read if "topic" in row] == [10]
