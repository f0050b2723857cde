"""Which tests use the Spark session, as their files say it.

pytest-xdist divides tests by their names, in a process that collects none. Its own groups (``--dist loadgroup``) change
the names of tests, which pytest 9 does not allow any more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.shared_data import ROOT

SHARED_FIXTURES = frozenset({"spark", "sample"})
"""The fixtures of ``tests/jobs/conftest.py`` that need the session."""


@cache
def spark_tests() -> frozenset[str]:
    """The tests that use the session, without their parameters: ``path::function``."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return frozenset(f"{file.relative_to(ROOT)}::{name}" for file in files for name in _of_file(file))


def _of_file(file: Path) -> Iterator[str]:
    text = file.read_text("utf-8")
    if not any(name in text for name in SHARED_FIXTURES):
        return
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    asked = {node.name: {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)} for node in functions}

    def needs_session(name: str, seen: frozenset[str] = frozenset()) -> bool:
        if name in seen or name not in asked:
            return name in SHARED_FIXTURES
        return any(needs_session(fixture, seen | {name}) for fixture in asked[name])

    yield from (name for name in asked if name.startswith("test_") and needs_session(name))
