"""The checks in a report: those of the last run, what failed first, and why."""

from pathlib import Path
from typing import Any

from coordinator_core.audit.findings.thresholds import Thresholds
from jobs.report.build import ReportHeader, build
from jobs.report.render import to_html
from jobs.report.stored import stored_checks
from jobs.settings import load
from jobs.tables.folder_reader import FolderReader
from tests.core.audit.histories import all_shown
from tests.jobs.relations.tables_of_logs import CLUSTER, append

LIMITS: Thresholds = load(environment={}).findings
NEWER = {"cluster": CLUSTER, "run_id": "2", "suite": "protocol", "severity": "critical", "bound": "max_value 0"}
ROWS: list[dict[str, Any]] = [
    {**NEWER, "run_id": "1", "check": "violations", "passed": True, "about": "No rule is broken.", "observed": 0.0},
    {**NEWER, "check": "undecoded_runs", "passed": True, "about": "All runs are decoded.", "observed": 0.0},
    {**NEWER, "check": "divergent_targets", "passed": None, "about": "No target differs.", "happened": "none is known"},
    {
        **NEWER,
        "check": "violations",
        "passed": False,
        "about": "No rule is broken.",
        "observed": 5.0,
        "happened": "5 in g",
    },
    {**NEWER, "cluster": "other", "check": "notices", "passed": False, "about": "No notice."},
]


def test_the_report_shows_which_checks_failed_and_why(tmp_path: Path) -> None:
    append(tmp_path, "check_results", ROWS)
    checks = tuple(stored_checks(FolderReader(str(tmp_path)), CLUSTER))
    assert [(each.check, each.verdict) for each in checks] == [
        ("violations", "failed"),
        ("divergent_targets", "unknown"),
        ("undecoded_runs", "passed"),
    ]
    page = to_html(build((), LIMITS, ReportHeader(CLUSTER, "1", 0, [], True, [], checks=checks), all_shown))
    assert "1 of 3 failed" in page
    row = page[page.index('<tr><th scope="row" data-head="Check">violations') :]
    row = row[: row.index("</tr>")]
    for told in ("failed", "critical", "5", "max_value 0", "No rule is broken.", "<b>5 in g</b>"):
        assert told in row
    assert "none is known" in page
    folded = page[page.index("<h3>1 passed</h3>") :]
    assert "undecoded runs" in folded
    assert ">violations<" not in folded


def test_a_report_of_log_files_has_no_checks() -> None:
    assert "checks-title" not in to_html(build((), LIMITS, ReportHeader(CLUSTER, "1", 0, [], True, []), all_shown))
