"""Durations as people read them."""

from __future__ import annotations

from coordinator_core.durations import duration, with_durations


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


def test_only_durations_of_a_sentence_change() -> None:
    told = "took 75916 ms of session.timeout.ms 6000, m-12345 ms 191 ms; x.60000 ms"
    assert with_durations(told) == "took 1 min 15 s of session.timeout.ms 6000, m-12345 ms 191 ms; x.60000 ms"
