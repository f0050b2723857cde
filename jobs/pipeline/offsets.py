"""Fill ``group_offsets``: the offsets of groups as of the newest run, with their lag."""

from jobs.pipeline import commit_summaries
from jobs.pipeline.runs import newest_run, newest_runs
from jobs.relations.offsets import ROWS, WITH_ENDS, WITHOUT_ENDS
from jobs.sources.files import SHARE_TOPICS
from jobs.sources.spark_end_offsets import TYPES
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.results import GROUP_OFFSETS
from jobs.tables.snapshots import END_OFFSETS


def run(tables: Tables, given_ends: str | None = None) -> int:
    """Store the committed offsets as of the newest decoded run, or a later one with a snapshot. Return their number.

    ``given_ends``: end offsets as ``spark_end_offsets.ends_in_spark`` gives them, from which the lag is computed, also
    of offsets that are stored already; clusters of which it has none keep the lag by those in the tables. None: those
    in the tables, and stored offsets stay.
    """
    for table in (GROUP_OFFSETS, TOPIC_HISTORY):
        tables.create(table)
    commit_summaries.update(tables)
    run_id = newest_run(tables, "decode")
    if not run_id:
        return 0
    has_ends = tables.exists(END_OFFSETS)
    if has_ends:
        run_id = max([run_id, *newest_runs(tables, END_OFFSETS).values()])
    stored = _stored(tables, run_id)
    if stored and given_ends is None:
        return stored
    if given_ends is not None and has_ends:
        given_ends = _with_other_clusters(tables, given_ends)
    engine = tables.engine(None if given_ends is None else {END_OFFSETS.name: given_ends})
    text = WITH_ENDS if has_ends or given_ends is not None else WITHOUT_ENDS
    few = engine.up_to(tables.limits.rows, ROWS, topics=SHARE_TOPICS)
    rows = few.made(text, GROUP_OFFSETS.schema, run=run_id)
    if stored:
        tables.replace_where(GROUP_OFFSETS, rows, "run_id = :run", run=run_id)
    else:
        written_files.append(tables, GROUP_OFFSETS, rows, run_id)
    return _stored(tables, run_id)


def _with_other_clusters(tables: Tables, given_ends: str) -> str:
    """Return given end offsets, and those in the tables of the clusters of which none are given."""
    columns = ", ".join(f"k.{name}" for name in TYPES)
    return (
        f"{given_ends} UNION ALL SELECT {columns} FROM {tables.name(END_OFFSETS)} AS k "
        f"LEFT ANTI JOIN ({given_ends}) AS g ON k.cluster = g.cluster"
    )


def _stored(tables: Tables, run_id: str) -> int:
    """Return how many offsets are stored as of a run."""
    (stored,) = tables.engine().rows("SELECT count(*) AS rows FROM $group_offsets WHERE run_id = :run", run=run_id)
    return int(stored["rows"])
