"""Files that a killed run leaves: whole ones, or none under their names."""

from itertools import count
from pathlib import Path

import pytest

from jobs.checks.project import write_project
from jobs.whole_files import write_whole


class Killed(BaseException):
    """The end of the process in the middle of a file."""


def dying(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """Let a number of files be written; of the next one only a half."""
    whole, left = Path.write_bytes, iter(range(files))

    def write(self: Path, data: bytes) -> int:
        if next(left, None) is None:
            whole(self, data[: len(data) // 2])
            raise Killed
        return whole(self, data)

    monkeypatch.setattr(Path, "write_bytes", write)


def content(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "great_expectations.yml")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    write_whole(file, "the first page")
    with monkeypatch.context() as patched:
        dying(patched, 0)
        with pytest.raises(Killed):
            write_whole(file, "another page")
    assert file.read_text() == "the first page"
    write_whole(file, "another page")
    assert content(tmp_path) == {"report.html": b"another page"}


def test_a_project_of_checks_that_was_cut_off_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of every twentieth file: what is there is kept, so that half a suite would stay for ever."""
    write_project(tmp_path / "quiet", "/tables")
    expected = content(tmp_path / "quiet")
    for files in count(0, 20):
        folder = tmp_path / str(files)
        with monkeypatch.context() as patched:
            dying(patched, files)
            try:
                write_project(folder, "/tables")
            except Killed:
                pass
            else:
                break
        write_project(folder, "/tables")
        assert content(folder) == expected
    assert files > 20
