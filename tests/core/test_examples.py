"""Hypothesis' examples are the same whatever else is loaded: the quick tests give one result in any order."""

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

RARE = "made up by none"


def examples() -> list[str]:
    drawn: list[str] = []

    @settings(max_examples=300, derandomize=True, database=None)
    @given(st.text())
    def draw(text: str) -> None:
        drawn.append(text)

    draw()
    return drawn


def test_examples_do_not_depend_on_loaded_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = examples()
    (tmp_path / "some_constants.py").write_text(f"SEEN = {RARE!r}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("some_constants")
    try:
        assert examples() == before
    finally:
        del sys.modules["some_constants"]
