"""The request ApiVersions, against answers of real brokers."""

import json
from typing import Any

import pytest

from coordinator_core.errors import DecodeError
from coordinator_core.wire.api_versions import features, request_bytes
from tests.shared_data import ROOT

ANSWERS: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "api_versions.json").read_text())


def answer(release: str, version: int) -> bytes:
    return bytes.fromhex(ANSWERS[release][str(version)])


def test_the_request_as_brokers_read_it() -> None:
    assert request_bytes(4, 7, "ab", "1.0") == bytes.fromhex(
        "00000015"  # 21 bytes follow
        "0012"  # ApiVersions
        "0004"  # version
        "00000007"  # correlation id
        "0002" "6162"  # client id, its length as int16
        "00"  # no tagged fields in the header
        "03" "6162"  # name, its length plus 1 as a varint
        "04" "312e30"  # version
        "00"  # no tagged fields
    )  # fmt: skip


@pytest.mark.parametrize(("release", "level"), [("3.9.2", 21), ("4.3.1", 30), ("4.4.0", 33)])
@pytest.mark.parametrize("version", [3, 4])
def test_features_that_brokers_answered(release: str, level: int, version: int) -> None:
    found = features(answer(release, version), version, version)
    assert found is not None
    assert found.finalized is not None
    assert found.supported["metadata.version"] == found.finalized["metadata.version"] == level
    # Version 3 leaves out what has 0 as its lowest level.
    assert ("kraft.version" in found.supported) is (version == 4)


def test_a_broker_that_does_not_know_the_version() -> None:
    assert features(bytes.fromhex(ANSWERS["unsupported"]), 99, 99) is None


def test_a_broker_that_does_not_know_the_finalized_features() -> None:
    known = answer("4.3.1", 4)
    tag = known.index(b"\x01\x08" + bytes(6))  # tag 1, 8 bytes, an epoch that is a small number
    found = features(known[: tag + 2] + b"\xff" * 8 + known[tag + 10 :], 4, 4)
    assert found is not None
    assert found.finalized is None
    assert found.supported["metadata.version"] == 30


@pytest.mark.parametrize("length", [0, 3, 5, 20, 400, -1])
def test_an_answer_that_is_cut_or_of_another_request(length: int) -> None:
    with pytest.raises(DecodeError):
        features(answer("4.3.1", 4)[:length], 4, 4)
    with pytest.raises(DecodeError, match="to request 4, not 5"):
        features(answer("4.3.1", 4), 4, 5)
    with pytest.raises(DecodeError, match="1 bytes after"):
        features(answer("4.3.1", 4) + b"x", 4, 4)


def test_an_error_of_the_broker() -> None:
    with pytest.raises(DecodeError, match="error 42"):
        features(answer("4.3.1", 4)[:4] + (42).to_bytes(2, "big") + bytes(4), 4, 4)
