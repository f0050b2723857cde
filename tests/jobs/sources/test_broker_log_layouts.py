"""Files of brokers' application logs in the layouts in which people have them: each says what the original says."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from jobs.sources.broker_logs import read_broker_logs
from tests.broker_layouts import COARSE, DOCUMENTS, EXACT, layouts
from tests.shared_data import ROOT

CONTEXT = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
LOGGER = "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
MEMBER = 'my "own" app, [eu] (1)-00000000-0000-4000-8000-000000000001'
HOSTILE = [
    f"[GroupId g] Dynamic member {MEMBER} has left group through explicit `LeaveGroup` request; client reason: "
    'said "bye" (org.x.Y) [z], \\o/',
    f"Member {MEMBER} in group a group has failed, removing it from the group.",
    f"Group g removed dynamic members who haven't joined: [{MEMBER}, {MEMBER[:-1]}2]",
    f"Assignment received from leader {MEMBER} for group g for generation 3. The group has 2 members, 0 of which are "
    "static.",
    f"Preparing to rebalance group g in state PreparingRebalance with old generation 3 (reason: Adding new member "
    f"{MEMBER} with group instance id None; client reason: (a) [b]).",
]
TEXT = (ROOT / "data" / "samples" / "incident" / "server.log").read_text() + "".join(
    f"[2026-11-23 19:26:{at:02},123] INFO {CONTEXT}{text} {LOGGER}\n" for at, text in enumerate(HOSTILE)
)
OF_TIME = ("written", "local_ms", "timestamp_ms", "resolution_ms", "line", "file", "level")


def read(folder: Path, content: str | bytes, warnings: list[str] | None = None) -> list[BrokerEvent]:
    """The events of a file; nothing is to be warned of unless ``warnings`` is given."""
    path = folder / "server.log"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_broker_logs([path], pytest.fail if warnings is None else warnings.append))


def said(found: list[BrokerEvent]) -> list[BrokerEvent]:
    """The events of messages, without what depends on the layout."""
    nothing = dict.fromkeys(OF_TIME)
    return [each._replace(**nothing, text="") for each in found if not each.kind.startswith("file_")]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*EXACT, *COARSE, *DOCUMENTS])
def test_each_layout_says_the_same(tmp_path: Path, name: str) -> None:
    expected = read(tmp_path, TEXT)
    found = read(tmp_path, dict(layouts(TEXT))[name])
    assert said(found) == said(expected)
    assert [each.reason for each in found if each.member_id == MEMBER] == [
        'said "bye" (org.x.Y) [z], \\o/',
        None,
        None,
        None,
    ]
    assert {each.kind for each in found} >= {EventKind.FILE_BEGINS, EventKind.FILE_ENDS}
    for own, original in zip(found, expected, strict=True):
        assert own.local_ms is not None
        assert original.local_ms is not None
        if name in COARSE:
            assert own.resolution_ms == 1000 or own.kind.startswith("file_")
            assert own.local_ms <= original.local_ms < own.local_ms + 1000
        else:
            assert (own.local_ms, own.resolution_ms) == (original.local_ms, 1)


def test_the_newest_line_may_be_the_first(tmp_path: Path) -> None:
    """As logcli prints them, and Grafana and Kibana download them."""
    expected = read(tmp_path, TEXT)
    found = read(tmp_path, "".join(reversed(TEXT.splitlines(keepends=True))))
    assert sorted(map(str, said(found))) == sorted(map(str, said(expected)))
    for kind in (EventKind.FILE_BEGINS, EventKind.FILE_ENDS):
        assert [each.local_ms for each in found if each.kind == kind] == [
            each.local_ms for each in expected if each.kind == kind
        ]


@pytest.mark.parametrize("date", ["", "11/10/2026 "])
def test_lines_without_a_time_are_counted_and_equal_ones_stay(tmp_path: Path, date: str) -> None:
    """The clock alone is not a time, and neither is a date that may be of two months."""
    line = f"{date}19:26:30,123 INFO {CONTEXT}{HOSTILE[0]} {LOGGER}\n"
    warnings: list[str] = []
    found = [each for each in read(tmp_path, line * 3, warnings) if not each.kind.startswith("file_")]
    assert [each.local_ms for each in found] == [None] * 3
    assert "server.log:1: this line has no time that is understood" in warnings[0]
    assert warnings[0].endswith("such lines of the file: 3")


def test_a_line_of_many_brackets_is_no_line_of_the_coordinator(tmp_path: Path) -> None:
    warnings: list[str] = []
    assert read(tmp_path, "[" * 50_000 + "\n", warnings) == []
    assert len(warnings) == 1
    assert "no line of the group coordinator" in warnings[0]


def test_members_of_a_list_may_have_any_client_id(tmp_path: Path) -> None:
    late = [each.member_id for each in read(tmp_path, TEXT) if each.kind == EventKind.MEMBER_TIMED_OUT]
    assert late == [MEMBER, f"{MEMBER[:-1]}2"]


def test_lines_with_the_part_of_a_message_that_are_not_understood_are_counted(tmp_path: Path) -> None:
    strange = f"[2026-11-23 19:26:30,123] INFO {CONTEXT}Preparing to rebalance group g, since it is Monday {LOGGER}\n"
    warnings: list[str] = []
    read(tmp_path, TEXT + strange + strange.replace("Monday", "Friday"), warnings)
    line = TEXT.count("\n") + 1
    assert warnings == [
        f"{tmp_path}/server.log:{line}: this line has 'Preparing to rebalance group' and is not understood; "
        "such lines of the file: 2"
    ]


def test_the_level_is_told_by_lines_of_the_coordinator_alone(tmp_path: Path) -> None:
    other = "[2026-11-23 19:26:30,123] INFO [BrokerServer id=1] shutting down (kafka.server.BrokerServer)\n"
    failed = (
        f"[2026-11-23 19:26:30,123] ERROR {CONTEXT}Failed to load metadata from __consumer_offsets-3 with epoch 4 due "
        "to java.lang.IllegalStateException: no. (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)\n"
    )
    warnings: list[str] = []
    found = read(tmp_path, other + failed, warnings)
    assert [each.kind for each in found][:2] == [EventKind.COORDINATOR_STOPPED, EventKind.COORDINATOR_FAILED]
    assert len(warnings) == 1
    assert "no line of the group coordinator" in warnings[0]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_file_may_be_packed_as_texts_may(tmp_path: Path, codec: str) -> None:
    packed = pa.Codec(codec).compress(TEXT.encode(), asbytes=True)
    assert read(tmp_path, packed) == read(tmp_path, TEXT)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_may_be_in_utf_16(tmp_path: Path, encoding: str) -> None:
    assert read(tmp_path, f"\ufeff{TEXT}".encode(encoding)) == read(tmp_path, TEXT)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_file_that_was_cut_is_read_up_to_there(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    whole = (TEXT * 300).encode()
    packed = compress(b"".join(b"%d %s" % (number, line) for number, line in enumerate(whole.splitlines(True))))
    warnings: list[str] = []
    found = read(tmp_path, packed[: len(packed) * 2 // 3], warnings)
    assert any("was read up to there" in each for each in warnings)
    if compress is gzip.compress:
        assert len(found) > 20


def test_the_end_of_a_file_may_be_far_from_its_last_time(tmp_path: Path) -> None:
    """A broker that starts writes its configuration over hundreds of lines without a time."""
    configuration = "".join(f"\tsetting.{number} = value\n" for number in range(700))
    plain = read(tmp_path, TEXT)
    found = read(tmp_path, configuration + TEXT + configuration)
    bounds = [[each.local_ms for each in events if each.kind.startswith("file_")] for events in (plain, found)]
    assert bounds[0] == bounds[1]
    assert None not in bounds[0]
