"""Logs of real brokers under ``tests/data``: cut from a corpus, and a random life with what its clients wrote down."""

import json
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.queries.from_logs.history import group_histories
from jobs.sources.files import find_logs
from tests.shared_data import ROOT


@cache
def unpacked(name: str) -> Path:
    """A folder with what the archive has; it is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="real-logs-")
    _KEPT.append(folder)
    with tarfile.open(ROOT / "tests" / "data" / f"{name}.tar.xz") as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def wild() -> Path:
    """The logs of five minutes of churn on 4.3.1, in which clients competed for the processors (``wild.tar.xz``).

    No client process was started again; twice many members lost their sessions in the same second.
    """
    return unpacked("wild")


def life() -> Path:
    """The logs of a random life on 4.4.0 (``life.tar.xz``), recorded by ``tests.broker.wild``."""
    return unpacked("life") / "full"


def clients() -> list[dict[str, Any]]:
    """What was done in ``life``, and what its clients saw and did, in order of time."""
    return [json.loads(line) for line in (unpacked("life") / "truth.jsonl").read_text().splitlines()]


@cache
def histories(logs: Path) -> dict[str, GroupHistory]:
    """The history of each group in the logs; targets are not judged."""
    return {each.group_id: each for each in group_histories(find_logs([logs]), lambda message: None, None, None, None)}
