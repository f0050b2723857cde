"""The codecs of record batches, with a bound on what they may expand to.

Kafka's snappy is the framing of the xerial library (a 16-byte head, then length-prefixed raw blocks); other clients
also write one raw block, or snappy's own framing. Kafka's lz4 is the LZ4 frame format; up to message format v0 its
header checksum was computed over the wrong bytes (KAFKA-3160), which we accept there.
"""

import struct
from collections.abc import Callable
from typing import Any

import cramjam
import xxhash

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import CODECS, MAX_BATCH_BYTES

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEAD = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK = 32 * 1024
SNAPPY_FRAMING_MAGIC = b"\xff\x06\x00\x00sNaPpY"
LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"
INT32 = struct.Struct(">i")


def decompress(codec: int, data: bytes | memoryview, *, magic: int = 2) -> bytes | memoryview:
    """Return the decompressed bytes of ``data``; ``codec`` is the number in the batch's attributes.

    Raises:
        LogFormatError: the bytes are damaged, they expand to more than MAX_BATCH_BYTES, or Kafka has no such codec.
    """
    if codec >= len(CODECS):
        raise LogFormatError(f"compression codec {codec} is not known: it is newer than this tool, or damage")
    name = CODECS[codec]
    try:
        if name == "none":
            return data
        if name == "gzip":
            return _bounded(cramjam.gzip.decompress_into, data)
        if name == "zstd":
            return _bounded(cramjam.zstd.decompress_into, data)
        if name == "lz4":
            return _bounded(cramjam.lz4.decompress_into, _with_right_checksum(data) if magic == 0 else data)
        return _snappy(data)
    except (cramjam.DecompressionError, struct.error) as error:
        raise LogFormatError(f"{name} data is damaged: {error}") from None


def compress(codec: int, data: bytes) -> bytes:
    """Return ``data`` compressed and framed as Kafka's Java producer does for that codec."""
    name = CODECS[codec]
    if name == "none":
        return data
    if name == "snappy":
        blocks = [data[at : at + XERIAL_BLOCK] for at in range(0, len(data), XERIAL_BLOCK)]
        packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
        return XERIAL_HEAD + b"".join(INT32.pack(len(block)) + block for block in packed)
    if name == "gzip":
        return bytes(cramjam.gzip.compress(data))
    if name == "lz4":
        return bytes(cramjam.lz4.compress(data))
    return bytes(cramjam.zstd.compress(data))


def _bounded(into: Callable[[Any, bytearray], int], data: bytes | memoryview) -> memoryview:
    """Decompress into a buffer that starts at a likely size and doubles up to the bound."""
    size = min(max(4096, 8 * len(data)), MAX_BATCH_BYTES)
    while True:
        target = bytearray(size)
        try:
            return memoryview(target)[: into(data, target)]
        except cramjam.DecompressionError as error:
            # The codecs say only in words that the buffer was too small; the true size is in no header that could be
            # believed.
            if "whole buffer" not in str(error):
                raise
        if size == MAX_BATCH_BYTES:
            raise LogFormatError(f"expands to more than {MAX_BATCH_BYTES} bytes")
        size = min(4 * size, MAX_BATCH_BYTES)


def _snappy(data: bytes | memoryview) -> bytes | memoryview:
    head = bytes(data[: len(SNAPPY_FRAMING_MAGIC)])
    if head == SNAPPY_FRAMING_MAGIC:
        return _bounded(cramjam.snappy.decompress_into, data)
    if not head.startswith(XERIAL_MAGIC):
        return _raw_snappy(data, MAX_BATCH_BYTES)
    blocks: list[bytes | memoryview] = []
    room = MAX_BATCH_BYTES
    at = len(XERIAL_HEAD)
    while at < len(data):
        if bytes(data[at : at + len(XERIAL_MAGIC)]) == XERIAL_MAGIC:
            at += len(XERIAL_HEAD)  # streams appended to each other: xerial's reader skips a repeated head
            continue
        (length,) = INT32.unpack_from(data, at)
        at += INT32.size
        if not 0 <= length <= len(data) - at:
            raise LogFormatError(f"snappy block of {length} bytes where {len(data) - at} are left")
        block = _raw_snappy(data[at : at + length], room)
        blocks.append(block)
        room -= len(block)
        at += length
    return b"".join(blocks)


def _raw_snappy(data: bytes | memoryview, room: int) -> memoryview:
    # Raw snappy begins with the length of its content: room is asked for before any is taken.
    length = cramjam.snappy.decompress_raw_len(data)
    if length > room:
        raise LogFormatError(f"snappy data expands to more than {MAX_BATCH_BYTES} bytes")
    target = bytearray(length)
    return memoryview(target)[: cramjam.snappy.decompress_raw_into(data, target)]


def _with_right_checksum(data: bytes | memoryview) -> bytes:
    """The frame with the header checksum as the LZ4 frame format wants it: over the descriptor without the magic."""
    frame = bytearray(data)
    if len(frame) < 7 or frame[:4] != LZ4_FRAME_MAGIC:
        return bytes(frame)
    at = 6 + (8 if frame[4] & 0x08 else 0) + (4 if frame[4] & 0x01 else 0)  # content size, dictionary id
    # Only the checksum of KAFKA-3160 is replaced: a right one stays, and one that is damaged stays wrong.
    if at < len(frame) and frame[at] == broken_lz4_checksum(frame[:at]):
        frame[at] = xxhash.xxh32_intdigest(bytes(frame[4:at])) >> 8 & 0xFF
    return bytes(frame)


def broken_lz4_checksum(head: bytes | bytearray) -> int:
    """Return the header checksum as computed in KAFKA-3160; ``head`` is the frame up to the checksum, magic
    included.
    """
    return xxhash.xxh32_intdigest(bytes(head)) >> 8 & 0xFF
