"""A stored state has one text, wherever nights cut the log and in whichever process it is written."""

import os
import random
import subprocess
import sys
from collections import defaultdict
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from coordinator_core.audit.group_audit import GroupAudit, ShareAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord, Family
from jobs.simulate.partition import simulate_here
from jobs.simulate.scenario_file import load_scenario
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.core.groups.share_delivery import decoded_records
from tests.shared_data import ROOT

WHOLE = Coverage({partition: [(0, 10_000)] for partition in range(50)})
SETTINGS = AuditSettings()
SAMPLES = ROOT / "data" / "samples" / "logs"
SHOP = ROOT / "data" / "samples" / "shop"
SCENARIO = ROOT / "tests" / "fuzz" / "scenario.yaml"
"""Groups of the types, and of the topologies, that the samples do not have."""
PROCESS = "from tests.core.audit.test_state_order import {0}, digest; print(digest({0}))"

Logs = dict[tuple[Family, str], list[AnyRecord]]


@cache
def read(folder: Path) -> tuple[Logs, TopicHistory]:
    """The records of each group of a folder of logs, and the topics."""
    groups: Logs = defaultdict(list)
    files = defaultdict(list)
    for file in find_logs([folder]):
        files[file.family, file.partition].append(file)
    for (family, _), parts in files.items():
        if family is not Family.METADATA:
            for record in LogReader(parts, pytest.fail).records():
                groups[family, record.group_id].append(record)
    return groups, fold_metadata_log(LogReader(files[Family.METADATA, 0], pytest.fail).records())


def begun(family: Family, group_id: str, topics: TopicHistory) -> GroupAudit | ShareAudit:
    if family is Family.SHARE:
        return ShareAudit.begin(group_id, topics, WHOLE)
    return GroupAudit.begin(group_id, family, topics, WHOLE, SETTINGS, from_start=True)


def resumed(text: str, family: Family, topics: TopicHistory) -> GroupAudit | ShareAudit:
    if family is Family.SHARE:
        return ShareAudit.resume(text, topics, WHOLE)
    return GroupAudit.resume(text, topics, WHOLE, SETTINGS)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("simulated")
    for _ in simulate_here(load_scenario(SCENARIO), 1, logs, "segments"):
        pass
    return logs


@pytest.fixture(params=["samples", "simulated"])
def folder(request: pytest.FixtureRequest) -> Path:
    if request.param == "samples":
        return SAMPLES
    simulated: Path = request.getfixturevalue("simulated")
    return simulated


def test_a_night_after_any_record_gives_the_texts_of_one_pass(folder: Path) -> None:
    """One fold goes on, one is read again at a few records, one often: of a short log after every record."""
    groups, topics = read(folder)
    chance, compared = random.Random(5), 0
    for (family, group_id), records in groups.items():
        whole = begun(family, group_id, topics)
        sometimes = begun(family, group_id, topics)
        often = begun(family, group_id, topics)
        nights = chance.sample(range(len(records)), min(4, len(records)))
        for number, record in enumerate(records):
            is_looked_at = len(records) < 100 or number % 10 == 0
            if is_looked_at:
                often = resumed(often.state(), family, topics)
            if number in nights:
                sometimes = resumed(sometimes.state(), family, topics)
            rows = whole.feed(record, 0)
            assert sometimes.feed(record, 0) == rows
            assert often.feed(record, 0) == rows
            if is_looked_at:
                assert often.state() == sometimes.state() == whole.state()
                assert often.open_rows() == sometimes.open_rows() == whole.open_rows()
                compared += 1
        assert often.state() == sometimes.state() == whole.state()
    assert compared > 200


def digest(folder: Path) -> str:
    """Of all rows and states of the groups of a folder of logs, in the order in which they are made."""
    groups, topics = read(folder)
    found = sha256()
    for (family, group_id), records in groups.items():
        audit = begun(family, group_id, topics)
        for record in records:
            found.update(repr(audit.feed(record, 0)).encode())
        found.update(repr((audit.open_rows(), audit.state())).encode())
    return found.hexdigest()


@pytest.mark.parametrize("folder", ["SAMPLES", pytest.param("SHOP", marks=pytest.mark.long)])
def test_the_order_of_sets_in_a_process_does_not_matter(folder: str) -> None:
    """Python iterates over sets of strings in another order in each process."""
    digests = set()
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROCESS.format(folder)]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1


def offset_end(records: list[AnyRecord]) -> int:
    return max(record.at.offset for record in records) + 1


def night_of(record: AnyRecord, ends: dict[int, list[int]]) -> int:
    """How many nights ended before the record, in its partition of the log."""
    return sum(record.at.offset >= end for end in ends[record.at.partition])


def test_share_partitions_of_several_log_partitions_come_in_any_order() -> None:
    """A night reads one partition of the share state log after the other, and so the nights mix them."""
    groups: dict[str, list[AnyRecord]] = defaultdict(list)
    for record in decoded_records():
        groups[record.group_id].append(record)
    chance, mixed = random.Random(5), 0
    for group_id, records in groups.items():
        assert [record.at.partition for record in records] == sorted(record.at.partition for record in records)
        whole, pieces = ShareAudit.begin(group_id, None, WHOLE), ShareAudit.begin(group_id, None, WHOLE)
        rows = [row for record in records for row in whole.feed(record)]
        ends = {partition: chance.choices(range(offset_end(records)), k=2) for partition in (0, 1)}
        ordered = sorted(records, key=lambda record: (night_of(record, ends), record.at))
        mixed += ordered != records
        found = []
        for record in ordered:
            pieces = ShareAudit.resume(pieces.state(), None, WHOLE)
            found += pieces.feed(record)
        assert sorted(found, key=repr) == sorted(rows, key=repr)
        assert pieces.open_rows() == whole.open_rows()
        assert pieces.state() == whole.state()
    assert mixed > 3
