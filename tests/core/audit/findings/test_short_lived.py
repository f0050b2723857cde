"""Groups that are made again and again under new names, as by a console consumer that is started again and again."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings_of_cluster
from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.settings import load
from tests.core.audit.histories import all_shown, at, member

LIMITS = load(environment={}).findings
MINUTE_MS = 60_000


def found(names: list[str], stay_ms: int | None) -> list[FindingRow]:
    histories = []
    for number, name in enumerate(names):
        since = 1_000 + number * MINUTE_MS
        left = None if stay_ms is None else at(2 * number + 1, since + stay_ms)
        histories.append(
            GroupHistory(name, 10**9, memberships=[member("m", at(2 * number, since), left, group_id=name)])
        )
    return [
        row for row in findings_of_cluster(histories, LIMITS, all_shown) if row.kind == FindingKind.SHORT_LIVED_GROUPS
    ]


CONSOLE = [f"console-consumer-{7919 * number % 100_000}" for number in range(1, 401)]


def test_one_finding_tells_of_all_of_them() -> None:
    (row,) = found(CONSOLE, 90_000)
    assert (row.group_id, row.subject, row.value) == (None, "console-consumer-N", 400)
    assert row.detail.startswith(
        "400 groups named console-consumer-N, from console-consumer-7919 to console-consumer-67600, had members once, "
        "for at most 1 min 30 s"
    )
    assert (row.since_ms, row.until_ms) == (1_000, 1_000 + 399 * MINUTE_MS + 90_000)
    uuids = [f"app-{number:08x}-0000-4000-8000-00000000000{number % 10}" for number in range(60)]
    assert [row.subject for row in found(uuids, 1_000)] == ["app-N"]


@pytest.mark.parametrize(
    ("names", "stay_ms"),
    [
        (CONSOLE[:49], 90_000),
        (CONSOLE, None),
        (CONSOLE, 2 * 3_600_000),
        ([f"tenant-{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(200)], 90_000),
    ],
)
def test_few_or_lasting_groups_and_other_names_are_well(names: list[str], stay_ms: int | None) -> None:
    assert found(names, stay_ms) == []
