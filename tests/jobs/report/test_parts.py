"""One group's part of the report: how long it holds, and its texts."""

import json
from collections import Counter

from coordinator_core.audit.folds.log_ends import ALWAYS
from jobs.formatting import plain
from jobs.queries.from_logs.history import group_histories
from jobs.report.packing import PageTexts, group_json
from jobs.report.parts import READ_SUMMARY, kept_parts, page_of, part_of
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.jobs.conftest import SAMPLE_LOGS

HOUR_MS = 3_600_000
LIMITS = load(environment={}).findings


def test_what_is_made_of_a_group_holds_until_the_time_that_its_history_has_noted() -> None:
    """Whatever the logs of other groups add, up to the moment before: with it, something has lasted for long enough."""
    seen = Counter[str]()
    for history in group_histories(find_logs([SAMPLE_LOGS]), lambda _: None):
        page = page_of(history, LIMITS)
        until_ms, now_ms = history.ends_used.until_ms, history.now_ms
        seen["always" if until_ms == ALWAYS else "until" if until_ms else "depends"] += 1
        end_ms = min(until_ms - 1, now_ms + 10_000 * HOUR_MS)
        if now_ms < end_ms:
            assert page_of(history.replaced(now_ms=end_ms), LIMITS) == page, history.group_id
        if now_ms < until_ms < ALWAYS:
            seen["changes"] += page_of(history.replaced(now_ms=until_ms), LIMITS) != page
    assert (seen["until"], seen["always"], seen["depends"]) == (22, 11, 3)
    assert seen["changes"] > 10


def test_texts_and_summary_are_the_whole_part() -> None:
    for history in group_histories(find_logs([SAMPLE_LOGS]), lambda _: None):
        part, page = part_of(history, LIMITS, {}), page_of(history, LIMITS)
        (kept,) = kept_parts([{"summary": page.summary}])
        assert page.texts is not None
        assert json.loads(group_json(kept.group, PageTexts(*page.texts))) == json.loads(json.dumps(plain(part.group)))
        assert (kept.opened, kept.worst) == (part.opened, part.worst)
        assert READ_SUMMARY(json.loads(page.summary or "")).line == part.group.line
