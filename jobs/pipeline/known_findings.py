"""Note in ``known_findings`` which night first had each finding, and which last had more of it."""

from __future__ import annotations

from collections import defaultdict

from coordinator_core.audit.finding_growth import KnownFinding
from jobs.tables.delta import Tables
from jobs.tables.results import FINDINGS, KNOWN_FINDINGS
from jobs.tables.row_reader import reader
from jobs.tables.table import few
from jobs.tables.versions import made_from, note_of

READ: str = f"SELECT cluster, {', '.join(KnownFinding._fields)} FROM $findings"


def note(tables: Tables, night: str) -> None:
    """Note the findings that are there now; ``night`` has those that are new or have grown.

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
    for row in engine.rows(READ):
        now = read(row)
        same = [each for each in before[row["cluster"], *now[:3]] if now.is_same(each[0])]
        found_in = min((found for _, found, _ in same), default=night)
        stays = [changed for known, _, changed in same if not now.has_grown(known)]
        rows.append({**row, "found_in": found_in, "changed_in": max(stays, default=night)})
    tables.replace(KNOWN_FINDINGS, few(KNOWN_FINDINGS, rows), made)
