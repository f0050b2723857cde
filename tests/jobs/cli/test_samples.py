"""The shipped sample is what its README says."""

from __future__ import annotations

import gzip

import pytest
from typer.testing import CliRunner

from jobs.cli.app import app
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples"


@pytest.mark.parametrize(
    ("options", "known"),
    [((), "decoded.jsonl.gz"), (("--topic", "__share_group_state"), "decoded_share_state.jsonl.gz")],
)
def test_dump_prints_what_is_known(options, known):
    result = CliRunner().invoke(app, ["dump", str(SAMPLES / "logs"), *options])
    assert result.exit_code == 0
    assert result.stdout == gzip.decompress((SAMPLES / "known" / known).read_bytes()).decode()
