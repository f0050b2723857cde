"""Test tiers: what needs the recorded logs and results is collected only where they lie beside the project, ``browser``
only where playwright is installed.

Hypothesis runs few and always the same examples, unless HYPOTHESIS_PROFILE=exhaustive asks for many new ones. So it may
take no constants from the modules that happen to be loaded: the examples of a test would depend on the tests that ran
before it in the same process.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.shared_data import ROOT, SHARED

SAMPLE_FIXTURE = re.compile(r"\bsample: CoordinatorAudit\b|[(, ]sample[,)]")

if "PYTEST_XDIST_WORKER" in os.environ:
    # A worker gets the width of the terminal; what commands print would be cut to it.
    os.environ.pop("COLUMNS", None)

settings.register_profile("quick", max_examples=12, derandomize=True, deadline=None)
settings.register_profile("exhaustive", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if settings().derandomize:
    # Hypothesis has no setting for it.
    providers._get_local_constants = providers.Constants

collect_ignore = [] if SHARED.is_dir() else ["differential", "end_to_end/test_replay.py"]
if find_spec("playwright") is None:
    collect_ignore.append("browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the Spark session, and put its files first: they take longest, and two processes end together."""
    with_spark = set()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
            with_spark.add(item.path)
    items.sort(key=lambda item: item.path not in with_spark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide the tests among processes by file, for the fixtures of modules, in the order in which they are collected.

    Files that ask for the tables of the samples go to one process, so that they are filled once. The processes collect
    the tests, and this one knows only their names: so a file is looked at for the name of the fixture.
    """
    from xdist.scheduler import LoadFileScheduling

    files = ROOT.glob("tests/jobs/**/test_*.py")
    with_sample = {str(file.relative_to(ROOT)) for file in files if SAMPLE_FIXTURE.search(file.read_text("utf-8"))}
    config.option.loadscopereorder = False

    class BySample(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "sample" if file in with_sample else file

    return BySample(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden transcripts anew instead of comparing")
    parser.addoption("--cluster-records", type=int, default=20_000, help="size of the log of tests/cluster")
