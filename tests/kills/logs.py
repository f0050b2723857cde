"""The small log that killed commands read: groups of every type, in two segments, of which the first night has one."""

import shutil
from pathlib import Path

from jobs.simulate.partition import simulate_here
from jobs.simulate.scenario_file import load_scenario
from tests.fuzz.samples import batch_starts

SCENARIO = Path(__file__).with_name("scenario.yaml")
BASE_TIMESTAMP_AT = 27
"""Where a batch has the time of its first record."""

SECOND_MS = load_scenario(SCENARIO).start_ms + 130_000
"""When the second segment begins. All logs are cut at one time: what is news of the past is replayed by Spark."""


def write_logs(folder: Path) -> list[Path]:
    """Write the logs of a simulated cluster, each in two segments. Return the first segment of each."""
    simulated, first = folder.with_name("simulated"), []
    for _ in simulate_here(load_scenario(SCENARIO), 1, simulated, "segments"):
        pass
    for file in sorted(simulated.rglob("*.log")):
        data, place = file.read_bytes(), file.parent.relative_to(simulated)
        middle = next(at for at in batch_starts(data) if _number(data, at + BASE_TIMESTAMP_AT) >= SECOND_MS)
        offset = _number(data, middle)
        (folder / place).mkdir(parents=True)
        (folder / place / file.name).write_bytes(data[:middle])
        (folder / place / f"{offset:020d}.log").write_bytes(data[middle:])
        first.append(folder / place / file.name)
    shutil.rmtree(simulated)
    return first


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "big")
