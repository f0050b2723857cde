"""Tar archives whose members are read anywhere, and in any order: a packed one is unpacked once in a process.

A packed archive can be read only from its beginning. With thousands of members, each of them would unpack all that is
before it.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from lzma import LZMAError
from typing import IO, Final, NamedTuple

from coordinator_core.errors import InputError
from coordinator_core.wire.batch_format import ReadAt

MOST_BYTES: Final = 64 << 30
"""The largest archive that is unpacked; its file is in the folder for temporary files until the process ends."""

KEPT: Final = 4
"""Number of archives that a process keeps open."""

PIECE: Final = 1 << 20
"""Bytes that are unpacked at a time."""


class ArchivedFile(NamedTuple):
    """A file in an archive: its name, and its place and size in the unpacked archive in bytes."""

    name: str
    place: int
    size: int


def members(path: str) -> Iterator[ArchivedFile]:
    """Yield the files in an archive in their order.

    Raises:
        InputError: the archive is damaged, or unpacks to more than ``MOST_BYTES``.
        OSError: it cannot be read.
    """
    yield from _archive(path).members.values()


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


def _archive(path: str) -> _Archive:
    state = os.stat(path)
    return _opened(path, state.st_size, state.st_mtime_ns)


def is_archive(path: str) -> bool:
    """Return whether a file is a tar archive, packed or not.

    Raises:
        InputError: the file is packed, and damaged before that is known.
    """
    with _reading(path):
        return tarfile.is_tarfile(path)


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
    except (tarfile.TarError, EOFError, zlib.error, LZMAError) as error:
        raise InputError(f"{path}: the archive is damaged: {error}") from None


@lru_cache(maxsize=KEPT)
def _opened(path: str, size: int, modified_ns: int) -> _Archive:
    with _reading(path):
        file = _unpacked(path)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            segments = {
                member.name: ArchivedFile(member.name, member.offset_data, member.size)
                for member in archive
                if member.isfile() and not member.issparse()
            }
    return _Archive(file, segments)


def _unpacked(path: str) -> IO[bytes]:
    """Return the archive itself if it is not packed, otherwise a temporary file with what it unpacks to."""
    try:
        with tarfile.open(path, "r:"):
            return open(path, "rb")
    except tarfile.ReadError:
        pass
    with tarfile.open(path) as archive:
        packed = archive.fileobj
        assert packed is not None
        packed.seek(0)
        file = tempfile.TemporaryFile(prefix="coordinator-audit-")  # noqa: SIM115  kept open as long as it is cached
        while piece := packed.read(PIECE):
            if file.tell() + len(piece) > MOST_BYTES:
                raise InputError(f"{path}: unpacks to more than {MOST_BYTES} bytes: unpack it yourself")
            file.write(piece)
        file.seek(0)
        return file
