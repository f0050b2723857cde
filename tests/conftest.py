"""Test tiers: what needs the recorded logs and results is collected only where they lie beside the project, ``browser``
only where playwright is installed.

Hypothesis runs few and always the same examples, unless HYPOTHESIS_PROFILE=exhaustive asks for many new ones. So it may
take no constants from the modules that happen to be loaded: the examples of a test would depend on the tests that ran
before it in the same process.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests.shared_data import SHARED

settings.register_profile("quick", max_examples=12, derandomize=True, deadline=None)
settings.register_profile("exhaustive", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
if settings().derandomize:
    # Hypothesis has no setting for it.
    providers._get_local_constants = providers.Constants

collect_ignore = [] if SHARED.is_dir() else ["differential", "end_to_end/test_replay.py"]
if find_spec("playwright") is None:
    collect_ignore.append("browser")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the Spark session, and say which tests ``--dist loadgroup`` keeps in one process.

    All tests with Spark are one group, for the one session; the others are grouped by file, for fixtures of a module.
    """
    for item in items:
        with_spark = "spark" in getattr(item, "fixturenames", ())
        if with_spark:
            item.add_marker("spark")
        item.add_marker(
            pytest.mark.xdist_group("spark" if with_spark else str(item.path.relative_to(item.config.rootpath)))
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden transcripts anew instead of comparing")
    parser.addoption("--cluster-records", type=int, default=20_000, help="size of the log of tests/cluster")
