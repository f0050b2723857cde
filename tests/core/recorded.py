"""The small real log of ``data/samples``, as what a fold takes."""

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples" / "logs"
EVERYTHING = Coverage({partition: [(0, 10_000)] for partition in range(4)})
ByGroup = dict[str, list[CoordinatorRecord]]


@cache
def sample() -> tuple[ByGroup, TopicHistory]:
    """The records of each group, and the topics."""
    groups: ByGroup = defaultdict(list)
    files = defaultdict(list)
    for file in find_logs([SAMPLES]):
        files[file.family, file.partition].append(file)
    for (family, _), parts in files.items():
        if family is Family.GROUP:
            for record in LogReader(parts, pytest.fail).records():
                groups[record.group_id].append(record)
    return groups, fold_metadata_log(LogReader(files[Family.METADATA, 0], pytest.fail).records())
