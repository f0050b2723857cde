"""Which tests use the Spark session, as their files say it.

pytest-xdist divides tests by their names, in a process that collects none. Its own groups (``--dist loadgroup``) change
the names of tests, which pytest 9 does not allow any more.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.shared_data import ROOT

SHARED_FIXTURES = ("sample", "spark")
"""The fixtures of ``tests/jobs/conftest.py`` that need the session; the first one a test has names its process."""

BESIDE_SAMPLE = ROOT / "tests" / "jobs" / "pipeline"
"""Whose tests share the process of ``sample``, whichever fixture they have: then both take as long."""


@cache
def spark_tests() -> Mapping[str, str]:
    """The shared fixture of each test that uses the session, by its name without parameters: ``path::function``."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return {f"{file.relative_to(ROOT)}::{name}": shared for file in files for name, shared in _of_file(file)}


def _of_file(file: Path) -> Iterator[tuple[str, str]]:
    text = file.read_text("utf-8")
    if not any(name in text for name in SHARED_FIXTURES):
        return
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    asked = {node.name: {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)} for node in functions}

    def shared_by(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        if name in seen or name not in asked:
            return {name} & {*SHARED_FIXTURES}
        return set[str]().union(*(shared_by(fixture, seen | {name}) for fixture in asked[name]))

    for name in asked:
        if name.startswith("test_") and (shared := shared_by(name)):
            beside = {"sample"} if file.is_relative_to(BESIDE_SAMPLE) else set()
            yield name, min(shared | beside, key=SHARED_FIXTURES.index)
