"""Tables for people: readable on any terminal, one line a row everywhere else."""

from datetime import UTC, datetime

import pytest

from jobs.checks.validation import Result
from jobs.cli.checks import print_results
from jobs.cli.console import Console
from jobs.cli.output import print_table, print_text

LINES = [
    {"group": "orders", "members": 3, "nothing": None, "detail": "what happened, at some length", "log": "1:47 1:48"},
    {"group": "a-group-of-a-long-name", "members": None, "nothing": None, "detail": "", "log": "2:5"},
]


@pytest.fixture(autouse=True)
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_a_pipe_gets_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line | {"detail": line["detail"] * 20} for line in LINES]
    print_table("groups", lines)
    title, *rows = capsys.readouterr().out.splitlines()
    assert title == "groups (2)"
    assert [row.split("\t") for row in rows] == [
        ["group", "members", "detail", "log"],
        ["orders", "3", str(LINES[0]["detail"]) * 20, "1:47 1:48"],
        ["a-group-of-a-long-name", "-", "-", "2:5"],
    ]


def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, lines=LINES) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table("groups", lines)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_what_does_not_fit_even_when_folded_is_printed_a_line_by_itself(monkeypatch, capsys) -> None:
    assert printed(monkeypatch, capsys, 22) == [
        "groups (2)",
        "",
        "group    orders",
        "members  3",
        "detail   what",
        "         happened, at",
        "         some length",
        "log      1:47 1:48",
        "",
        "group  a-group-of-a-lo",
        "       ng-name",
        "log    2:5",
    ]


@pytest.mark.parametrize("width", [60, 48], ids=["names would be folded", "sentences do not fit"])
def test_a_text_goes_below_its_row(monkeypatch, capsys, width: int) -> None:
    assert printed(monkeypatch, capsys, width) == [
        "groups (2)",
        "",
        "group                   members  log",
        "─" * 42,
        "orders                        3  1:47 1:48",
        "    what happened, at some length",
        "a-group-of-a-long-name        -  2:5",
        "",
    ]


def test_heads_are_broken_between_words_and_never_within_one(monkeypatch, capsys) -> None:
    lines = [
        {"finding": "slow", "for the records": "none is lost", "how sure": "proven by what the log says"},
        {"finding": "storm", "for the records": "they wait", "how sure": "likely"},
    ]
    assert printed(monkeypatch, capsys, 40, lines)[2:] == [
        "finding  for the",
        "         records",
        "─" * 21,
        "slow     none is lost",
        "    proven by what the log says",
        "storm    they wait",
        "    likely",
        "",
    ]


ROWS = [
    {"time": f"2026-11-21T10:29:0{second}.500+00:00", "type": "CONSUMER", "member": member, "detail": "a b c d e f g"}
    for second, member in ((1, "koilbNHcSWy_NPcjAFkhig"), (2, "app-1-bb0cdc79-c5ac-491a-be9f-f2574df33db6"))
]


def test_a_narrow_terminal_gets_shared_values_once_then_short_times_then_short_ids(monkeypatch, capsys) -> None:
    whole = printed(monkeypatch, capsys, 130, ROWS)
    assert "type" in whole[2]
    assert "bb0cdc79-c5ac-491a-be9f-f2574df33db6" in whole[5]
    shared = printed(monkeypatch, capsys, 90, ROWS)
    assert shared[1] == "in every row: type CONSUMER, detail a b c d e f g"
    assert "2026-11-21T10:29:01.500+00:00" in shared[5]
    timed = printed(monkeypatch, capsys, 65, ROWS)
    assert timed[2] == "times: 2026-11-21, UTC"
    assert timed[6].split() == ["10:29:01.500", "koilbNHcSWy_NPcjAFkhig"]
    short = printed(monkeypatch, capsys, 50, ROWS)
    assert [line.split() for line in short[6:8]] == [["10:29:01.500", "koilbNHc…"], ["10:29:02.500", "app-1-bb0cdc79…"]]


def test_ids_that_would_look_alike_stay_whole(monkeypatch, capsys) -> None:
    ids = ["bb0cdc79-c5ac-491a-be9f-f2574df33db6", "bb0cdc79-c5ac-491a-be9f-000000000000"]
    lines = printed(monkeypatch, capsys, 30, [{"n": 1, "member": each} for each in ids])
    assert not any("…" in line for line in lines)


def test_a_table_without_a_row_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("findings", [])
    assert capsys.readouterr().out.split() == ["findings", "(0)"]


def test_a_column_that_only_some_lines_have_is_empty_in_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("members", [{"member": "m1", "process": "p"}, {"member": "m2", "url": "u"}])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert rows[1] == ["member", "process", "url"]
    assert rows[-2:] == [["m1", "p", "-"], ["m2", "-", "u"]]


def test_names_of_clients_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("members", [{"client": "\x1b[2Jé\n日本 [bold]:smile:", "n": 1}])
    assert "\n" + r"\x1b[2Jé\n日本 [bold]:smile:" + "\t1" in capsys.readouterr().out


def test_sentences_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_text("the member that held it up is-named-here")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "the member that held it up",
        "is-named-here",
    ]


def test_a_check_that_does_not_pass_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    def result(check: str, *, passed: bool | None) -> Result:
        about, at = f"what {check} looks at", datetime(2026, 11, 1, tzinfo=UTC)
        happened = f"5 of {check}" if passed is False else None
        return Result("run", "c", "suite", check, "expect", about, happened, "critical", 1.0, "max_value 0", passed, at)

    results = [result("whole", passed=True), result("broken", passed=False), result("unclear", passed=None)]
    print_results(Console(), results)
    assert capsys.readouterr().err.splitlines() == [
        "note: broken failed in cluster c: 5 of broken",
        "note: unclear unknown in cluster c: what unclear looks at",
    ]
