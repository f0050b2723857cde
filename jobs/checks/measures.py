"""The measures that the checks test: a few numbers for each cluster, from sums that the tables give."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

from coordinator_core.audit.finding_rows import rests_on_share_state
from coordinator_core.audit.folds.group_history import counted
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.batch_format import ENDS_WITHIN
from jobs.checks import gated
from jobs.checks.gates import Gate
from jobs.relations import gaps, given_partitions
from jobs.relations.knowledge import missing_of_shares, stored_knowledge
from jobs.relations.news import StoredNews
from jobs.settings import Settings
from jobs.tables.delta import Tables
from jobs.tables.reader import Row, TableReader, Value

OFFSETS_TOPIC = GROUP_LOG
MEASURES = (
    "unbalanced_partitions",
    "undecoded_runs",
    "missing_offsets",
    "damaged_offsets",
    "absent_partitions",
    "quarantine_rate",
    "unknown_types",
    "misplaced_groups",
    "violations",
    "notices",
    "invalid_targets",
    "divergent_targets",
    "failing_findings",
    "unexpected_findings",
    "hours_since_last_record",
)
NO_COUNTS: Final = ("absent_partitions", "quarantine_rate", "misplaced_groups", "hours_since_last_record")
"""Measures that are unknown if a table has no row of a cluster; the others are then 0."""

OF_HISTORY: Final = (
    *("violations", "notices", "invalid_targets", "divergent_targets"),
    *("failing_findings", "unexpected_findings"),
)
"""Measures of which zero is unknown where the logs of the groups are not whole: what is missing may hold some."""
OF_SHARES: Final = ("violations", "notices", "unexpected_findings")
"""Those for which the share state log counts, too; ``failing_findings`` where a kind is named that it is for."""

Part = dict[str, Mapping[str, float | None]]
"""Measures by name, and their values by cluster. A cluster without a value has nothing to count, or it is unknown."""

# First by run, then by cluster: each job of a run has a row for each log partition, and a run is decoded if any of
# these rows has records.
LEDGER: Final = """
SELECT cluster, sum(unbalanced) AS unbalanced_partitions,
  sum(CASE WHEN taken = 1 AND done = 0 THEN 1 ELSE 0 END) AS undecoded_runs,
  sum(quarantined) AS quarantined, sum(records) AS records
FROM (
  SELECT cluster, run_id,
    sum(CASE WHEN job = 'decode' AND records <> decoded + quarantined + control THEN 1 ELSE 0 END) AS unbalanced,
    max(CASE WHEN job = 'ingest' AND records > 0 THEN 1 ELSE 0 END) AS taken,
    max(CASE WHEN job = 'decode' AND records > 0 THEN 1 ELSE 0 END) AS done,
    sum(CASE WHEN job = 'decode' THEN quarantined END) AS quarantined,
    sum(CASE WHEN job = 'decode' THEN records END) AS records
  FROM $runs WHERE cluster IS NOT NULL GROUP BY cluster, run_id
) AS of_runs GROUP BY cluster
"""
"""A run that ingested nothing leaves nothing to decode."""

UNKNOWN_TYPE: Final = "no (metadata )?record type|version [0-9]+, known are"
"""Matches the reason of an UnknownTypeError or UnknownVersionError, in lower case."""


COUNTED: Final = {
    "unbalanced_partitions": ("log partition", "of a run where records in and records out differ"),
    "undecoded_runs": ("run", "whose records are not decoded"),
    "missing_offsets": ("offset", "missing, which compaction does not explain"),
    "damaged_offsets": ("offset", "damaged"),
    "absent_partitions": ("partition", "of coordinator logs not given"),
    "unknown_types": ("record", "of an unknown type or version"),
    "misplaced_groups": ("group", "in another partition than the id says"),
}
"""What a measure counts, where no groups are named, and what is wrong with it."""
RATES: Final = {
    "quarantine_rate": "{:.3%} of the records are in quarantine",
    "hours_since_last_record": "the newest record is {:.1f} hours old",
}
"""What a measure says that counts nothing."""


class Measures(NamedTuple):
    """The measures of each cluster, and what happened in a sentence, by cluster and measure, where something was
    counted; of one that is unknown for what its logs lack, why.
    """

    rows: list[Row]
    happened: dict[str, dict[str, str]]


def measure(tables: Tables, now: datetime, settings: Settings, since: str) -> Measures:
    """Measure the tables. Broken rules, verdicts and findings count that are new since a time (the id of a run), or go
    on, and are not accepted.

    Raises:
        MissingTableError: nothing was ingested yet.
    """
    chosen = settings.checks
    reader = tables.engine()
    ledger = list(reader.rows(LEDGER))
    parts: Part = {
        name: {row["cluster"]: row[name] for row in ledger} for name in ("unbalanced_partitions", "undecoded_runs")
    }
    # A copy of a file that a broker writes to ends within a batch: nothing is wrong with its records.
    cut_off = _quarantined(reader, ENDS_WITHIN)
    parts["quarantine_rate"] = {
        row["cluster"]: (row["quarantined"] - (cut_off.get(row["cluster"]) or 0)) / row["records"]
        for row in ledger
        if row["records"]
    }
    counts = gated.count(reader, _gates(reader, settings, now.date(), since), chosen.findings)
    parts |= {name: {cluster: of.total() for cluster, of in each.items()} for name, each in counts.items()}
    parts |= _gaps(reader) | {"unknown_types": _quarantined(reader, UNKNOWN_TYPE)}
    parts |= _placement(reader, chosen.offsets_partitions) | _freshness(reader, now)
    parts["absent_partitions"] = given_partitions.absent(reader, OFFSETS_TOPIC, chosen.offsets_partitions)
    clusters = [row["cluster"] for row in ledger]
    lacks = {cluster: missing(reader, cluster, chosen.findings.fail_on) for cluster in clusters}
    rows = [{"cluster": cluster, **_of(cluster, parts, lacks[cluster])} for cluster in clusters]
    happened: dict[str, dict[str, str]] = {}
    for row in rows:
        cluster = row["cluster"]
        plain = {name: f"{counted(int(row[name]), noun)} {text}" for name, (noun, text) in COUNTED.items() if row[name]}
        plain |= {name: text.format(row[name]) for name, text in RATES.items() if row[name]}
        said = {name: gated.told(name, each[cluster]) for name, each in counts.items() if each.get(cluster)}
        unknown = {name: f"none is known, but {'; '.join(why)}" for name, why in lacks[cluster].items()}
        happened[cluster] = plain | said | {name: unknown[name] for name in OF_HISTORY if row[name] is None}
    numbers = [{name: row[name] and float(row[name]) for name in MEASURES} for row in rows]
    return Measures([{"cluster": row["cluster"], **of} for row, of in zip(rows, numbers, strict=True)], happened)


def _gates(reader: TableReader, settings: Settings, today: date, since: str) -> gated.GateOf:
    made: dict[str, Gate] = {}

    def gate_of(cluster: str) -> Gate:
        if cluster not in made:
            made[cluster] = Gate(settings.gates, today, StoredNews(reader, cluster, since))
        return made[cluster]

    return gate_of


def missing(reader: TableReader, cluster: str, fail_on: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return for each measure ``OF_HISTORY`` what is missing of a cluster's logs, in words; nothing if they are whole.

    ``fail_on``: the kinds of findings that fail a run.
    """
    if not reader.exists("log_ranges"):
        return {name: [] for name in OF_HISTORY}
    known = stored_knowledge(reader, cluster)
    reasons, of_shares = known.reasons(), missing_of_shares(known, reader, cluster)
    resting = {*OF_SHARES, *(("failing_findings",) if any(map(rests_on_share_state, fail_on)) else ())}
    return {name: [*reasons, *(of_shares if name in resting else ())] for name in OF_HISTORY}


def _of(cluster: str, parts: Part, lacks: Mapping[str, Sequence[str]]) -> dict[str, float | None]:
    """Return the measures of a cluster by name; ``lacks``: what is missing of its logs for them."""
    values = {name: parts[name].get(cluster) if name in parts else None for name in MEASURES}
    for name in parts:
        if values[name] is None and name not in NO_COUNTS:
            values[name] = 0.0
    # A number above zero is true whatever is missing; only a zero may be wrong.
    return values | {name: None for name, why in lacks.items() if why and values[name] == 0}


def _gaps(reader: TableReader) -> Part:
    """Return the offsets that are missing now: a later run may have filled a gap of an earlier one.

    Only log partitions in which a run found a gap are examined.
    """
    names = ("missing_offsets", "damaged_offsets")
    suspects: dict[str, dict[gaps.Place, int]] = {}
    for row in reader.rows(
        "SELECT DISTINCT cluster, log_topic, log_partition FROM $runs "
        "WHERE job = 'ingest' AND (missing_offsets > 0 OR damaged_offsets > 0)"
    ):
        suspects.setdefault(row["cluster"], {})[row["log_topic"], row["log_partition"]] = 0
    sums = {name: dict[str, float | None]() for name in names}
    for cluster, places in suspects.items():
        counts = gaps.summary(reader, cluster, places).values()
        for name in names:
            sums[name][cluster] = sum(counted[name] for counted in counts)
    return dict(sums)


def _quarantined(reader: TableReader, why: str) -> dict[str, float | None]:
    """Return how many rows are in quarantine for a reason, a pattern in lower case, by cluster."""
    if not reader.exists("quarantine"):
        return {}
    condition = f"regexp_like(lower(reason), '{why}')"
    return _by_cluster(reader, f"SELECT cluster, count(*) AS value FROM $quarantine WHERE {condition} GROUP BY cluster")


def _by_cluster(reader: TableReader, sql: str, **values: Value) -> dict[str, float | None]:
    return {row["cluster"]: row["value"] for row in reader.rows(sql, **values)}


def _placement(reader: TableReader, offsets_partitions: int | None) -> Part:
    """Return how many groups lie in another log partition than their id says."""
    if not reader.exists("group_records") or (offsets_partitions is None and not reader.exists("topic_history")):
        return {}
    counts: dict[str, float | None] = {}
    if offsets_partitions is None:
        counts = _by_cluster(
            reader,
            "SELECT cluster, max(partitions) AS value FROM $topic_history WHERE topic = :topic AND until IS NULL "
            "GROUP BY cluster",
            topic=OFFSETS_TOPIC,
        )
    misplaced: dict[str, float | None] = {}
    # The partition of a group is Java's hash of its id, which SQL does not have: distinct groups come here instead.
    for row in reader.rows(
        "SELECT DISTINCT cluster, group_id, log_partition FROM $group_records "
        "WHERE log_topic = :topic AND group_id IS NOT NULL AND log_partition >= 0",
        topic=OFFSETS_TOPIC,
    ):
        partitions = offsets_partitions or counts.get(row["cluster"])
        if partitions:
            is_misplaced = log_partition_of(row["group_id"], int(partitions)) != row["log_partition"]
            # Also adds a False: a cluster without misplaced groups has 0, one that could not be judged has no value.
            misplaced[row["cluster"]] = (misplaced.get(row["cluster"]) or 0) + is_misplaced
    return {"misplaced_groups": misplaced}


def _freshness(reader: TableReader, now: datetime) -> Part:
    # Records without a place in the log are in no range.
    newest = _by_cluster(
        reader,
        "SELECT cluster, max(timestamp_ms) AS value FROM $log_records "
        "WHERE stray IS NOT NULL AND timestamp_ms >= 0 GROUP BY cluster",
    )
    if reader.exists("log_ranges"):
        ends = _by_cluster(reader, "SELECT cluster, max(last_ms) AS value FROM $log_ranges GROUP BY cluster")
        for cluster, last_ms in ends.items():
            newest[cluster] = max(last_ms or 0, newest.get(cluster) or 0) or None
    now_ms = int(now.timestamp() * 1000)
    return {
        "hours_since_last_record": {
            cluster: None if last_ms is None else (now_ms - last_ms) / 3_600_000 for cluster, last_ms in newest.items()
        }
    }
