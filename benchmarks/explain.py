"""How long ``explain`` takes from the tables of a large log: ``python -m benchmarks.explain [MEGABYTES]``.

Prints JSON: size of the log, seconds to fill the tables, and seconds from the question to the story, the session being
there already. The log is of ``benchmarks.generate``: mostly commits, and rebalances in between.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from coordinator_core.audit.explain import explain, find_rebalance
from jobs import settings
from jobs.api import CoordinatorAudit
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.interface import RebalanceFilter
from jobs.tables import session
from jobs.tables.folder_reader import FolderReader

MEGABYTES = 1_000
COMMITS_A_MEGABYTE = 10_600
"""Of the generator's logs."""


def main(megabytes: int) -> None:
    spark = session.get_or_create(settings.load().spark)
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        commits = str(megabytes * COMMITS_A_MEGABYTE)
        subprocess.run([sys.executable, "-m", "benchmarks.generate", "--out", logs, "--commits", commits], check=True)
        size = sum(file.stat().st_size for file in logs.rglob("*.log"))
        store = CoordinatorAudit(spark, str(Path(folder) / "tables"))
        start = time.perf_counter()
        store.ingest(str(logs))
        store.decode()
        store.replay()
        filled = time.perf_counter() - start
        source = StoredAnswers(FolderReader(store.tables.location), store.cluster, store.settings.audit)
        (slowest,) = source.rebalances(RebalanceFilter(slowest=1))
        start = time.perf_counter()
        history = source.history(slowest.group_id)
        assert history is not None
        sentences = explain(history, find_rebalance(history, slowest.to_epoch, None))
        took = time.perf_counter() - start
    figures = {"log_mb": size / 1e6, "filled_s": filled, "explain_s": took, "sentences": len(sentences)}
    print(json.dumps({name: round(value, 1) for name, value in figures.items()}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MEGABYTES)
