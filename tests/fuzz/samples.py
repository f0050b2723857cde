"""The logs that the fuzzer changes: the samples, real single records, and a simulated cluster."""

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jobs.simulate.partition import simulate_here
from jobs.simulate.scenario_file import load_scenario
from tests.shared_data import CORPUS

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "data" / "samples"

MOST_BYTES = 60_000
"""A longer log is cut to batches of about this size, so that many inputs are tried in a minute."""

Logs = dict[str, bytes]
"""Segment files by their path within a folder of logs."""

LOG_SUFFIXES = (".log", ".checkpoint")


def read_logs(folder: Path) -> Logs:
    """Return all segments and snapshots below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in LOG_SUFFIXES)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.stat().st_size}


@cache
def clusters(scratch: Path) -> list[Logs]:
    """Return the logs of each cluster; ``scratch`` is an empty folder for those that are simulated."""
    simulate = load_scenario(HERE / "scenario.yaml")
    for _ in simulate_here(simulate, 1, scratch, "segments"):
        pass
    folders = [SAMPLES / "logs", SAMPLES / "share_delivery" / "logs", scratch]
    folders += [folder for folder in sorted(CORPUS.glob("*/logs")) if folder.is_dir()]
    return [logs for logs in map(read_logs, folders) if logs]


def chosen_logs(scratch: Path, choose: random.Random) -> Logs:
    """Return one coordinator partition of one cluster, with the other logs of that cluster that its answers need."""
    logs = choose.choice(clusters(scratch))
    partitions = sorted({name.rpartition("/")[0] for name in logs})
    wanted = {choose.choice([name for name in partitions if "metadata" not in name])}
    wanted |= {name for name in partitions if "metadata" in name or choose.random() < 0.1}
    return {name: _some(data, choose) for name, data in logs.items() if name.rpartition("/")[0] in wanted}


def _some(data: bytes, choose: random.Random) -> bytes:
    """Return the whole file, or whole batches from its beginning or from anywhere."""
    if len(data) <= MOST_BYTES:
        return data
    starts = list(batch_starts(data))
    first = 0 if choose.random() < 0.7 else choose.randrange(len(starts))
    last = next((at for at in starts[first:] if at - starts[first] >= MOST_BYTES), len(data))
    return data[starts[first] : last]


def batch_starts(data: bytes) -> Iterator[int]:
    """Yield where each batch of a well-formed segment begins."""
    at = 0
    while at + 12 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big")
        if size <= 0:
            return
        yield at
        at += 12 + size
