"""Topic regexes: what the broker's regex library, RE2/J 1.8, says to each (tried with the library itself)."""

import pytest

from coordinator_core.groups.re2 import error_in, matching

NAMES = ["foo", "Foo", "foo-bar", "a", "a+", "naïve", "t-10", "a\n"]


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("[a", "missing closing ]"),
        ("(foo", "missing closing )"),
        ("foo)", "regexp/syntax: internal error"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("(?=foo)", "invalid or unsupported Perl syntax"),
        ("(?<=foo)", "invalid named capture"),
        ("(?<!foo)", "invalid named capture"),
        ("(?<n", "invalid named capture"),
        ("(?P<n>a)(?<n>b)", "duplicate capture group name"),
        (r"\C", "invalid escape sequence"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_what_is_refused(regex: str, reason: str) -> None:
    assert error_in(regex) == reason
    assert matching(regex, NAMES) == []


@pytest.mark.parametrize(
    ("regex", "matches"),
    [
        ("foo", ["foo"]),
        ("(?i)foo", ["foo", "Foo"]),
        ("foo|foo-.*", ["foo", "foo-bar"]),
        ("(?P<n>f)(?P<m>oo)", ["foo"]),
        (r"\Qa+\E", ["a+"]),
        (r"\Qa+", ["a+"]),
        (r"a\\C?|\Qfoo", ["foo"]),
        (r"\pL+", ["foo", "Foo", "a", "naïve"]),
        (r"t-\d{2}", ["t-10"]),
        ("a$", ["a"]),
        ("(?s)a.?", ["a", "a+", "a\n"]),
    ],
)
def test_what_the_whole_name_matches(regex: str, matches: list[str]) -> None:
    assert error_in(regex) is None
    assert matching(regex, NAMES) == matches
