"""Durations as people read them."""

from __future__ import annotations

from coordinator_core.durations import duration, durations


def test_a_duration_has_its_two_largest_units() -> None:
    times = (0, 191, 999, 1_417, 20_184, 75_916, 3_600_000, 12_000_000, 90_061_000)
    assert [duration(ms) for ms in times] == [
        "0 ms",
        "191 ms",
        "999 ms",
        "1.4 s",
        "20 s",
        "1 min 15 s",
        "1 h",
        "3 h 20 min",
        "1 d 1 h",
    ]


def test_a_duration_below_a_limit_does_not_read_like_the_limit() -> None:
    assert [duration(ms) for ms in (5_999, 9_999, 59_999)] == ["5.9 s", "9.9 s", "59 s"]


def test_bounds_that_read_the_same_are_said_once() -> None:
    assert durations(191, 4_520) == "191 ms to 4.5 s"
    assert durations(4_510, 4_520) == "4.5 s"
