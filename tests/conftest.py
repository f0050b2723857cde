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

SPARK_FIXTURE = re.compile(r"\bspark: SparkSession\b|\bsample: CoordinatorAudit\b|[(, ](spark|sample)[,)]")

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
    """Mark what uses the Spark session."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide the tests among processes by file, for the fixtures of modules; all files with Spark go to one process.

    A session takes seconds to start, and the samples' tables are filled once in each process that asks for them. The
    processes collect the tests, and this one knows only their names: so a file is looked at for the names of fixtures.
    """
    from xdist.scheduler import LoadFileScheduling

    files = ROOT.glob("tests/*/**/test_*.py")
    with_spark = {str(file.relative_to(ROOT)) for file in files if SPARK_FIXTURE.search(file.read_text("utf-8"))}

    class BySession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "spark" if file in with_spark else file

    return BySession(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden transcripts anew instead of comparing")
    parser.addoption("--cluster-records", type=int, default=20_000, help="size of the log of tests/cluster")
