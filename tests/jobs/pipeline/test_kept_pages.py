"""What is kept of groups from one night to the next is what would be made again: findings, pages and the report."""

import json
import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.generate import generate
from jobs import nightly_run, settings
from jobs.pipeline import findings
from jobs.report import parts, stored
from jobs.report.parts import page_of
from jobs.report.render import to_html, to_json
from jobs.settings import Settings
from jobs.simulate.partition import simulate_here
from jobs.simulate.scenario_file import load_scenario
from jobs.tables.delta import Tables
from jobs.tables.reader import TableReader
from tests.core.real_logs import wild
from tests.fuzz.samples import batch_starts
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.null_listener import NullListener
from tests.shared_data import ROOT

pytestmark = pytest.mark.long
"""Each night takes seconds. The rule itself has quick tests: ``tests/jobs/report/test_parts.py`` and
``tests/jobs/relations/test_step_questions.py``.
"""

STEPS = ["ingest", "decode", "replay", "offsets", "findings", "report"]
BASE_TIMESTAMP_AT = 27


def growing(logs: Path, place: Path, nights: int) -> Iterator[Path]:
    """Yield the folder of logs as each of some nights finds it: they grow to the whole, cut at times."""
    files = {file: file.read_bytes() for file in sorted(logs.rglob("*.log"))}
    starts = {
        file: [(struct.unpack_from(">q", data, at + BASE_TIMESTAMP_AT)[0], at) for at in batch_starts(data)]
        for file, data in files.items()
    }
    times = sorted(at_ms for of_file in starts.values() for at_ms, _ in of_file if at_ms > 0)
    for night in range(1, nights + 1):
        until_ms = times[len(times) * night // nights - 1]
        for file, data in files.items():
            end = next((at for at_ms, at in starts[file] if at_ms > until_ms), len(data))
            if end:
                grown = place / file.relative_to(logs)
                grown.parent.mkdir(parents=True, exist_ok=True)
                grown.write_bytes(data[:end])
        yield place


def chosen(dump: Path, place: Path) -> Settings:
    flags = {"input.paths": [str(dump)], "nightly.steps": STEPS, "nightly.report": place / "report.html"}
    return settings.load(environment={}, flags={**flags, "cluster": "c"})


def night(dump: Path, place: Path) -> Settings:
    """Run a night without Spark. Its report stays beside its tables."""
    used = chosen(dump, place)
    outcome = nightly_run.run(Tables(None, str(place / "tables")), used, NullListener())
    assert [step.error for step in outcome.steps] == [None] * len(STEPS)
    return used


class Made(NamedTuple):
    """What findings and the report are made of, and the report."""

    findings: list[str]
    pages: list[str]
    report: tuple[str, str]


def made(tables: TableReader, used: Settings, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    report, texts = stored.kept_report(tables, used)
    of_groups, pages = (
        sorted(map(repr, tables.rows(f"SELECT * FROM ${name}"))) for name in ("findings", "group_pages")
    )
    return Made(of_groups, pages, (to_json(report, texts), to_html(report, texts)))


def compared(logs: Path, place: Path, nights: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Run nights over growing logs; after each, make all again. Return how many groups were made, and of how many."""
    seen = Counter[str]()
    monkeypatch.setattr(parts, "page_of", lambda *of: seen.update(["made"]) or page_of(*of))
    for number, dump in enumerate(growing(logs, place / "logs", nights)):
        used = night(dump, place)
        tables = Tables(None, str(place / "tables"))
        now = made(tables.engine(), used, monkeypatch)
        seen["groups"] += len(now.pages)
        again = place / f"again{number}"
        shutil.copytree(place / "tables", again)
        shutil.rmtree(again / "group_pages")
        anew = Tables(None, str(again))
        findings.run(anew, used.findings, "night", partial(page_of, limits=used.findings))
        assert made(anew.engine(), used, monkeypatch) == now
        of_histories = stored.stored_report(anew.engine(), used)
        assert (to_json(of_histories), to_html(of_histories)) == now.report
        written, data = (json.loads(text) for text in ((place / "report.json").read_text("utf-8"), now.report[0]))
        assert written["groups"] == data["groups"]
    return seen


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of four minutes of groups of every type."""
    logs = tmp_path_factory.mktemp("simulated")
    list(simulate_here(load_scenario(ROOT / "tests/kills/scenario.yaml"), 1, logs, "segments"))
    return logs


def test_only_groups_with_news_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most groups of these logs commit now and then; there are no topics that change."""
    generate(tmp_path / "whole", 3_000, 30, partitions=2)
    seen = compared(tmp_path / "whole", tmp_path, 3, monkeypatch)
    assert 40 < seen["made"] < seen["groups"]


@pytest.mark.parametrize("logs", ["simulated", "samples", "wild"])
def test_nights_of_all_kinds_of_groups(
    logs: str, simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"simulated": lambda: simulated, "samples": lambda: SAMPLE_LOGS, "wild": wild}
    assert compared(found[logs](), tmp_path, 4, monkeypatch)["groups"] > 4


def test_a_night_whose_findings_were_made_without_pages_makes_them(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = night(simulated, tmp_path)
    tables = Tables(None, str(tmp_path / "tables"))
    before = made(tables.engine(), used, monkeypatch)
    shutil.rmtree(tmp_path / "tables/group_pages")
    findings.run(tables, used.findings, "night")
    assert not findings.has_pages(tables)
    findings.run(tables, used.findings, "night", partial(page_of, limits=used.findings))
    assert findings.has_pages(tables)
    assert made(tables.engine(), used, monkeypatch) == before
