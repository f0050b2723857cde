"""How fast states are stored and read again: ``python -m benchmarks.state [LOG_FOLDER]``.

Prints JSON: states a second, written and read, of all groups of the folder (default: the churn corpus beside the
project) in the middle of their records and at the end. The reference is Python's ``json`` on the same texts, which
makes no objects of the states.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.fold import REPEATS, group_records
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord, Family
from tests.shared_data import CORPUS

WHOLE = Coverage({partition: [(0, 1 << 62)] for partition in range(1_000)})


def states_of(records: list[AnyRecord]) -> list[str]:
    """The states of each group halfway through its records and after the last one."""
    left = Counter(record.group_id for record in records)
    half = {group_id: count // 2 for group_id, count in left.items()}
    groups: dict[str, GroupAudit] = {}
    texts = []
    for record in records:
        group_id = record.group_id
        if group_id not in groups:
            groups[group_id] = GroupAudit.begin(group_id, Family.GROUP, None, WHOLE, AuditSettings(), from_start=True)
        groups[group_id].feed(record, 0)
        left[group_id] -= 1
        if left[group_id] in (0, half[group_id]):
            texts.append(groups[group_id].state())
    return texts


def read(texts: list[str]) -> list[GroupAudit]:
    return [GroupAudit.resume(text, None, WHOLE, AuditSettings()) for text in texts]


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs: the others were disturbed."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS / "churn" / "full" / "logs"
    texts = states_of(group_records(folder))
    audits, plain = read(texts), [json.loads(text) for text in texts]
    write_seconds = best(lambda: [audit.state() for audit in audits])
    read_seconds = best(partial(read, texts))
    written = best(lambda: [json.dumps(each, separators=(",", ":")) for each in plain])
    parsed = best(lambda: [json.loads(text) for text in texts])
    print(
        json.dumps(
            {
                "benchmark": "state",
                "folder": folder.parent.name,
                "states": len(texts),
                "bytes": sum(map(len, texts)),
                "written_per_second": round(len(texts) / write_seconds),
                "read_per_second": round(len(texts) / read_seconds),
                "reference": "json.dumps and json.loads of the same texts",
                "write_times_reference": round(write_seconds / written, 2),
                "read_times_reference": round(read_seconds / parsed, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
