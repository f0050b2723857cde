"""How fast one core folds group records with history, rules and verdicts: ``python -m benchmarks.judge [LOG_FOLDER]``.

Prints JSON: records a second of processor time for the decoded group records of the folder (default: the churn corpus
beside the project), and for each part alone; then the same for a group whose members reach epoch after epoch with what
they have, from bytes to the rows that Spark takes. All figures are of one run, the fastest of a few repeats; ``loop_s``
is the time of a plain Python loop, to compare runs on a machine that has other work.
"""

import gc
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.fold import group_records
from benchmarks.history import best, topic_history
from benchmarks.replay import batches
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.records import AnyRecord, Family
from jobs.pipeline.replay_arrow import folder
from tests.shared_data import CORPUS

STEADY, BATCH = 50_000, 10_000
Feed = Callable[[AnyRecord], object]


def main() -> None:
    """Measure the parts and the whole."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS / "churn" / "full" / "logs"
    groups: dict[str, list[AnyRecord]] = defaultdict(list)
    coverage = Coverage({})
    for record in group_records(place):
        groups[record.group_id].append(record)
        coverage.set_unbroken(record.at.partition, 0, record.at.offset, gap_follows=False)
    topics, settings = topic_history(place), AuditSettings()
    count = sum(map(len, groups.values()))

    def rate(begin: Callable[[Group], Feed]) -> int:
        def run() -> None:
            for group_id, records in groups.items():
                feed = begin(Group(group_id, from_start=True))
                for record in records:
                    feed(record)

        return round(count / best(run))

    def whole(group: Group) -> Feed:
        return GroupAudit.begin(group.group_id, Family.GROUP, topics, coverage, settings, from_start=True).feed

    numbers = pa.record_batch({"id": pa.array(range(STEADY))})
    steady = [each for low in range(0, STEADY, BATCH) for each in batches([numbers.slice(low, BATCH)])]
    gc.collect()
    gc.freeze()
    figures = {
        "benchmark": "judge",
        "group_records": count,
        "loop_s": round(best(lambda: sum(number * number for number in range(2_000_000))), 3),
        "history": rate(lambda group: GroupFold(group, None, topics, coverage).feed),
        "rules": rate(lambda group: RuleFold(group, None, coverage, topics).feed),
        "verdicts": rate(lambda group: TargetAuditor(group, None, topics, settings, coverage).feed),
        "all": rate(whole),
        "steady_from_bytes": round(STEADY / best(lambda: list(folder("c", None, settings)(steady)))),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
