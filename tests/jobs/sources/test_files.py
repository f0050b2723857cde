"""Segments in directories, as files and inside archives."""

import builtins
import os
import tarfile

import pytest

from coordinator_core.errors import GoneError, InputError
from coordinator_core.records import Family
from jobs.sources import files
from jobs.sources.files import UNKNOWN_PARTITION, find_logs
from tests.core.wire.segments import segment

SEGMENT = "00000000000000000000.log"
LATER = "00000000000000000012.log"


@pytest.fixture
def data(tmp_path):
    root = tmp_path / "data"
    for name in (
        f"__consumer_offsets-10/{SEGMENT}",
        f"__consumer_offsets-2/{LATER}",
        f"__consumer_offsets-2/{SEGMENT}",
        "__consumer_offsets-2/00000000000000000000.index",
        "__consumer_offsets-2/00000000000000000012.snapshot",
        f"__share_group_state-1/{SEGMENT}",
        f"__cluster_metadata-0/{SEGMENT}",
        "__cluster_metadata-0/00000000000000000100-0000000001.checkpoint",
        f"orders-0/{SEGMENT}",
        f"__consumer_offsets-3.0123-delete/{LATER}.deleted",
        f"__consumer_offsets-3.0123-delete/{SEGMENT}",
        f"__consumer_offsets-2.4f5e6d-future/{SEGMENT}",
        f"__consumer_offsets-4.99ab-stray/{SEGMENT}",
        "server.log",
        f"copied/{SEGMENT}",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(segment())
    return root


def told(logs):
    return [(log.topic, log.partition, log.segment) for log in logs]


def test_a_directory_by_topic_partition_and_offset(data):
    logs = find_logs([data])
    assert told(logs) == [
        ("", UNKNOWN_PARTITION, SEGMENT),
        ("__cluster_metadata", 0, SEGMENT),
        ("__consumer_offsets", 2, SEGMENT),
        ("__consumer_offsets", 2, LATER),
        ("__consumer_offsets", 10, SEGMENT),
        ("__share_group_state", 1, SEGMENT),
    ]
    assert [log.family for log in logs[:2]] == [Family.GROUP, Family.METADATA]
    assert {log.size for log in logs} == {len(segment())}


def test_snapshots_of_the_metadata_log_on_demand(data):
    found = find_logs([data / "__cluster_metadata-0"], snapshots=True)
    assert [log.segment for log in found] == [SEGMENT, "00000000000000000100-0000000001.checkpoint"]


def test_a_named_file_counts_whatever_its_folder(data):
    assert told(find_logs([data / "orders-0" / SEGMENT])) == [("orders", 0, SEGMENT)]


def test_the_same_file_named_twice_is_read_once(data):
    folder = data / "__consumer_offsets-10"
    assert len(find_logs([folder, folder])) == 1


def test_a_relative_path_knows_its_folder(data, monkeypatch):
    monkeypatch.chdir(data / "__consumer_offsets-10")
    assert told(find_logs([SEGMENT])) == told(find_logs(["."])) == [("__consumer_offsets", 10, SEGMENT)]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_gives_the_same_bytes(data, tmp_path, mode):
    path = tmp_path / "dump.archive"
    with tarfile.open(path, mode) as archive:
        archive.add(data, "data")
    logs = find_logs([path])
    assert told(logs) == told(find_logs([data]))
    with logs[2].open() as read_at:
        assert read_at(0, 10_000) == segment()
        assert read_at(5, 7) == segment()[5:12]
    assert logs[2].name == f"{path}:data/__consumer_offsets-2/{SEGMENT}"


def test_a_folder_is_listed_again_where_a_segment_goes_meanwhile(data, monkeypatch):
    expected, status = find_logs([data]), files._status
    going = data / "__consumer_offsets-2" / f"{9:020}.log"
    going.touch()

    def late(path):
        if path.startswith(str(going.parent)):
            going.unlink(missing_ok=True)
        return status(path)

    monkeypatch.setattr(files, "_status", late)
    assert find_logs([data]) == expected
    with pytest.raises(InputError, match="nowhere: No such file or directory"):
        find_logs([data / "nowhere"])


def test_folders_of_other_topics_that_go_meanwhile_are_passed_over(data, monkeypatch):
    """A broker on which topics come and go would never be listed as a whole."""
    expected, scan = find_logs([data]), os.scandir
    gone = [f"payments-{number}" for number in range(9)] + ["__consumer_offsets-10.0123456789abcdef-delete"]
    for name in gone:
        (data / name).mkdir()

    def late(path):
        if os.path.basename(path) in gone:
            raise FileNotFoundError(2, "No such file or directory", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", late)
    assert find_logs([data]) == expected
    gone.append("__consumer_offsets-10")
    with pytest.raises(GoneError):
        find_logs([data])


def test_a_file_that_was_named_twice_and_grew_in_between_is_read_once(data, monkeypatch):
    grown = find_logs([data / "__consumer_offsets-10"])[0].path
    status = files._status

    def growing(path):
        if path == grown:
            with open(path, "ab") as stream:
                stream.write(segment())
        return status(path)

    monkeypatch.setattr(files, "_status", growing)
    named = [log for log in find_logs([data, grown]) if log.path == grown]
    assert [log.size for log in named] == [os.path.getsize(grown)]


def test_files_are_read_at_positions(data):
    (log,) = find_logs([data / "__consumer_offsets-10"])
    with log.open() as read_at:
        assert read_at(0, 10_000) == segment()
        assert read_at(5, 7) == segment()[5:12]


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda root: root / "missing", "No such file or directory"),
        (lambda root: "", "^an empty path: No such file or directory"),
        (lambda root: root / "orders-0", "no segments of __cluster_metadata, __consumer_offsets"),
    ],
)
def test_what_holds_no_log_is_named(data, make, cause):
    with pytest.raises(InputError, match=cause) as caught:
        find_logs([make(data)])
    assert str(make(data)) in str(caught.value)


def test_a_cut_archive_is_named(data, tmp_path):
    path = tmp_path / "dump.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(data, "data")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    warnings = []
    assert len(find_logs([path], warn=warnings.append)) < len(find_logs([data]))
    assert f"{path}: the archive is cut within data/" in warnings[0]


def test_a_broken_link_is_named_itself(data):
    link = data / "__consumer_offsets-10" / "00000000000000000999.log"
    link.symlink_to("/nowhere")
    with pytest.raises(InputError, match=f"{link}: No such file"):
        find_logs([data])


def test_what_macos_puts_beside_a_segment_is_not_one(data, tmp_path):
    whole = find_logs([data])
    (data / "__consumer_offsets-10" / "._00000000000000000000.log").write_bytes(b"\0\5\x16\7" + bytes(100))
    assert find_logs([data]) == whole


def test_what_may_not_be_read_is_an_error_only_where_it_may_have_the_log(data, monkeypatch):
    expected, scan = find_logs([data]), os.scandir
    closed = ["payments-0", "lost+found"]
    for name in closed:
        (data / name).mkdir()

    def guarded(path):
        if os.path.basename(path) in closed:
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    def forbidden(path, *_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert find_logs([data]) == expected
    closed.append("__consumer_offsets-10")
    with pytest.raises(InputError, match="__consumer_offsets-10: Permission denied"):
        find_logs([data])
    monkeypatch.setattr(builtins, "open", forbidden)
    with pytest.raises(InputError, match=f"{expected[0].path}: Permission denied"), expected[0].open():
        pass
