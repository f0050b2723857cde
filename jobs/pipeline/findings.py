"""Compute ``findings`` from the history of every group: what an operator should look at, as of the end of the log.

``replay`` has already computed the verdicts and the violations. Findings depend on a group's whole history and on the
time that has passed since in its log. So those of groups on which something new bears are computed again, all others
stay, and the table is replaced in one commit. Something bears on groups that have new records; on those whose history
has noted that what was made of it holds until a time which their log has reached (``audit.folds.log_ends``); and on all
groups once a threshold, the software, a line of a broker's log or what surrounds the groups (``SharedFacts``) changes.
"""

import gc
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from coordinator_core.audit.finding_growth import KnownFinding
from coordinator_core.audit.findings.thresholds import Thresholds
from jobs.installation import software_version
from jobs.pipeline.group_pages import FACTS_FROM, INPUTS, OPTIONAL, Changed, PageMaker, SharedFacts, changed_groups
from jobs.pipeline.runs import newest_runs
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES
from jobs.tables.reader import Row
from jobs.tables.results import FINDINGS, GROUP_PAGES, KNOWN_FINDINGS
from jobs.tables.row_reader import reader
from jobs.tables.snapshots import BROKER_EVENTS
from jobs.tables.table import few
from jobs.tables.versions import made_from, note_of


def run(tables: Tables, limits: Thresholds, night: str, report_page: PageMaker | None = None) -> dict[str, int]:
    """Bring the findings of all clusters up to date, if anything has changed. Return their number by kind.

    ``night`` is the id of the night, or of the run, that has what is new. ``report_page`` makes what a report has of a
    group, with its findings; None: no report is asked for.
    """
    tables.create(FINDINGS)
    if newest := newest_runs(tables, GROUP_STATES):
        _update(tables, limits, newest, report_page)
    _note_known(tables, night)
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
    before: Row = json.loads(note) if note is not None and is_whole else {}
    if "whole_from" not in before:
        before = {}  # a note of an earlier release
    inputs = [*INPUTS, *FACTS_FROM]
    now = json.loads(made_from(tables, inputs, limits=limits, software=software_version(), replayed=newest))
    needs_pages = keeps_pages and report_page is not None and not before.get("has_pages")
    if before.items() >= now.items() and not needs_pages:
        return
    engine = tables.engine()
    around = {name: SharedFacts.read(engine, name) for name in newest}
    # What is expensive to read is left out of the first comparison: most nights end with it.
    now["around"] = {name: each.digest(engine, name) for name, each in around.items()}
    now["whole_from"] = {name: each.whole_from() for name, each in around.items()}
    # Where no pages are kept, nothing says how long what is known of a group holds.
    changed = _changed(tables, before, now, needs_pages=needs_pages) if keeps_pages else dict.fromkeys(newest)
    parts = parts_here(tables)
    from jobs.pipeline import made_findings  # not at the top: in most nights nothing is made

    with no_cycle_search():
        if parts is None:
            from jobs.pipeline.on_spark import findings as on_spark  # not at the top: most runs need no Spark

            tables.replace(FINDINGS, on_spark.of_groups(tables, changed, limits))
            about, counting = made_findings.about_one, made_findings.that_count
            found = {name: about(tables, name, counting(tables, name), limits) for name in changed}
            rows = on_spark.with_clusters(tables, found)
        else:
            rows, pages = made_findings.here(tables, changed, limits, parts, around, report_page)
            now["has_pages"] = keeps_pages and not pages["summary"].null_count
            if keeps_pages:
                # Pages before findings: both have the same note only when both are written, and only then are they
                # believed.
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


def _note_known(tables: Tables, night: str) -> None:
    """Note in ``known_findings`` which night first had each finding, and which last had more of it: ``night``, if new.

    What is no longer there is forgotten. A night that was killed before it noted anything leaves it to the next one.
    """
    tables.create(KNOWN_FINDINGS)
    made = made_from(tables, [FINDINGS])
    if note_of(tables, KNOWN_FINDINGS) == made:
        return
    read, engine = reader(KnownFinding), tables.engine()
    before: dict[tuple[object, ...], list[tuple[KnownFinding, str, str]]] = defaultdict(list)
    for row in engine.rows("SELECT * FROM $known_findings"):
        known = read(row)
        before[row["cluster"], *known[:3]].append((known, row["found_in"], row["changed_in"]))
    rows = []
    for row in engine.rows(f"SELECT cluster, {', '.join(KnownFinding._fields)} FROM $findings"):
        now = read(row)
        same = [each for each in before[row["cluster"], *now[:3]] if now.is_same(each[0])]
        found_in = min((found for _, found, _ in same), default=night)
        stays = [changed for known, _, changed in same if not now.has_grown(known)]
        rows.append({**row, "found_in": found_in, "changed_in": max(stays, default=night)})
    tables.replace(KNOWN_FINDINGS, few(KNOWN_FINDINGS, rows), made)
