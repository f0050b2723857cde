"""The measures that count only what a gate counts: broken rules, verdicts and findings that are new or go on."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from coordinator_core.audit.finding_rows import FindingRow, Level
from coordinator_core.audit.folds.group_history import counted
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.groups.rules import NOTICES
from coordinator_core.groups.violations import Violation
from jobs.checks.gates import Gate
from jobs.settings import FindingCheckSettings
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

GateOf = Callable[[str], Gate]
"""The gate of a cluster."""

Counts = dict[str, dict[str, Counter[tuple[str | None, str]]]]
"""How often each name occurs in each group, by measure and cluster."""

MOST_NAMED: Final = 3
"""A sentence names so many groups."""

NOUNS: Final = {
    "violations": ("rule broken", "rules broken"),
    "notices": ("notice", "notices"),
    "invalid_targets": ("invalid target", "invalid targets"),
    "divergent_targets": ("divergent target", "divergent targets"),
    "failing_findings": ("finding", "findings"),
    "unexpected_findings": ("finding", "findings"),
}
VERDICTS: Final = {Verdict.INVALID.value: "invalid_targets", Verdict.DIVERGENT.value: "divergent_targets"}


def count(tables: TableReader, gate_of: GateOf, chosen: FindingCheckSettings) -> Counts:
    """Return what counts, for each measure whose table exists; nothing fails the run if ``chosen`` names no kinds."""
    counts: Counts = {}

    def put(measure: str, cluster: str, group_id: str | None, name: str) -> None:
        counts[measure][cluster][group_id, name] += 1

    def begin(*measures: str) -> None:
        counts.update({name: defaultdict(Counter) for name in measures})

    if tables.exists("violations"):
        begin("violations", "notices")
        for cluster, broken in _rows(tables, Violation, "violations", "NOT coalesce(is_open, FALSE)"):
            if gate_of(cluster).counts_violation(broken):
                measure = "notices" if broken.rule in NOTICES else "violations"
                put(measure, cluster, broken.group_id, broken.rule)
    if tables.exists("target_audits"):
        begin(*VERDICTS.values())
        wrong = "verdict IN ('invalid', 'divergent')"
        for cluster, target in _rows(tables, TargetAuditRow, "target_audits", wrong):
            if gate_of(cluster).counts_verdict(target):
                put(VERDICTS[target.verdict], cluster, target.group_id, f"epoch {target.epoch}")
    if tables.exists("findings"):
        begin("unexpected_findings", *(("failing_findings",) if chosen.fail_on else ()))
        named = [kind for kind in map(str, chosen.fail_on) if kind != "any"]
        # What another finding covers is counted once, with that one.
        told = f"score >= {chosen.min_score} AND NOT coalesce(covered, FALSE)"
        for cluster, found in _rows(tables, FindingRow, "findings", told):
            gate = gate_of(cluster)
            if gate.counts(found):
                put("unexpected_findings", cluster, found.group_id, found.kind)
            least = gate.settings.min_level if "any" in chosen.fail_on else None
            if chosen.fail_on and _fails(gate, found, named, least):
                put("failing_findings", cluster, found.group_id, found.kind)
    return counts


def _fails(gate: Gate, row: FindingRow, named: Collection[str], least: Level | None) -> bool:
    return (least is not None or row.kind in named) and gate.counts(row, [*named], least=least)


def _rows(tables: TableReader, core_type: object, table: str, condition: str) -> Iterator[tuple[str, Any]]:
    read = reader(core_type)
    for row in tables.rows(f"SELECT * FROM ${table} WHERE {condition}"):
        yield row["cluster"], read(row)


def told(measure: str, counts: Mapping[tuple[str | None, str], int]) -> str:
    """Return in words what a measure counted: how much, in which groups, of which names."""
    by_group: dict[str | None, Counter[str]] = defaultdict(Counter)
    for (group_id, name), number in counts.items():
        by_group[group_id][name] += number
    ordered = sorted(by_group.items(), key=lambda pair: (-pair[1].total(), pair[0] or ""))
    parts: list[str] = []
    for group_id, names in ordered[:MOST_NAMED]:
        number = names.total()
        noun = "" if parts else f" {NOUNS[measure][number != 1]}"
        listed = ", ".join(name for name, _ in names.most_common(MOST_NAMED))
        more = ", ..." if len(names) > MOST_NAMED else ""
        where = "of the cluster" if group_id is None else f"in {group_id}"
        parts.append(f"{number}{noun} {where} ({listed}{more})")
    if left := ordered[MOST_NAMED:]:
        parts.append(f"{sum(names.total() for _, names in left)} in {counted(len(left), 'more group')}")
    return "; ".join(parts)
