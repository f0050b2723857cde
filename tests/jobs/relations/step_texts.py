"""The texts of steps of a night and of the Python API, with values for the stores of ``damaged_tables``.

No function returns their rows: an engine reads them, mostly with a fold behind it. Those of ``lag`` are not here:
``test_lag`` compares them with the core over random logs, and has changes of its own.
"""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_core.records import GROUP_LOG
from jobs.pipeline import commit_summaries as summaries
from jobs.pipeline import group_pages, lag_history, log_ranges, runs, snapshots
from jobs.pipeline.commits import here
from jobs.pipeline.log_ranges import NEW
from jobs.relations import commit_sums, logs, offsets, outcomes, replay
from jobs.relations.gaps import NEVER_COMPACTED
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.reader import TableReader, Value
from tests.jobs.relations.tables_of_logs import CLUSTER

SPAN: Final[Mapping[str, Value]] = {"cluster": CLUSTER, "done": "run 1", "upto": "run 2", "block": 16}
REPLAY: Final[Mapping[str, Value]] = {
    **SPAN,
    **{"topics": REPLAYED_TOPICS, "groups": GROUP_TOPICS, "shares": SHARE_TOPICS},
    **{"version": 1, "news_ms": 1 << 62, "shown_ms": 1_795_257_500_000},
}
OF_LOG: Final[Mapping[str, Value]] = {**SPAN, "topic": GROUP_LOG, "again": []}
ENDS: Final[Mapping[str, Value]] = {"cluster": CLUSTER, "types": commit_sums.END_TYPES}
TEXTS: Final[Mapping[str, tuple[str, Mapping[str, Value]]]] = {
    "group_pages.GROUPS": (
        group_pages.GROUPS,
        {"cluster": CLUSTER, "since": "run 1", "moved": [], "topics": GROUP_TOPICS, "with_pages": 1},
    ),
    "commit_sums.GROUP_ENDS_TEXT": (commit_sums.GROUP_ENDS_TEXT, ENDS),
    "commit_sums.REMOVALS": (commit_sums.REMOVALS, ENDS),
    "commit_sums.REWINDS": (commit_sums.REWINDS, ENDS),
    "here.ROWS": (here.IN_ORDER.format(rows=here.NEW_ROWS), OF_LOG),
    "here.SETTLED_ROWS": (here.SETTLED_ROWS, OF_LOG),
    "here.TOUCHED": (here.TOUCHED.format(rows=here.NEW_ROWS), OF_LOG),
    "here.ON": (here.ON, {**OF_LOG, "changed": [0, 1], "again": [1]}),
    "lag_history.ROWS": (lag_history.ROWS, SPAN),
    "log_ranges.BARE": (log_ranges.BARE, SPAN),
    "log_ranges.REVISED": (log_ranges.REVISED, SPAN),
    "log_ranges.TO_ORDER": (log_ranges.TO_ORDER, {**SPAN, "done": "", "upto": "run 1"}),
    "logs.RANGES": (logs.RANGES.format(which=NEW), SPAN),
    "offsets.OFFSETS": (offsets.OFFSETS, SPAN),
    "offsets.ROWS": (offsets.ROWS, REPLAY),
    "offsets.WITH_ENDS": (offsets.WITH_ENDS, {"run": "run 1"}),
    "outcomes.COUNT": (outcomes.COUNT, SPAN),
    "outcomes.DECIDED": (outcomes.DECIDED, {"cluster": CLUSTER, "never": NEVER_COMPACTED}),
    "replay.BYTES": (replay.BYTES, REPLAY),
    "replay.BYTES_AGAIN": (replay.BYTES_AGAIN, REPLAY),
    "replay.LATE": (replay.LATE, REPLAY),
    "replay.MOVED": (replay.MOVED, REPLAY),
    "replay.NEW_GROUPS": (replay.NEW_GROUPS, REPLAY),
    "replay.replayed_rows": (replay.replayed_rows(), REPLAY),
    "replay.replayed_rows again": (replay.replayed_rows(rebuilds=True), REPLAY),
    "runs.TAKEN": (runs.TAKEN, {"run": "run 2"}),
    "snapshots.NEEDLESS": (snapshots.NEEDLESS, SPAN),
    "summaries.ENDS": (summaries.ENDS, OF_LOG),
    "summaries.FIRSTS": (summaries.FIRSTS, OF_LOG),
    "summaries.NEW_COMMITS": (summaries.NEW_COMMITS, OF_LOG),
    "summaries.NEW_RECORDS": (summaries.NEW_RECORDS, {**OF_LOG, "done": "", "upto": "run 1"}),
    "summaries.REVISED": (summaries.REVISED, OF_LOG),
    "summaries.UNEXPECTED": (summaries.UNEXPECTED, OF_LOG),
}


def rows_of(name: str, tables: TableReader) -> list[tuple[Any, ...]]:
    """The rows of a text, in an order."""
    text, values = TEXTS[name]
    return sorted(tables.tuples(text, **values), key=repr)
