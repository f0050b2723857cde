"""How fast scenarios become logs: ``python -m benchmarks.simulate``. Records a second of processor time, on one core.

Segments are written, the truth beside them. Goal: 50,000 records a second.
"""

import argparse
import tempfile
import time
from pathlib import Path

from coordinator_core.records import Family
from coordinator_core.simulator.scenario import Scenario
from jobs.simulate.partition import write_partition
from jobs.simulate.scenario_file import load_scenario

TOPICS = {"events-{n}": {"count": 50, "partitions": 24, "replicas": 3, "rate": 20, "grows": {"30m": 30}}}
CHAOS = ["join", "leave", "crash", "deploy"]
MIXES: dict[str, dict[str, object]] = {
    "calm": {"members": 4, "commits": {"every": "5s"}, "chaos": {"every": "30m", "of": CHAOS, "most": 6}},
    "busy": {"members": 4, "commits": {"every": "30s"}, "chaos": {"every": "3m", "of": CHAOS, "most": 6}},
    "frantic": {"members": 4, "commits": None, "chaos": {"every": "20s", "of": CHAOS, "most": 8}},
}
"""Groups that commit every 5 s and change twice an hour, and ones that commit less and change more."""


def scenario(kind: str, mix: str, groups: int) -> Scenario:
    """So many groups of a type, for an hour, in one log partition."""
    group = {"type": kind, "count": groups, "topics": ["events-{n}"], "spread": "2m", **MIXES[mix]}
    cluster = {"partitions": 1, "racks": ["a", "b", "c"]}
    values = {"lasts": "1h", "cluster": cluster, "topics": TOPICS, "groups": {"g-{n}": group}}
    return Scenario.model_validate(values)


def measure(name: str, model: Scenario, partition: int = 0) -> None:
    with tempfile.TemporaryDirectory() as out:
        began = time.process_time()
        written = write_partition(model, 1, Family.GROUP, partition, Path(out), "segments")
        took = time.process_time() - began
    of_groups = written.records - written.commits
    print(
        f"{name:28} {written.records:>10,} records, {of_groups:>7,} of groups, {written.rebalances:>6,} rebalances: "
        f"{took:6.1f} s, {written.records / took:>9,.0f} records/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=100, help="groups of each type")
    parser.add_argument("--scenario", type=Path, help="one partition of a scenario file instead")
    given = parser.parse_args()
    if given.scenario is not None:
        measure(given.scenario.name, load_scenario(given.scenario))
        return
    for mix in MIXES:
        for kind in ("consumer", "classic"):
            measure(f"{kind}, {mix}", scenario(kind, mix, given.groups))


if __name__ == "__main__":
    main()
