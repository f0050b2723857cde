"""A watch says once, when it begins, what the logs that it follows lack."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coordinator_core.audit.settings import AuditSettings
from jobs.cli.console import Console
from jobs.cli.watch import Watch, missing
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from jobs.watch.growing_logs import GrowingLogs
from jobs.watch.state_file import StateFile
from tests.jobs.logs import batches
from tests.jobs.watch.samples import SAMPLES, followed, rows_of
from tests.matrix.removals import damaged, removals

METADATA = "__cluster_metadata-0"
SHARE = "__share_group_state"


def said(folder: Path, capsys: pytest.CaptureFixture[str], rounds: int = 1, saved: StateFile | None = None) -> str:
    watch = Watch(GrowingLogs([folder], pytest.fail), followed(), saved, Console(quiet=True))
    watch.begin()
    for _ in range(rounds):
        watch.tell_round(lambda *_, **__: None)
    watch.save()
    return " ".join(capsys.readouterr().err.split())


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES, tmp_path / "logs")
    return tmp_path / "logs"


def test_whole_logs_lack_nothing(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(logs, capsys) == ""


@pytest.mark.parametrize(
    ("lacking", "reason"),
    [
        (["__consumer_offsets-1"], "1 of 4 partitions of __consumer_offsets were not given (1)"),
        ([METADATA], "the metadata log (__cluster_metadata) was not given"),
        ([METADATA, "__consumer_offsets-3"], "1 of 4 partitions of __consumer_offsets were not given (3)"),
        (
            [METADATA, *(f"__consumer_offsets-{number}" for number in (1, 2, 3))],
            "no metadata log says how many partitions __consumer_offsets has",
        ),
        ([f"{SHARE}-0", f"{SHARE}-1"], f"the share state log ({SHARE}) was not given"),
        ([f"{SHARE}-1"], f"1 of 2 partitions of {SHARE} were not given (1)"),
    ],
)
def test_what_was_not_given_is_said_once(
    logs: Path, capsys: pytest.CaptureFixture[str], lacking: Sequence[str], reason: str
) -> None:
    for name in lacking:
        shutil.rmtree(logs / name)
    assert said(logs, capsys, rounds=3).count(reason) == 1


def test_a_broker_lists_all_partitions(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (METADATA, *(f"__consumer_offsets-{number}" for number in (1, 2, 3))):
        shutil.rmtree(logs / name)
    source, groups = GrowingLogs([logs], pytest.fail), followed()
    assert "no metadata log says" in " ".join(missing(groups, source))
    monkeypatch.setattr(GrowingLogs, "has_all", True)
    assert missing(groups, source) == [
        "the metadata log (__cluster_metadata) was not given: which topics there were, "
        "and when they changed, is not known"
    ]


def test_a_watch_that_goes_on_says_it_again(tmp_path: Path, logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The metadata log is read again from its beginning, so that only what is really missing is."""
    shutil.rmtree(logs / "__consumer_offsets-2")
    for _ in range(2):
        saved = StateFile(tmp_path / "state", "")
        text = said(logs, capsys, saved=saved)
        saved.close()
        assert "(2)" in text
        assert "metadata" not in text


def test_an_empty_partition_was_given(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (logs / "__consumer_offsets-1").glob("*.log"):
        file.write_bytes(b"")
    assert said(logs, capsys) == ""


def test_a_log_without_its_first_segment_lacks_records(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, second, *_ = sorted((logs / "__consumer_offsets-3").glob("*.log"))
    file.unlink()
    first = int(second.stem)
    assert f"__consumer_offsets-3 {first} (lost up to {first - 1})" in said(logs, capsys)


CHANGES: dict[str, Callable[[Path], object]] = {
    "whole": lambda folder: None,
    "a damaged batch": damaged(1, 3),
    **{name: removal.change for name, removal in removals([0, 1]).items() if name.startswith("unreadable")},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_watch_doubts_what_a_question_to_the_same_log_doubts(logs: Path, change: str) -> None:
    CHANGES[change](logs)
    groups, ignore = followed(lambda message: None), lambda message: None
    for new in GrowingLogs([logs], ignore).poll():
        groups.feed(new)
    groups.begin()
    expected = rows_of(group_histories(find_logs([logs]), ignore, audit=AuditSettings()))
    assert rows_of(map(groups.history, groups.groups)) == expected
    assert all(getattr(row, "history_complete", True) for row in expected) == (change == "whole")


def test_a_metadata_log_with_a_hole_is_not_whole(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (logs / METADATA).glob("*.log")
    found = list(batches(file.read_bytes()))
    missing = found.pop(len(found) // 2)[0]
    file.write_bytes(b"".join(data for _, data in found))
    assert f"the metadata log has a hole before offset {missing + 1}" in said(logs, capsys)
