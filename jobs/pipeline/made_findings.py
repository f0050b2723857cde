"""The findings of groups and of clusters, as this process makes them, with what the report has of each group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.of_cluster import COVERED, ClusterSigns, CoveredRows, about_cluster
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.records import LogPosition
from jobs.pipeline.group_pages import INPUTS, Changed, Page, PageMaker, SharedFacts, row_of, with_kept
from jobs.relations.groups import gathered, kinds, merged
from jobs.relations.knowledge import stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.relations.sessions import stored_lives, stored_lost_members, stored_lost_sessions, stored_stays
from jobs.tables.delta import Tables
from jobs.tables.reader import Row
from jobs.tables.results import FINDINGS, GROUP_PAGES
from jobs.tables.table import few


def here(
    tables: Tables,
    changed: Changed,
    limits: Thresholds,
    parts: int,
    around: Mapping[str, SharedFacts],
    report_page: PageMaker | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Return the rows of the findings and of the pages, computed by this process in so many parts."""
    engine = tables.engine()
    again = {cluster: None if groups is None else set(groups) for cluster, groups in changed.items()}
    kept, new, pages = [], list[dict[str, object]](), list[dict[str, object]]()
    for row in engine.rows("SELECT * FROM $findings"):
        cluster, group_id = row["cluster"], row["group_id"]
        # Rows about a cluster rest on all of its groups, and are made again with any of them.
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
    about, storms = list[dict[str, object]](), dict[str, list[CoveredRows]]()
    for cluster in changed:
        of_cluster = (_row(row) for row in (*kept, *new) if row["cluster"] == cluster and row["kind"] in COVERED)
        # After the groups: a storm is made of their findings, kept ones among them, and marks those that it covers.
        found, storms[cluster] = about_one(tables, cluster, of_cluster, limits)
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


def that_count(tables: Tables, cluster: str) -> Iterator[FindingRow]:
    """Yield the stored findings about groups that may be part of a storm."""
    text = "SELECT * FROM $findings WHERE cluster = :cluster AND kind IN :kinds AND group_id IS NOT NULL"
    return map(_row, tables.engine().rows(text, cluster=cluster, kinds=sorted(COVERED)))


def about_one(
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
