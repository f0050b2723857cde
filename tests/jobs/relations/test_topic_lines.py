"""Topics from the lines of brokers' logs in tables: those of files, found before replay has found the zone of lines."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.folds.topic_lines import topics_of_lines
from coordinator_core.broker_log.lines import LineReader
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.relations.topic_lines import has_new_topic_lines, topics_of_stored_lines
from jobs.relations.topics import stored_topics, topic_news_ms, topics_given
from jobs.tables.folder_reader import FolderReader
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.snapshots import BROKER_EVENTS
from tests.core.builders import GroupLog, classic_member
from tests.jobs.relations.engines import write

LINES = """\
[2026-11-23 14:00:00,000] INFO Created log for partition t-0 in /d/t-0 with properties {} (kafka.log.LogManager)
[2026-11-23 14:00:00,010] INFO Created log for partition t-1 in /d/t-1 with properties {} (kafka.log.LogManager)
[2026-11-23 14:25:07,123] INFO [GroupCoordinator 1]: Assignment received from leader for group g for generation 1 (k.G)
[2026-11-23 14:30:00,000] INFO Log for partition t-0 is renamed to /d/t-0.7-delete and is scheduled for deletion (k.L)
[2026-11-23 14:30:00,009] INFO Log for partition t-1 is renamed to /d/t-1.8-delete and is scheduled for deletion (k.L)
""".splitlines()
ASSIGNED_MS = 1_795_443_907_123
"""The generation was written at 14:25 UTC: the broker writes times in UTC."""
MINUTE_MS = 60_000


@pytest.fixture
def tables(tmp_path: Path) -> FolderReader:
    written = LineReader("server.log").events(enumerate(LINES, 1))
    own = {"cluster": "c", "run_id": "2"}
    events: list[dict[str, Any]] = [{**own, "digest": str(each.line), **each._asdict()} for each in written]
    record = GroupLog().classic(1, [classic_member("a")])
    assert record.value is not None
    row = {
        **own,
        "log_topic": GROUP_LOG,
        "log_partition": 0,
        "log_offset": 0,
        "batch_base": 0,
        "timestamp_ms": ASSIGNED_MS + 2,
        "record_type": record.type,
        "key": encode_key(record.type, record.key),
        "value": encode_value(record.type, 3, record.value),
    }
    write(tmp_path, {BROKER_EVENTS: [*events, {**events[0], "cluster": "other", "topic": "u"}], GROUP_RECORDS: [row]})
    return FolderReader(str(tmp_path))


def test_lines_are_topics_once_a_generation_shows_their_zone(tables: FolderReader) -> None:
    known = stored_topics(tables, "c")
    assert known is not None
    minutes = (-30, -20, 0, 6)
    there = [known.at(ASSIGNED_MS + minute * MINUTE_MS) for minute in minutes]
    counts = [
        None if version is None else {name: each.partitions for name, each in version.image.by_name.items()}
        for version in there
    ]
    assert counts == [None, {"t": 2}, {"t": 2}, {}]
    assert topics_given(tables, "c") == known.given
    assert known.given.is_of_lines


def test_a_night_that_brings_such_lines_has_news_of_topics(tables: FolderReader) -> None:
    assert topic_news_ms(tables, "c", "1", "3") == -1
    assert topic_news_ms(tables, "c", "2", "3") is None
    assert not has_new_topic_lines(tables, "none", "")
    assert topics_of_stored_lines(tables, "none") is None


def test_lines_whose_zone_nothing_shows_are_no_topics() -> None:
    assert topics_of_lines(LineReader("server.log").events(enumerate(LINES, 1))) is None
