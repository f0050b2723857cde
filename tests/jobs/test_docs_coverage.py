"""What the page about the protocol documents names exists, and what is not done has a reason."""

import ast

import pytest

from jobs.cli.app import COMMANDS
from jobs.docs.documents import Addition, Capability, DocumentSection, KafkaTestClass, documents, kafka_tests
from tests.claims.flips import defined
from tests.shared_data import ROOT

ROWS = {
    "Client-side assignment (classic groups)": 9,
    "KIP-932 (share groups)": 20,
    "KIP-1071 (streams groups)": 31,
    "Connect on KIP-848, the older document": 8,
    "Connect on KIP-848": 17,
}
CLAIMS = [claim for each in documents() for claim in (*each.sections, *each.rows, *each.beyond)]


Claim = DocumentSection | Capability | Addition


def named(claim: Claim) -> str:
    return claim.section if isinstance(claim, DocumentSection) else claim.about


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_each_test_and_each_command_exists(claim: Claim) -> None:
    assert set(claim.commands) <= set(COMMANDS)
    check_tests_exist(claim.tests)


def check_tests_exist(tests: list[str]) -> None:
    for test in tests:
        path, _, function = test.partition("::")
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"\ndef {function}(" in text if function else text, test


@pytest.mark.parametrize("claim", [each for each in CLAIMS if not isinstance(each, DocumentSection)], ids=named)
def test_the_code_that_does_it_exists(claim: Capability | Addition) -> None:
    """``python -m tests.claims`` makes it false, and says whether the tests notice."""
    for code in claim.code:
        file, _, symbol = code.partition("::")
        assert defined(ast.parse((ROOT / file).read_text(encoding="utf-8")), symbol), code


@pytest.mark.parametrize("claim", CLAIMS, ids=named)
def test_what_is_done_is_tested_and_what_is_not_has_a_reason(claim: Claim) -> None:
    if isinstance(claim, DocumentSection) or claim.state == "done":
        assert claim.tests
        assert claim.commands
        assert isinstance(claim, DocumentSection) or claim.code
    else:
        assert claim.why.endswith(".")


def test_every_row_is_there_once() -> None:
    rows = {each.document: [row.row for row in each.rows] for each in documents()}
    assert {name: len(set(numbers)) for name, numbers in rows.items()} == ROWS
    assert all(len(numbers) == len(set(numbers)) for numbers in rows.values())
    assert sum(map(len, rows.values())) == 85


@pytest.mark.parametrize("claim", kafka_tests(), ids=lambda claim: claim.name)
def test_kafkas_tests_are_asked_or_left_out_for_a_reason(claim: KafkaTestClass) -> None:
    check_tests_exist(claim.by)
    assert claim.asked + sum(each.tests for each in claim.left_out) == claim.tests
    assert all(each.why.endswith(".") for each in claim.left_out)


def test_every_transcript_of_requests_and_offsets_is_of_a_class_of_kafkas_tests() -> None:
    folder = ROOT / "tests" / "data" / "transcripts"
    questions = {path.name for begin in ("offsets_", "requests_", "states_") for path in folder.glob(f"{begin}*.txt")}
    assert questions <= {test.rpartition("/")[2] for claim in kafka_tests() for test in claim.by}
