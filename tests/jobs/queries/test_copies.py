"""Copies of a log partition by several brokers, one with records that were never replicated (KIP-101)."""

import itertools
import re
import shutil
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.api import CoordinatorAudit
from tests.commands import rows_of_command
from tests.jobs.logs import batches
from tests.matrix.answers import questions
from tests.matrix.sources import Files, StoredTables
from tests.shared_data import ROOT

SHOP = ROOT / "data" / "samples" / "shop"
LOG = "__consumer_offsets-1"
SEGMENT = "00000000000000000000.log"


def _at(data: bytes, base: int, epoch: int) -> bytes:
    """A batch with another base offset and leader epoch: its CRC does not cover them."""
    return struct.pack(">q", base) + data[8:12] + struct.pack(">i", epoch) + data[16:]


@pytest.fixture
def brokers(tmp_path: Path) -> dict[str, Path]:
    """The logs of three brokers: ``dead`` went on at epoch 1 after the others had a new leader, and is the longest."""
    read = list(batches((SHOP / LOG / SEGMENT).read_bytes()))
    half, last = len(read) // 2, len(read) - 1
    first = [_at(data, base, 1) for base, data in read[:half]]
    live = [*first, *(_at(data, base, 3) for base, data in read[half:])]
    tail, offset = list[bytes](), read[half][0]
    while offset <= read[last][0] + 50:
        for _, data in read[: half // 2]:
            tail.append(_at(data, offset, 1))
            offset += 1 + struct.unpack_from(">i", data, 23)[0]
    made = {"dead": [*first, *tail], "live": live, "slow": live[:-3]}
    for name, copied in made.items():
        folder = tmp_path / "brokers" / name
        shutil.copytree(SHOP / "__cluster_metadata-0", folder / "__cluster_metadata-0")
        (folder / LOG).mkdir()
        (folder / LOG / SEGMENT).write_bytes(b"".join(copied))
    return {name: tmp_path / "brokers" / name for name in made}


def said(given: Sequence[Path]) -> tuple[list[object], str]:
    asked = questions([], "orders", [])
    answers = [Files(given).ask(asked[name]) for name in ("groups", "rebalances", "findings", "audit")]
    return [answer.rows for answer in answers], answers[0].said


def test_the_newest_leader_decides_whatever_the_order_of_the_copies(brokers: dict[str, Path]) -> None:
    expected, _ = said([brokers["live"]])
    for order in itertools.permutations(brokers.values()):
        found, warnings = said(order)
        assert found == expected
        assert warnings.count("were never replicated") == 1
        assert f"{brokers['dead'] / LOG}: the records of {LOG} from offset " in warnings


def test_archives_of_brokers_are_copies_too(brokers: dict[str, Path], tmp_path: Path) -> None:
    expected, _ = said([brokers["live"]])
    archives = []
    for name, folder in brokers.items():
        archives.append(tmp_path / f"{name}.tar.gz")
        with tarfile.open(archives[-1], "w:gz") as archive:
            archive.add(folder, arcname=".")
    found, warnings = said(archives)
    assert found == expected
    assert "were never replicated" in warnings


def test_a_night_takes_in_what_the_newest_leader_has(brokers: dict[str, Path], tmp_path: Path) -> None:
    asked = questions([], "orders", [])["groups"]
    audit = CoordinatorAudit(None, str(tmp_path / "tables"))
    audit.ingest(str(brokers["dead"]), str(brokers["live"]))
    audit.decode()
    audit.replay()
    rows = rows_of_command(*asked.arguments, "--tables", audit.tables.location)
    assert rows == Files([brokers["live"]]).ask(asked).rows


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "what_to_do"),
    [
        ("live", "dead", "the first was never replicated.*leave this copy out"),
        ("dead", "live", "the second was never replicated.*take both copies in at once, into new tables"),
    ],
)
def test_a_copy_that_comes_another_night_is_named_with_what_to_do(
    brokers: dict[str, Path], tmp_path: Path, spark: SparkSession, first: str, second: str, what_to_do: str
) -> None:
    tables = StoredTables(spark, tmp_path / "tables", [[brokers[first]], [brokers[second]]])
    said = tables.ask(questions([], "orders", [])["groups"]).said
    assert re.search(rf"{LOG} offset \d+: .*{second}.*{first}.*{what_to_do}", said, re.DOTALL), said
