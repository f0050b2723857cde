"""Every transcript in tests/data/transcripts comes out as written; ``--rewrite`` writes what comes out instead."""

from pathlib import Path

import pytest

from tests.core.coordinator.transcript import run
from tests.shared_data import ROOT

TRANSCRIPTS = sorted((ROOT / "tests" / "data" / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=[path.stem for path in TRANSCRIPTS])
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    actual = run(text)
    if request.config.getoption("--rewrite"):
        path.write_text(actual)
    assert actual == path.read_text()
