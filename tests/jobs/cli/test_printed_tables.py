"""Tables for people: readable on any terminal, one line a row everywhere else."""

from __future__ import annotations

import pytest

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
    title, _, head, _, first, second, _ = capsys.readouterr().out.split("\n")[:7]
    assert title == "groups (2)"
    assert head.split() == ["group", "members", "detail", "log"]
    assert f" {LINES[0]['detail'] * 20} " in first
    assert second.split() == ["a-group-of-a-long-name", "-", "-", "2:5"]


def test_what_does_not_fit_a_terminal_is_printed_a_line_by_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "36")
    print_table("groups", LINES)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "groups (2)",
        "",
        "group    orders",
        "members  3",
        "detail   what happened, at some",
        "         length",
        "log      1:47 1:48",
        "",
        "group  a-group-of-a-long-name",
        "log    2:5",
    ]


def test_a_table_without_a_row_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("findings", [])
    assert capsys.readouterr().out.split() == ["findings", "(0)"]


def test_names_of_clients_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("members", [{"client": "\x1b[2Jé\n日本 [bold]:smile:", "n": 1}])
    assert r"  \x1b[2Jé\n日本 [bold]:smile:  " in capsys.readouterr().out


def test_sentences_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_text("the member that held it up is-named-here")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "the member that held it up",
        "is-named-here",
    ]
