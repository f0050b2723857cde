"""What the page about the protocol documents names exists, and what is not done has a reason."""

from __future__ import annotations

import pytest

from jobs.cli.app import COMMANDS
from jobs.docs_coverage import Capability, DocumentSection, documents
from tests.shared_data import ROOT

ROWS = {
    "Client-side assignment (classic groups)": 9,
    "KIP-932 (share groups)": 20,
    "KIP-1071 (streams groups)": 29,
    "Connect on KIP-848, the older document": 8,
    "Connect on KIP-848": 17,
}
CLAIMS = [claim for each in documents() for claim in (*each.sections, *each.rows)]


def named(claim: DocumentSection | Capability) -> str:
    return claim.section if isinstance(claim, DocumentSection) else f"{claim.row} {claim.about}"


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_each_test_and_each_command_exists(claim: DocumentSection | Capability) -> None:
    assert set(claim.commands) <= set(COMMANDS)
    for test in claim.tests:
        path, _, function = test.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"\ndef {function}(" in text if function else text, test


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_what_is_done_is_tested_and_what_is_not_has_a_reason(claim: DocumentSection | Capability) -> None:
    if isinstance(claim, DocumentSection) or claim.state == "done":
        assert claim.tests
        assert claim.commands
    else:
        assert claim.why.endswith(".")


def test_every_row_is_there_once() -> None:
    rows = {each.document: [row.row for row in each.rows] for each in documents()}
    assert {name: len(set(numbers)) for name, numbers in rows.items()} == ROWS
    assert all(len(numbers) == len(set(numbers)) for numbers in rows.values())
    assert sum(map(len, rows.values())) == 83
