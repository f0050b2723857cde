"""Archives whose members are read anywhere, and in any order: a packed one is unpacked once in a process.

Tar, packed or not, zip, and a packed segment, which is taken for an archive of one file. A packed archive can be read
only from its beginning: with thousands of members, each of them would unpack all that is before it. Of an archive that
was cut, what is before the cut is there.
"""

import io
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from lzma import LZMAError
from pathlib import PurePath
from typing import IO, Any, Final, NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.wire.batch_format import ReadAt
from jobs.sources.file_kinds import begins_with_batch
from jobs.sources.packed import CODECS, DAMAGED, head_of, is_packed, opened

MOST_BYTES: Final = 64 << 30
"""The largest archive that is unpacked; its file is in the folder for temporary files until the process ends."""

KEPT: Final = 4
"""Number of archives that a process keeps open."""

PIECE: Final = 1 << 16
"""Bytes that are unpacked at a time."""

LOG_SUFFIX: Final = ".log"
"""Of a segment."""

ZIP: Final = b"PK\x03\x04"
"""How a zip archive begins."""


class ArchivedFile(NamedTuple):
    """A file in an archive: its name, and its place and size in the unpacked archive in bytes."""

    name: str
    place: int
    size: int


def members(path: str) -> Iterator[ArchivedFile]:
    """Yield the files in an archive in their order; of one that was cut those of whole folders before the cut.

    Raises:
        InputError: the archive is damaged, or unpacks to more than ``MOST_BYTES``.
        OSError: it cannot be read.
    """
    yield from _archive(path).members.values()


def cut_at(path: str) -> str | None:
    """Return the member in which an archive was cut, or the last one before the cut; None: it is whole."""
    return _archive(path).cut_at


def read_member(path: str, name: str) -> ReadAt:
    """Return a function that reads a number of bytes at a position of a file in an archive.

    Raises:
        InputError: there is no such file, and as ``members`` does.
    """
    archive = _archive(path)
    member = archive.members.get(name)
    if member is None:
        raise InputError(f"{path}:{name}: not a file in the archive")

    def read_at(position: int, size: int) -> bytes:
        size = max(0, min(size, member.size - position))
        return os.pread(archive.file.fileno(), size, member.place + position)

    return read_at


class _Archive(NamedTuple):
    """An unpacked archive and its files by name; of two with one name the later one counts, as when it is unpacked."""

    file: IO[bytes]
    members: dict[str, ArchivedFile]
    cut_at: str | None = None


def _archive(path: str) -> _Archive:
    state = os.stat(path)
    return _opened(path, state.st_size, state.st_mtime_ns)


def is_archive(path: str) -> bool:
    """Return whether a file is a zip or tar archive, packed or not, or a packed segment.

    Raises:
        OSError: it cannot be read.
    """
    head = head_of(path)
    if head.startswith(ZIP):
        return not is_packed(path)
    return _is_tar(head) or (begins_with_batch(head) and is_packed(path))


def holds_files(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is an archive, or packed."""
    return head.startswith((ZIP, *CODECS)) or _is_tar(head)


def _is_tar(head: bytes) -> bool:
    try:
        # Of zeros, tarfile says that they are an archive without files.
        return (
            any(head[: tarfile.BLOCKSIZE]) and len(head) >= tarfile.BLOCKSIZE and tarfile.is_tarfile(io.BytesIO(head))
        )
    except (tarfile.TarError, ValueError):
        return False


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Name the archive in what unpacking raises.

    Raises:
        InputError: the archive is damaged.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:  # of the file system
            raise
        raise InputError(f"{path}: the archive is damaged: {error}") from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, LZMAError) as error:
        raise InputError(f"{path}: the archive is damaged: {error}") from None
    except (NotImplementedError, RuntimeError) as error:  # an unknown way of packing; a password
        raise InputError(f"{path}: cannot be unpacked: {error}; unpack it yourself") from None


@lru_cache(maxsize=KEPT)
def _opened(path: str, size: int, modified_ns: int) -> _Archive:
    with _reading(path):
        head = head_of(path)
        if head.startswith(ZIP):
            return _opened_zip(path)
        return _opened_segment(path) if begins_with_batch(head) and not _is_tar(head) else _opened_tar(path)


def _opened_segment(path: str) -> _Archive:
    """Return a packed segment as an archive; the name of its folder is part of its name."""
    file: IO[bytes] = tempfile.TemporaryFile(prefix="coordinator-audit-")  # noqa: SIM115  kept open as long as it is cached
    is_whole = _unpack(path, file)
    place = PurePath(os.path.abspath(path))
    name = f"{place.parent.name}/{place.name.removesuffix('' if place.suffix == LOG_SUFFIX else place.suffix)}"
    return _Archive(file, {name: ArchivedFile(name, 0, file.tell())}, None if is_whole else name)


def _opened_zip(path: str) -> _Archive:
    file = tempfile.TemporaryFile(prefix="coordinator-audit-")  # noqa: SIM115  kept open as long as it is cached
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                place = file.tell()
                with archive.open(member) as stream:
                    _copy(stream, file, path)
                found[member.filename] = ArchivedFile(member.filename, place, file.tell() - place)
    return _Archive(file, found)


def _opened_tar(path: str) -> _Archive:
    is_cut = False
    if is_packed(path):
        file: IO[bytes] = tempfile.TemporaryFile(prefix="coordinator-audit-")  # noqa: SIM115  as above
        is_cut = not _unpack(path, file)
    else:
        file = open(path, "rb")  # noqa: SIM115  as above
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    # A whole archive ends with two blocks of zeros.
    is_cut |= any(os.pread(file.fileno(), tarfile.BLOCKSIZE, max(0, size - tarfile.BLOCKSIZE)))
    found: dict[str, ArchivedFile] = {}
    last = ""
    with tarfile.open(fileobj=file, mode="r:") as archive:
        try:
            for member in archive:
                last = member.name
                # tarfile steps over contents without a look: of the last member it would say nothing.
                is_cut |= member.offset_data + member.size > size
                # The bytes of a sparse file are not where its size says.
                if member.isfile() and not member.issparse():
                    found[member.name] = ArchivedFile(member.name, member.offset_data, member.size)
        except tarfile.ReadError:
            is_cut = True
    if not is_cut:
        return _Archive(file, found)
    # The folder at the cut may have had more files: a part of a log would pass for all of it.
    folder = last.rpartition("/")[0]
    whole = {name: member for name, member in found.items() if name.rpartition("/")[0] != folder}
    if not whole:
        raise InputError(
            f"{path}: the archive is cut or damaged within {last or 'its first file'}, and nothing is whole"
        )
    return _Archive(file, whole, last)


def _unpack(path: str, file: IO[bytes]) -> bool:
    """Write what a packed file has, as far as it can be read; return whether it is whole."""
    try:
        with opened(path) as stream:
            _copy(stream, file, path)
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        file.flush()
        return False
    return True


def _copy(stream: Any, file: IO[bytes], path: str) -> None:
    while piece := stream.read1(PIECE):  # what comes before a cut, too
        if file.tell() + len(piece) > MOST_BYTES:
            raise InputError(f"{path}: unpacks to more than {MOST_BYTES} bytes: unpack it yourself")
        file.write(piece)
    file.flush()  # it is read by its descriptor
