"""The ledger ``runs``: what each run ingested and decoded, and whether its counts add up.

Its rows can be derived from the tables at any time, so a run that was killed before it could write them is accounted
for by the next one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_core.errors import CoordinatorAuditError
from jobs.installation import software_version
from jobs.relations import gaps
from jobs.relations.gaps import Place
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.reader import Row, TableReader
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.table import Table, few


def newest_run(tables: Tables, job: str) -> str:
    """Return the newest run of a job that the ledger has, of any cluster; empty: there is none."""
    (newest,) = tables.engine().rows("SELECT max(run_id) AS run_id FROM $runs WHERE job = :job", job=job)
    return newest["run_id"] or ""


def runs_behind(tables: Tables, table: Table, run_id: str) -> list[str]:
    """Return the runs after that one of which a table has rows, oldest first."""
    behind = f"SELECT DISTINCT run_id FROM ${table.name} WHERE run_id > :known"
    return sorted(row["run_id"] for row in tables.engine().rows(behind, known=run_id))


def decoded_runs(tables: Tables) -> dict[str, list[str]]:
    """Return for each cluster the runs that brought records and were decoded, oldest first."""
    decoded = "SELECT DISTINCT cluster, run_id FROM $runs WHERE job = 'decode' AND records > 0"
    runs: dict[str, list[str]] = {}
    for row in tables.engine().rows(decoded):
        runs.setdefault(row["cluster"], []).append(row["run_id"])
    return {cluster: sorted(names) for cluster, names in runs.items()}


def newest_runs(tables: Tables, table: Table) -> dict[str, str]:
    """Return for each cluster the newest run of which a table has rows."""
    newest = f"SELECT cluster, max(run_id) AS run_id FROM ${table.name} GROUP BY cluster"
    return {row["cluster"]: row["run_id"] for row in tables.engine().rows(newest)}


class UnbalancedError(CoordinatorAuditError):
    """Some records of a run are in no table, or in more than one."""


def new_run_id() -> str:
    """Return an id for a run that begins now; ids sort by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def unaccounted(tables: Tables) -> list[str]:
    """Return the runs that added records but were killed before they wrote the ledger, oldest first.

    A run begins by writing the ledger of those before it, so only the newest can lack it.
    """
    return runs_behind(tables, LOG_RECORDS, newest_run(tables, "ingest"))


def last_offsets(tables: Tables, cluster: str, before: str | None = None) -> dict[tuple[str, int | None], int]:
    """Return the last offset that was ingested, by topic and log partition, as the ledger has it.

    ``before``: only runs before this one; None: all runs.
    """
    earlier = "" if before is None else "AND run_id < :before "
    rows = tables.engine().rows(
        "SELECT log_topic, log_partition, max(last_offset) AS last_offset FROM $runs WHERE job = 'ingest' "
        f"AND cluster = :cluster {earlier}AND last_offset IS NOT NULL GROUP BY log_topic, log_partition",
        cluster=cluster,
        before=before,
    )
    return {(row["log_topic"], row["log_partition"]): row["last_offset"] for row in rows}


RunValues: TypeAlias = dict[str, Any]
"""What a row of ``runs`` says so far, by column."""


class Undecoded(NamedTuple):
    """An accounted run whose records are not decoded yet; it may have added none."""

    run_id: str
    records: int


def undecoded(tables: Tables) -> list[Undecoded]:
    """Return the runs to decode, oldest first."""
    runs = (
        "SELECT run_id, sum(records) AS records FROM $runs GROUP BY run_id "
        "HAVING sum(CASE WHEN job = 'decode' THEN 1 ELSE 0 END) = 0"
    )
    return sorted(Undecoded(row["run_id"], row["records"]) for row in tables.engine().rows(runs))


class RunRow(NamedTuple):
    """A row of ``runs``."""

    cluster: str | None
    run_id: str
    job: str
    log_topic: str | None
    log_partition: int | None
    first_offset: int | None
    last_offset: int | None
    records: int
    control: int
    decoded: int | None
    quarantined: int | None
    empty_batches: int | None
    compacted_offsets: int | None
    unknown_offsets: int | None
    missing_offsets: int | None
    damaged_offsets: int | None
    gaps: list[Row] | None
    finished_at: datetime
    version: str


class Taken(NamedTuple):
    """What a run took from one log partition. ``offsets``: rows that have one."""

    cluster: str
    log_topic: str
    log_partition: int | None
    first_offset: int
    last_offset: int
    offsets: int
    records: int
    control: int
    empty_batches: int


TAKEN: Final = """
SELECT cluster, log_topic, log_partition, min(log_offset) AS first_offset, max(log_offset) AS last_offset,
  count(log_offset) AS offsets, count(CASE WHEN kind <> 'empty' THEN 1 END) AS records,
  count(CASE WHEN kind = 'control' THEN 1 END) AS control, count(CASE WHEN kind = 'empty' THEN 1 END) AS empty_batches
FROM $log_records WHERE run_id = :run GROUP BY cluster, log_topic, log_partition
"""
"""The rows of ``Taken`` of a run."""


def account_ingest(
    tables: Tables, run_id: str, cluster: str | None = None, given: Iterable[tuple[str, int]] = ()
) -> list[RunRow]:
    """Write what an ingest run took, and return its rows of ``runs``.

    ``cluster`` is needed for a run that found nothing new. ``given`` are log partitions that its dumps had: those
    without a new record get a row with 0 records, so that an empty partition is not taken for an absent one.
    """
    taken = [Taken(**row) for row in tables.engine().rows(TAKEN, run=run_id)]
    nothing_new = {"cluster": cluster, "records": 0, "control": 0, "empty_batches": 0}
    rows: list[RunValues] = [row._asdict() for row in taken]
    there: set[tuple[str, int | None]] = {(row.log_topic, row.log_partition) for row in taken}
    for topic, partition in sorted(set(given) - there):
        rows.append(nothing_new | {"log_topic": topic, "log_partition": partition})
    rows = rows or [nothing_new]
    for name in {row.cluster for row in taken}:
        placed = [row for row in taken if row.cluster == name and row.first_offset is not None]
        broken = _broken(placed, last_offsets(tables, name, before=run_id))
        missing = _gaps(tables.engine(), name, broken)
        rows = [row | missing.get((row["log_topic"], row["log_partition"]), {}) for row in rows]
    return _write(tables, "ingest", run_id, rows)


def _broken(taken: list[Taken], last: Mapping[tuple[str, int | None], int]) -> list[Taken]:
    """Return the partitions that may have gaps, or bring older offsets. Most do not, and gaps are expensive to find.

    ``last``: the last offset of earlier runs. The log itself is not read: it grows with each night.
    """
    # Offsets are distinct: as many of them as the span is long leave no hole, and no row has to be put in order.
    whole = [row for row in taken if row.offsets == row.records == row.last_offset - row.first_offset + 1]
    joining = [row for row in whole if last.get((row.log_topic, row.log_partition)) in (None, row.first_offset - 1)]
    return [row for row in taken if row not in joining]


FLOORS: Final = """
SELECT b.log_topic AS log_topic, b.log_partition AS log_partition,
  coalesce(max(CASE WHEN l.log_offset < b.floor THEN l.log_offset END), min(b.floor)) AS floor
FROM $log_records AS l JOIN ({begins}) AS b ON l.log_topic = b.log_topic AND l.log_partition = b.log_partition
WHERE l.cluster = :cluster GROUP BY b.log_topic, b.log_partition
"""
"""The last offset before new ones, by log partition."""


def _gaps(tables: TableReader, cluster: str, taken: list[Taken]) -> dict[Place, dict[str, object]]:
    """Return gaps by log partition, beginning with the last offset before the new ones."""
    firsts = {(row.log_topic, row.log_partition): row.first_offset for row in taken if row.log_partition is not None}
    if not firsts:
        return {}
    begins, values = gaps.listed(firsts)
    rows = tables.rows(FLOORS.format(begins=begins), cluster=cluster, **values)
    return gaps.summary(tables, cluster, {(row["log_topic"], row["log_partition"]): row["floor"] for row in rows})


class LedgerBalance(NamedTuple):
    """Counts of a run in one log partition: rows ingested, and the tables they went to."""

    cluster: str
    log_topic: str | None
    log_partition: int | None
    records: int
    control: int
    empty_batches: int
    decoded: int
    quarantined: int

    @property
    def missing(self) -> int:
        """Records that are in no table; below 0: in more than one."""
        return self.records - self.decoded - self.quarantined - self.control


def account_decode(tables: Tables, run_id: str, balances: list[LedgerBalance]) -> list[RunRow]:
    """Write where the records of a run went.

    Raises:
        UnbalancedError: the counts do not add up.
    """
    for of in balances:
        if of.missing:
            raise UnbalancedError(
                f"{of.log_topic}-{of.log_partition}, run {run_id}: {of.records} records in, "
                f"{of.decoded} decoded + {of.quarantined} quarantined + {of.control} control out"
            )
    nothing = {"records": 0, "control": 0, "decoded": 0, "quarantined": 0}
    return _write(tables, "decode", run_id, [of._asdict() for of in balances] or [nothing])


def balance(tables: Tables, run_id: str) -> list[LedgerBalance]:
    """Return what a run added, and how much of it is in the decoded tables and in quarantine."""
    engine = tables.engine()
    # What came in is counted in the log, what went out in the other tables: a count kept while writing would prove
    # nothing.
    went: Counter[tuple[bool, str, str | None, int | None]] = Counter()
    for table in (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE):
        counts = (
            f"SELECT cluster, log_topic, log_partition, count(*) AS records FROM ${table.name} WHERE run_id = :run "
            "GROUP BY cluster, log_topic, log_partition"
        )
        for row in engine.rows(counts, run=run_id):
            went[table is QUARANTINE, row["cluster"], row["log_topic"], row["log_partition"]] += row["records"]
    balances = []
    for row in engine.rows(TAKEN, run=run_id):
        place = (row["cluster"], row["log_topic"], row["log_partition"])
        of = {name: row[name] for name in LedgerBalance._fields if name in row}
        balances.append(LedgerBalance(**of, decoded=went[False, *place], quarantined=went[True, *place]))
    return balances


def _write(tables: Tables, job: str, run_id: str, rows: list[RunValues]) -> list[RunRow]:
    common = {"run_id": run_id, "job": job, "finished_at": datetime.now(UTC), "version": software_version()}
    full: list[RunValues] = [{name: (row | common).get(name) for name in RUNS.schema.names} for row in rows]
    tables.append(RUNS, few(RUNS, full), f"{run_id}/{job}")
    return [RunRow(**row) for row in full]
