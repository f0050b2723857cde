"""Durations as people read them."""

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
    assert durations(191, 4_520) == "191 ms to 4.6 s"
    assert durations(4_510, 4_520) == "4.5 s"


def test_an_upper_bound_is_not_below_the_duration() -> None:
    """A member that stayed for 9.096 s did not stay for at most 9.0 s."""
    texts = [durations(1, ms) for ms in (999, 9_000, 9_096, 9_999, 59_001, 75_916, 3_600_001, 86_400_001)]
    assert [text.removeprefix("1 ms to ") for text in texts] == [
        "999 ms",
        "9.0 s",
        "9.1 s",
        "10 s",
        "1 min",
        "1 min 16 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
