"""Compute ``findings`` from the history of every group: what an operator should look at, as of the end of the log.

``replay`` has already computed the verdicts and the violations. Findings depend on a group's whole history and on the
time that has passed since in its log. So those of groups on which something new bears are computed again, all others
stay, and the table is replaced in one commit. Something bears on groups that have new records; on those whose history
has noted that what was made of it holds until a time which their log has reached (``audit.folds.log_ends``); and on all
groups once a threshold, the software, a line of a broker's log or what surrounds the groups (``Surroundings``) changes.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.of_cluster import COVERED, ClusterSigns, CoveredRows, about_cluster
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.records import LogPosition
from jobs.installation import software_version
from jobs.pipeline import known_findings
from jobs.pipeline.changed_groups import changed_groups
from jobs.pipeline.decoded_runs import newest_runs
from jobs.pipeline.group_pages import FACTS_FROM, Page, PageMaker, Surroundings, row_of, with_kept
from jobs.relations.groups import gathered, kinds, merged
from jobs.relations.knowledge import stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.relations.sessions import stored_lives, stored_lost_members, stored_lost_sessions, stored_stays
from jobs.tables.broker_events import BROKER_EVENTS
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RANGES
from jobs.tables.reader import Row
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import FINDINGS, GROUP_PAGES
from jobs.tables.snapshots import END_OFFSETS
from jobs.tables.table import few
from jobs.tables.versions import made_from, note_of

INPUTS: Final = [
    *HISTORY.values(),
    GROUP_STATES,
    COMMIT_SUMMARIES,
    LOG_RANGES,
    GROUP_RECORDS,
    BROKER_EVENTS,
    END_OFFSETS,
]
"""The tables that findings are made from."""

OPTIONAL: Final = (BROKER_EVENTS, END_OFFSETS)
"""Those of them that there may not be."""

Batches = Iterable[pa.RecordBatch]

Changed = Mapping[str, list[str] | None]
"""The groups to compute again by cluster; None: all groups of the cluster."""


def run(tables: Tables, limits: Thresholds, night: str, report_page: PageMaker | None = None) -> dict[str, int]:
    """Bring the findings of all clusters up to date, if anything has changed. Return their number by kind.

    ``night`` is the id of the night, or of the run, that has what is new. ``report_page`` makes what a report has of a
    group, with its findings; None: no report is asked for.
    """
    tables.create(FINDINGS)
    if newest := newest_runs(tables, GROUP_STATES):
        _update(tables, limits, newest, report_page)
    known_findings.note(tables, night)
    counts = tables.engine().rows("SELECT kind, count(*) AS findings FROM $findings GROUP BY kind")
    return {row["kind"]: row["findings"] for row in counts}


def has_pages(tables: Tables) -> bool:
    """Return whether there is a page of each group, made with the findings that are there now."""
    if not (tables.exists(FINDINGS) and tables.exists(GROUP_PAGES)):
        return False
    note = note_of(tables, FINDINGS)
    return note is not None and note_of(tables, GROUP_PAGES) == note and bool(json.loads(note).get("has_pages"))


def _update(tables: Tables, limits: Thresholds, newest: Mapping[str, str], report_page: PageMaker | None) -> None:
    keeps_pages = tables.local(FINDINGS) is not None
    if keeps_pages:
        tables.create(GROUP_PAGES)
    note = note_of(tables, FINDINGS)
    is_whole = note is not None and (not keeps_pages or note_of(tables, GROUP_PAGES) == note)
    before: dict[str, Any] = json.loads(note) if note is not None and is_whole else {}
    inputs = [*INPUTS, *FACTS_FROM]
    now = json.loads(made_from(tables, inputs, limits=limits, software=software_version(), replayed=newest))
    needs_pages = keeps_pages and report_page is not None and not before.get("has_pages")
    if before.items() >= now.items() and not needs_pages:
        return
    engine = tables.engine()
    around = {name: Surroundings.read(engine, name) for name in newest}
    now["around"] = {name: each.digest(engine, name) for name, each in around.items()}
    now["whole_from"] = {name: each.whole_from() for name, each in around.items()}
    changed = _changed(tables, before, now, needs_pages=needs_pages)
    parts = parts_here(tables)
    with no_cycle_search():
        if parts is None:
            from jobs.pipeline.on_spark import findings as on_spark  # not at the top: most runs need no Spark

            tables.replace(FINDINGS, on_spark.of_groups(tables, changed, limits))
            rows = on_spark.with_clusters(
                tables, {name: _about_cluster(tables, name, _that_count(tables, name), limits) for name in changed}
            )
        else:
            rows, pages = _here(tables, changed, limits, parts, around, report_page)
            now["has_pages"] = keeps_pages and not pages["summary"].null_count
            if keeps_pages:
                tables.replace(GROUP_PAGES, pages, json.dumps(now, sort_keys=True))
    tables.replace(FINDINGS, rows, json.dumps(now, sort_keys=True))


def _changed(tables: Tables, before: Row, now: Row, *, needs_pages: bool) -> Changed:
    """Return which groups have changed since the findings were made that have the note ``before``."""
    newest = now["replayed"]
    if any(before.get(name) != now[name] for name in ("limits", "software")):
        return dict.fromkeys(newest)
    if before["tables"].get(BROKER_EVENTS.name) != now["tables"].get(BROKER_EVENTS.name):
        return dict.fromkeys(newest)
    engine, since = tables.engine(), before["replayed"]
    # Where no run is new, the tables have changed for another reason, such as a replay of all records.
    moved = {
        cluster: [name for name, offset in of.items() if before["whole_from"].get(cluster, {}).get(name) != offset]
        for cluster, of in now["whole_from"].items()
    }
    return {
        cluster: changed_groups(engine, cluster, since[cluster], moved[cluster], with_pages=needs_pages)
        if since.get(cluster, run_id) < run_id and before["around"].get(cluster) == now["around"][cluster]
        else None
        for cluster, run_id in sorted(newest.items())
    }


def parts_here(tables: Tables) -> int | None:
    """Return in how many parts, one after the other, this process makes the findings; None: Spark makes them.

    A part has its share of the groups, so that it needs the memory of inputs within the limit.
    """
    inputs = [table for table in INPUTS if table not in OPTIONAL or tables.exists(table)]
    limit = tables.limits.findings_bytes
    if limit <= 0:
        return None
    if tables.are_copied(inputs):
        return 1
    local = [tables.local(table) for table in inputs]
    if any(table is None for table in local):
        return None
    parts = -(-sum(table.size() for table in local if table) // limit)
    return max(1, parts) if parts <= tables.limits.findings_parts else None


def _here(
    tables: Tables,
    changed: Changed,
    limits: Thresholds,
    parts: int,
    around: Mapping[str, Surroundings],
    report_page: PageMaker | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of the findings and of the pages, computed by this process in so many parts."""
    engine = tables.engine()
    again = {cluster: None if groups is None else set(groups) for cluster, groups in changed.items()}
    kept, new, pages = [], list[dict[str, Any]](), list[dict[str, Any]]()
    for row in engine.rows("SELECT * FROM $findings"):
        cluster, group_id = row["cluster"], row["group_id"]
        if cluster in again and group_id is None:
            continue
        groups = again.get(cluster, set())
        if groups is not None and group_id not in groups:
            kept.append(row)
    for cluster, wanted in sorted(changed.items()):
        if wanted != []:
            logs, deleted, ends, of_report = around[cluster]
            of_kinds = kinds(engine) if report_page is None else of_report
            for some in _divided(tables, cluster, wanted, parts):
                for history in gathered(merged(engine, cluster, some, of_kinds), logs, deleted, ends):
                    page = Page(findings(history, limits)) if report_page is None else report_page(history)
                    new += [{"cluster": cluster, **row._asdict()} for row in page.findings]
                    pages.append(row_of(cluster, history, page))
    about, storms = list[dict[str, Any]](), dict[str, list[CoveredRows]]()
    for cluster in changed:
        of_cluster = (_row(row) for row in (*kept, *new) if row["cluster"] == cluster and row["kind"] in COVERED)
        found, storms[cluster] = _about_cluster(tables, cluster, of_cluster, limits)
        about += [{"cluster": cluster, **row._asdict()} for row in found]
    parts_of_table = [_marked(kept, storms), _marked(new, storms), about]
    rows = pa.concat_tables([few(FINDINGS, rows) for rows in parts_of_table])
    return rows, with_kept(engine, again, few(GROUP_PAGES, pages))


def _marked(rows: Iterable[Row], storms: Mapping[str, Sequence[CoveredRows]]) -> Iterator[dict[str, object]]:
    """Yield the rows, those of clusters with their storms by what these cover."""
    for row in rows:
        covered = row["covered"]
        if row["cluster"] in storms:
            covered = any(each.covers(_row(row)) for each in storms[row["cluster"]])
        yield {**row, "covered": covered}


def _divided(tables: Tables, cluster: str, wanted: list[str] | None, parts: int) -> Iterator[list[str] | None]:
    """Yield the groups of each part; None: all groups of the cluster."""
    if parts == 1:
        yield wanted
        return
    if wanted is None:
        named = [table for table in INPUTS if "group_id" in table.schema.names and tables.exists(table)]
        of_tables = " UNION ".join(f"SELECT group_id FROM ${table.name} WHERE cluster = :cluster" for table in named)
        names = f"SELECT group_id FROM ({of_tables}) AS named WHERE group_id IS NOT NULL ORDER BY group_id"
        wanted = [row["group_id"] for row in tables.engine().rows(names, cluster=cluster)]
    size = max(1, -(-len(wanted) // parts))
    for begin in range(0, len(wanted), size):
        yield wanted[begin : begin + size]


def _row(row: Row) -> FindingRow:
    """Return a row of the table, or one that is new, as the core has it."""
    evidence = tuple(LogPosition(**at) if isinstance(at, Mapping) else at for at in row["evidence"])
    return FindingRow(**{name: row[name] for name in FindingRow._fields} | {"evidence": evidence})


def _that_count(tables: Tables, cluster: str) -> Iterator[FindingRow]:
    """Yield the stored findings about groups that may be part of a storm."""
    text = "SELECT * FROM $findings WHERE cluster = :cluster AND kind IN :kinds AND group_id IS NOT NULL"
    return map(_row, tables.engine().rows(text, cluster=cluster, kinds=sorted(COVERED)))


def _about_cluster(
    tables: Tables, cluster: str, of_groups: Iterable[FindingRow], limits: Thresholds
) -> tuple[list[FindingRow], list[CoveredRows]]:
    """Return the rows about the cluster itself, which no group's own history shows, and the storms among them."""
    engine = tables.engine()
    signs = ClusterSigns(
        tuple(stored_lost_sessions(engine, cluster)),
        tuple(stored_lives(engine, cluster)),
        tuple(stored_lost_members(engine, cluster)),
        tuple(stored_stays(engine, cluster)),
    )
    shows_all = stored_knowledge(engine, cluster).shows_all_since
    return about_cluster(signs, topics_at_end(engine, cluster), of_groups, limits, shows_all)


@contextmanager
def no_cycle_search() -> Iterator[None]:
    """Leave out the search for cycles while many rows are made.

    No row refers to itself, so the search finds nothing. It looks at all rows again and again, which takes up to half
    of the time. Objects without cycles are freed as always.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
