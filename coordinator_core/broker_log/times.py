"""Times in the lines of application logs: as written, in milliseconds as far as the line has a zone, and how exact."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = "|".join(MONTHS)
TIME: Final = re.compile(
    r"(?<![\d.])(?:(?:(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)"
    rf"|(?P<day2>\d\d?)[ /-](?P<name>{_MONTH})[ /-](?P<year2>\d{{4}})"
    rf"|(?P<name3>{_MONTH}) (?P<day3>\d\d?), (?P<year3>\d{{4}})"
    r"|(?P<one>\d\d?)(?P<mark>[./-])(?P<other>\d\d?)(?P=mark)(?P<year4>20\d\d))"
    r"(?:T|:| @ |,? )(?P<hour>\d\d?):(?P<minute>\d\d):(?P<second>\d\d)"
    r"|(?P<year5>20\d\d)(?P<month5>\d\d)(?P<day5>\d\d)T?(?P<hour5>\d\d)(?P<minute5>\d\d)(?P<second5>\d\d)"
    r"(?=[.,]\d{3}|\d{3}(?!\d)))"
    r"(?:[.,:]?(?P<fraction>(?<=[.,:])\d{1,9}|(?<=\d)\d{3}(?!\d)))?(?P<half> ?[AP]M\b)?"
    r"(?P<zone> ?(?:Z|UTC|GMT)\b| ?[+-]\d\d:?\d\d(?!\d))?"
)
"""A date and a time, as layouts of log4j, containers, collectors and spreadsheets write them."""
SINCE_EPOCH: Final = re.compile(
    r"(?<![\w.-])(?P<whole>1\d{9})(?:\.(?P<point>\d{1,9})|(?P<more>\d{3}|\d{6}|\d{9}))(?![\w.])"
)
"""Seconds since the epoch with a fraction, or milli-, micro- or nanoseconds."""
QUARTER_MS: Final = 15 * 60_000
"""Every zone is a multiple of a quarter of an hour."""
EARLIEST_MS: Final = -14 * 3_600_000
LATEST_MS: Final = 12 * 3_600_000
"""What a zone adds to get UTC (ms): from that of the Line Islands, +14:00, to -12:00."""
SECOND_MS: Final = 1000
LAST_MONTH: Final = 12
EARLIEST_S: Final = 10**9
"""A number below it is no time: seconds since the epoch have had ten digits since 2001."""
COARSE_MS: Final = (1000, 100, 10)
"""Resolutions that the times of a file may have although they are written with more digits (ms)."""
CHANCE: Final = 10**5
"""Times are that coarse if fewer than one of so many files would have them by chance."""


class WrittenTime(NamedTuple):
    """A time as written, as if its zone were UTC, and what must be added to that to get UTC; None: not known (ms).

    It is a moment of the ``resolution_ms`` that begin there: a second where it is written without a fraction.
    """

    text: str = ""
    local_ms: int | None = None
    to_utc_ms: int | None = None
    resolution_ms: int = 1


NO_TIME: Final = WrittenTime()


@lru_cache(1024)
def _minute_ms(date: tuple[int, int, int], hour: int, minute: int) -> int | None:
    try:
        at = datetime(*date, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1000


def _date(match: re.Match[str]) -> tuple[int, int, int] | None:
    """Return year, month and day; None where it is open which number is the month."""
    name = match["name"] or match["name3"]
    if match["mark"] is None:
        month = int(match["month"] or match["month5"]) if name is None else MONTHS.index(name) + 1
        year = match["year"] or match["year2"] or match["year3"] or match["year5"]
        return int(year), month, int(match["day"] or match["day2"] or match["day3"] or match["day5"])
    year, one, other = (int(match[part]) for part in ("year4", "one", "other"))
    if match["mark"] == "." or one > LAST_MONTH or one == other:
        return year, other, one
    return (year, one, other) if other > LAST_MONTH else None


def _hour(match: re.Match[str]) -> int:
    hour = int(match["hour"] or match["hour5"])
    return hour if match["half"] is None else hour % 12 + 12 * ("P" in match["half"])


def _written(match: re.Match[str]) -> WrittenTime:
    date = _date(match)
    minute = None if date is None else _minute_ms(date, _hour(match), int(match["minute"] or match["minute5"]))
    if minute is None:
        return WrittenTime(match[0])
    local_ms = minute + int(match["second"] or match["second5"]) * SECOND_MS + _ms(match["fraction"])
    return WrittenTime(match[0], local_ms, _to_utc_ms(match["zone"]), _resolution(match["fraction"]))


def _since_epoch(match: re.Match[str]) -> WrittenTime:
    fraction = match["point"] or match["more"]
    return WrittenTime(match[0], int(match["whole"]) * SECOND_MS + _ms(fraction), 0, _resolution(fraction))


def _ms(fraction: str | None) -> int:
    return int(((fraction or "0") + "00")[:3])


def _resolution(fraction: str | None) -> int:
    return int(10 ** max(3 - len(fraction or ""), 0))


def _to_utc_ms(zone: str | None) -> int | None:
    if zone is None:
        return None
    zone = zone.strip()
    if zone[0] not in "+-":
        return 0
    size = int(zone[1:3]) * 3_600_000 + int(zone[-2:]) * 60_000
    return -size if zone[0] == "+" else size


def zone_between(utc_ms: int, local_ms: int, error_ms: int = QUARTER_MS) -> int | None:
    """Return the zone (ms to add to get UTC) between two times of one moment; None: there is no zone that is so far
    away, or the clocks differ by more than ``error_ms`` beside it.
    """
    difference = utc_ms - local_ms
    zone = round(difference / QUARTER_MS) * QUARTER_MS
    return zone if EARLIEST_MS <= zone <= LATEST_MS and abs(difference - zone) <= error_ms else None


def time_before(text: str) -> WrittenTime:
    """Return the last time in the text, which is the broker's own; a time before it may be a collector's.

    Where the broker's has no zone and a collector's has, the difference between the two tells it.
    """
    times = [_written(match) for match in TIME.finditer(text)]
    if not times:
        since = SINCE_EPOCH.search(text)
        return NO_TIME if since is None else _since_epoch(since)
    own = times[-1]
    for other in (*times[:-1], *map(_since_epoch, SINCE_EPOCH.finditer(text))):
        own = with_zone(own, other)
    return own


def with_zone(time: WrittenTime, around: WrittenTime) -> WrittenTime:
    """Return the time with the zone that its difference from the time around it tells, if it has none itself."""
    if time.to_utc_ms is not None or time.local_ms is None or around.local_ms is None or around.to_utc_ms is None:
        return time
    return time._replace(to_utc_ms=zone_between(around.local_ms + around.to_utc_ms, time.local_ms))


def time_of_value(value: object) -> WrittenTime:
    """Return the time that a field of a JSON layout has: text, a number since the epoch, or log4j's ``instant``."""
    if isinstance(value, dict) and isinstance(value.get("epochSecond"), int):
        nanos = value.get("nanoOfSecond")
        at = value["epochSecond"] * SECOND_MS + (nanos // 1_000_000 if isinstance(nanos, int) else 0)
        return WrittenTime(str(at), at, 0)
    if isinstance(value, str):
        return time_before(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and EARLIEST_S <= value < 1e20:
        if value < 1e11:
            return WrittenTime(str(value), int(value * SECOND_MS), 0, 1 if isinstance(value, float) else SECOND_MS)
        # By the number of digits: 13 are milliseconds, 16 microseconds and 19 nanoseconds.
        return WrittenTime(str(value), int(value / 10 ** max(3 * ((len(str(int(value))) - 11) // 3), 0)), 0)
    return NO_TIME


def resolution_of(local_ms: Iterable[int]) -> int:
    """Return how exact the times of a file are, whatever digits they are written with (ms): a collector may write
    ``.000`` behind each.
    """
    times = set(local_ms)
    for size in COARSE_MS:
        # That n times are multiples of a size by chance happens once in size ** n files.
        if size ** min(len(times), 5) >= CHANCE and all(time % size == 0 for time in times):
            return size
    return 1
