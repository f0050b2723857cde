"""What CI systems read of a gate: JUnit XML and annotations of GitHub Actions."""

from xml.etree import ElementTree

import pytest

from coordinator_core.audit.finding_rows import Level
from jobs.cli.gate_formats import GateFormat, GateLine, print_ci

LINES = [
    GateLine("two_owners", "group a,b: <c>", "100% of\nit \x1b[1m", Level.ALARM, fails=True),
    GateLine("imbalance", "group d", "uneven", Level.NOTICE, fails=False),
    GateLine("violations", "c", None, Level.WARNING, fails=False),
]


def test_annotations_are_escaped_and_what_passed_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_ci(GateFormat.GITHUB, "findings", LINES)
    assert capsys.readouterr().out.splitlines() == [
        "::error title=two_owners%3A group a%2Cb%3A <c>::100%25 of%0Ait \\x1b[1m",
        "::notice title=imbalance%3A group d::uneven",
    ]


def test_junit_xml_has_a_case_for_each_and_only_what_fails_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    print_ci(GateFormat.JUNIT, "findings", LINES)
    (suite,) = ElementTree.fromstring(capsys.readouterr().out.encode())
    assert suite.attrib == {"name": "findings", "tests": "3", "failures": "1"}
    assert [case.attrib["classname"] for case in suite] == [
        "findings.two_owners",
        "findings.imbalance",
        "findings.violations",
    ]
    assert [case.find("failure") is not None for case in suite] == [True, False, False]
    assert "\\x1b[1m" in suite[0][0].attrib["message"]
