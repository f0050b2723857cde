"""Test tiers: what needs the recorded logs and results is collected only where they lie beside the project, ``browser``
only where playwright is installed.

Hypothesis runs few and always the same examples, unless HYPOTHESIS_PROFILE=exhaustive asks for many new ones.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

from tests.shared_data import SHARED

settings.register_profile("quick", max_examples=12, derandomize=True, deadline=None)
settings.register_profile("exhaustive", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

collect_ignore = [] if SHARED.is_dir() else ["differential", "end_to_end/test_replay.py"]
if find_spec("playwright") is None:
    collect_ignore.append("browser")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write golden transcripts anew instead of comparing")
    parser.addoption("--cluster-records", type=int, default=20_000, help="size of the log of tests/cluster")
