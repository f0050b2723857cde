"""Files that may be packed, by gzip, bzip2, xz, zstd or lz4, and texts that may be in UTF-16: their first bytes tell.

PowerShell writes UTF-16 where the output of a command goes to a file.
"""

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

HEAD_BYTES: Final = 1 << 16
"""Bytes from which it is found what a file is."""

DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, pa.ArrowException)
"""What reading a packed file raises where it is cut or damaged; bzip2 and Arrow raise an OSError without a number."""


def _by_arrow(codec: str) -> Callable[[IO[bytes]], IO[bytes]]:
    return lambda raw: io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec))


CODECS: Final[dict[bytes, Callable[[IO[bytes]], object]]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _by_arrow("zstd"),
    b"\x04\x22\x4d\x18": _by_arrow("lz4"),
}
"""How packed files begin, and what unpacks them."""

UTF16_MARKS: Final = ((codecs.BOM_UTF16_LE, 3), (codecs.BOM_UTF16_BE, 2))
"""How a text in UTF-16 begins, and which of its bytes is the first zero: each text that is read begins in ASCII. Other
bytes that begin so are damage of what they stand in.
"""

PIECE: Final = 1 << 16
"""Bytes of UTF-16 that are converted at a time."""


class _FromUtf16(io.RawIOBase):
    """A text in UTF-16 as UTF-8."""

    def __init__(self, text: Any) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._rest and (piece := self._text.read(PIECE)):
            self._rest = self._decoder.decode(piece).encode("utf-8", "replace")
        count = min(len(into), len(self._rest))
        into[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def close(self) -> None:
        self._text.close()
        super().close()


def opened(path: str | Path) -> Any:
    """Open a file: unpacked if it is packed, in UTF-8 if it begins with the mark of another encoding, and without that.

    Raises:
        OSError: it cannot be opened.
    """
    raw = open(path, "rb")  # noqa: SIM115  the caller closes it
    head = raw.peek(8)[:8]
    stream: Any = next((unpack(raw) for begin, unpack in CODECS.items() if head.startswith(begin)), raw)
    try:
        head = stream.peek(4)[:4]
    except (*DAMAGED, OSError):  # whoever reads it finds that, too
        return stream
    if any(head.startswith(mark) and head.find(b"\0") == at for mark, at in UTF16_MARKS):
        return io.BufferedReader(_FromUtf16(stream))
    if head.startswith(codecs.BOM_UTF8):
        stream.read(3)
    return stream


def is_packed(path: str | Path) -> bool:
    """Return whether a file is packed."""
    with open(path, "rb") as raw:
        return raw.read(8).startswith(tuple(CODECS))


def head_of(path: str | Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file, unpacked as far as it can be; raises OSError of the file system."""
    head = bytearray()
    with opened(path) as stream:
        try:
            while len(head) < size and (piece := stream.read1(min(4096, size - len(head)))):
                head += piece
        except DAMAGED:
            pass
        except OSError as error:
            if error.errno is not None:
                raise
    return bytes(head)
