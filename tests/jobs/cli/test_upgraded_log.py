"""A log that brokers of 3.9 to 4.4 wrote in turn, from ``python -m tests.broker.upgrade``: nothing is called wrong."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.broker.kafka import Line
from tests.broker.upgrade.expectations import (
    PROFILES,
    differing_holders,
    is_undecidable,
    profiles_by_release,
    streams_releases,
    verdicts,
)
from tests.commands import rows_of_command
from tests.shared_data import ROOT


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("upgraded")
    with tarfile.open(ROOT / "tests" / "data" / "upgrade.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def seen(upgraded: Path) -> list[Line]:
    return [json.loads(line) for line in (upgraded / "seen.jsonl").read_text().splitlines()]


def test_each_target_fits_the_profile_of_its_release(upgraded: Path, seen: list[Line]) -> None:
    rows = verdicts(upgraded / "logs")
    unknown = [each for each in rows if each["verdict"] != "identical"]
    assert {each["verdict"] for each in unknown} <= {"unknown"}
    assert all(map(is_undecidable, unknown))
    assert len(unknown) < len(rows) / 10
    assert streams_releases(rows, seen) == {"4.1.2", "4.2.1", "4.3.1", "4.4.0"}
    found = profiles_by_release(rows, seen)
    assert found.keys() == PROFILES.keys()
    for release, names in found.items():
        assert PROFILES[release] in names
        assert names <= {PROFILES[release], "kafka-4.1"}


def test_without_the_metadata_log_nothing_is_called_wrong(upgraded: Path, tmp_path: Path) -> None:
    for folder in (upgraded / "logs").glob("__consumer_offsets-*"):
        shutil.copytree(folder, tmp_path / folder.name)
    rows = [each for each in rows_of_command("audit", "--log", tmp_path) if each["table"] == "target_audits"]
    assert {each["verdict"] for each in rows} == {"identical", "unknown"}
    recorded = [each for each in rows if each["verdict"] == "identical"]
    assert {each["fitted"].split(", ")[-1] for each in recorded if each["group_type"] == "CONSUMER"} >= {
        "kafka-4.0.1 on Java 17"
    }


def test_members_hold_what_their_clients_said(upgraded: Path, seen: list[Line]) -> None:
    last = {each["release"]: each for each in seen if each.get("clients")}
    assert last.keys() == PROFILES.keys()
    assert list(differing_holders(upgraded / "logs", list(last.values()))) == []
