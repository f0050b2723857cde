"""Test tiers: what needs the recorded logs and results is collected only where they lie beside the project, ``browser``
only where playwright is installed.

Hypothesis runs few and always the same examples, unless HYPOTHESIS_PROFILE=exhaustive asks for many new ones. So it may
take no constants from the modules that happen to be loaded: the examples of a test would depend on the tests that ran
before it in the same process.
"""

import os
from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.shared_data import ROOT, SHARED
from tests.spark_tests import spark_tests

if "PYTEST_XDIST_WORKER" in os.environ:
    # A worker gets the width of the terminal; what commands print would be cut to it.
    os.environ.pop("COLUMNS", None)

settings.register_profile("quick", max_examples=12, derandomize=True, deadline=None)
settings.register_profile("exhaustive", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if settings().derandomize:
    # Hypothesis has no setting for it.
    providers._get_local_constants = providers.Constants

SLOWEST_FILES = 10

collect_ignore = [] if SHARED.is_dir() else ["differential", "end_to_end/test_replay.py"]
if find_spec("playwright") is None:
    collect_ignore.append("browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the Spark session, and put it first; the many short tests of the core are last.

    What uses Spark takes longest. So all processes end together.
    """
    for item in items:
        if uses_spark(item):
            item.add_marker("spark")
    items.sort(key=lambda item: (not uses_spark(item), item.path.is_relative_to(ROOT / "tests" / "core")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the ten files whose tests took longest, with their fixtures."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) > SLOWEST_FILES:
        terminalreporter.section("slowest files")
        for file, took in seconds.most_common(SLOWEST_FILES):
            terminalreporter.line(f"{took:7.1f} s  {file}")


def uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


SCENARIOS = "tests/matrix/test_scenarios.py"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide the tests among processes by file, for the fixtures of modules, but those with Spark go to two processes.

    Each session takes a start, and compiles again what others have compiled. But Spark mostly waits: with one process
    the others ended long before it. One process fills the tables of the samples, and has the tests that read them, and
    those of the pipeline. Each test of ``SCENARIOS`` takes long and shares nothing: in one process they would go on
    when all others have ended.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False

    class SparkInTwoProcesses(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            if file == SCENARIOS:
                return nodeid
            return spark_tests().get(nodeid.partition("[")[0], file)

    return SparkInTwoProcesses(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden transcripts anew instead of comparing")
    parser.addoption("--cluster-records", type=int, default=20_000, help="size of the log of tests/cluster")
