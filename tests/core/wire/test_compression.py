"""The codecs: both ways, in the framings that clients use, within bounds."""

import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import LogFormatError
from coordinator_core.wire import compression
from coordinator_core.wire.batch_format import CODECS
from coordinator_core.wire.compression import XERIAL_HEAD, compress, decompress


@given(st.sampled_from(range(len(CODECS))), st.binary(max_size=300), st.integers(1, 400))
def test_both_ways(codec, data, times):
    assert bytes(decompress(codec, compress(codec, data * times))) == data * times


def test_xerial_framing_in_blocks_and_appended_streams():
    data = bytes(range(256)) * 300
    packed = compress(2, data)
    assert packed.startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert bytes(decompress(2, packed + packed)) == data + data


@pytest.mark.parametrize("name", ["gzip", "zstd", "lz4", "snappy"])
def test_what_expands_too_far_is_refused(name, monkeypatch):
    monkeypatch.setattr(compression, "MAX_BATCH_BYTES", 50_000)
    codec = CODECS.index(name)
    assert len(decompress(codec, compress(codec, bytes(50_000)))) == 50_000
    with pytest.raises(LogFormatError, match="expands to more than 50000 bytes"):
        decompress(codec, compress(codec, bytes(60_000)))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@given(st.binary(max_size=80))
def test_garbage_stays_in_the_error_tree_and_small(codec, data):
    try:
        result = decompress(codec, data)
    except LogFormatError:
        result = b""
    assert len(result) <= 1 << 20


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_every_truncation_and_many_flips_stay_in_the_error_tree(codec):
    packed = compress(codec, b"some bytes, some more bytes, and the same bytes " * 20)
    for cut in range(len(packed)):
        try:
            decompress(codec, packed[:cut])
        except LogFormatError:
            continue
    for at in range(len(packed)):
        for bit in (1, 0x80, 0xFF):
            flipped = bytearray(packed)
            flipped[at] ^= bit
            try:
                decompress(codec, bytes(flipped), magic=at % 2)
            except LogFormatError:
                continue


@pytest.mark.parametrize(
    "data", [XERIAL_HEAD + struct.pack(">i", 100) + b"short", XERIAL_HEAD + struct.pack(">i", -1), XERIAL_HEAD + b"\0"]
)
def test_xerial_blocks_that_lie_about_their_length(data):
    with pytest.raises(LogFormatError, match="snappy"):
        decompress(2, data)


def test_a_snappy_block_that_claims_gigabytes_allocates_nothing():
    with pytest.raises(LogFormatError, match="snappy"):
        decompress(2, b"\xff\xff\xff\xff\x0f" + b"x" * 20)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_kafka_does_not_have(codec):
    with pytest.raises(LogFormatError, match=f"codec {codec}"):
        decompress(codec, b"")


def test_snappy_blocks_of_zero_bytes():
    assert bytes(decompress(2, XERIAL_HEAD)) == b""
    assert bytes(decompress(2, bytes(cramjam.snappy.compress_raw(b"")))) == b""
