"""The report as one self-contained HTML page, and as JSON."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coordinator_core.errors import UsageError
from jobs.formatting import number_ranges, plain
from jobs.report.build import BUCKETS_MS
from jobs.report.data import Count, GroupDetail, Report
from jobs.times import utc_datetime

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 1200, 150, 34, 20, 6
MINUTE_MS, DAY_MS = 60_000, 86_400_000
GRID_LINES = 4
TICKS = 8


def write(report: Report, out: Path) -> None:
    """Write the page, and its data as JSON next to it. Raise UsageError unless the name ends in .html."""
    check_name(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(to_html(report), encoding="utf-8")
    out.with_suffix(".json").write_text(to_json(report), encoding="utf-8")


def check_name(out: Path) -> None:
    """Raise UsageError unless the name ends in .html or .htm."""
    if out.suffix not in (".html", ".htm"):
        raise UsageError(f"invalid report file {str(out)!r}: use a name that ends in .html")


def to_json(report: Report) -> str:
    """Return the data of the report as one JSON object."""
    return json.dumps(plain(report), ensure_ascii=False, separators=(",", ":"))


def to_html(report: Report) -> str:
    """Return the page. The details of each group are packed (gzip, base64) and unpacked when they are opened."""
    environment = Environment(
        loader=PackageLoader("jobs.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        utc=utc,
        duration=duration,
        number=lambda value: f"{value:,}",
        words=lambda text: text.replace("_", " "),
        slug=lambda text: text.replace(" ", "-"),
        escaped=_escaped,
        link=lambda group_id: f"#group={_escaped(group_id)}",
        share=_share,
        stripe=_stripe,
        packed=_packed,
        ranges=number_ranges,
    )
    return environment.get_template("report.html.j2").render(report=report, chart=chart(report))


class Bar(NamedTuple):
    """One segment of a stacked bar."""

    x: float
    y: float
    width: float
    height: float
    outcome: str
    label: str


class Tick(NamedTuple):
    """A label of an axis: at ``x`` on the time axis, or at ``y`` on the vertical axis."""

    x: float
    y: float
    label: str


class Chart(NamedTuple):
    """Stacked bars over time, in the units of the SVG's view box."""

    width: int
    height: int
    left: int
    bars: Sequence[Bar]
    grid: Sequence[Tick]
    ticks: Sequence[Tick]


def chart(report: Report) -> Chart:
    """Return the rebalances over time as stacked bars."""
    if not report.activity:
        return Chart(WIDTH, HEIGHT, LEFT, (), (), ())
    first, last = report.activity[0].since_ms, report.activity[-1].since_ms + report.bucket_ms
    highest = max(sum(part.count for part in each.outcomes) for each in report.activity)
    x_scale, y_scale = (WIDTH - LEFT) / (last - first), (HEIGHT - BOTTOM - TOP) / highest
    order = {name: index for index, (name, _) in enumerate(report.outcomes)}
    bars = []
    for each in report.activity:
        floor = float(HEIGHT - BOTTOM)
        for name, number in sorted(each.outcomes, key=lambda part: order[part.name]):
            height = number * y_scale
            floor -= height
            x = LEFT + (each.since_ms - first) * x_scale
            label = f"{utc(each.since_ms)}: {number} {name}"
            bars.append(Bar(_r(x + 1), _r(floor), _r(report.bucket_ms * x_scale - 2), _r(height), name, label))
    spacing = next(size for size in _round_numbers() if highest // size <= GRID_LINES)
    grid = [
        Tick(0, _r(HEIGHT - BOTTOM - level * y_scale), str(level)) for level in range(spacing, highest + 1, spacing)
    ]
    step = next((size for size in BUCKETS_MS if (last - first) // size < TICKS), last - first)
    times = range(-(-first // step) * step, last, step)
    ticks = [Tick(_r(LEFT + (time - first) * x_scale), 0, _moment(time, step)) for time in times]
    ticks = [tick for tick in ticks if tick.x <= WIDTH - LEFT]
    return Chart(WIDTH, HEIGHT, LEFT, bars, grid, ticks)


def _round_numbers() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in count() for digit in (1, 2, 5))


def _moment(time_ms: int, step_ms: int) -> str:
    """Return a time with the precision that labels ``step_ms`` apart need; midnight is shown as the date."""
    text = utc(time_ms)
    if step_ms >= DAY_MS:
        return text[:10]
    return text[5:10] if time_ms % DAY_MS == 0 else text[11:16] if step_ms >= MINUTE_MS else text[11:19]


def utc(timestamp_ms: int) -> str:
    """Return a time to the millisecond, without its zone (UTC); one outside the calendar as a number of ms."""
    time = utc_datetime(timestamp_ms)
    if time is None:
        return f"{timestamp_ms} ms"
    return time.strftime("%Y-%m-%d %H:%M:%S.") + f"{time.microsecond // 1000:03}"


def duration(milliseconds: int) -> str:
    """Return a duration in its two largest units, such as 3 h 20 min."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    parts, rest = [], milliseconds // 1000
    for name, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def _r(value: float) -> float:
    return round(value, 1)


def _escaped(text: str) -> str:
    return quote(text, safe="")


def _share(there: int, missing: int) -> str:
    """Return the share of offsets that are present; it is 100% only if none is missing."""
    if not there:
        return "nothing"
    share = 100 * there / (there + missing)
    return "100%" if not missing else f"{min(share, 99.9):.1f}%"


def _stripe(counts: Sequence[Count], kind: str) -> Markup:
    """Return counts as a stripe of coloured parts, with a text for screen readers."""
    if not counts:
        return Markup('<span class="quiet">–</span>')
    words = ", ".join(f"{count} {name}" for name, count in counts)
    parts = Markup("").join(
        Markup('<i class="{}-{}" style="flex-grow:{}"></i>').format(kind, name.replace(" ", "-"), count)
        for name, count in counts
    )
    return Markup('<span class="stripe" role="img" aria-label="{}" title="{}">{}</span>').format(words, words, parts)


def _packed(group: GroupDetail) -> Markup:
    data = json.dumps(plain(group), ensure_ascii=False, separators=(",", ":")).encode()
    return Markup(base64.b64encode(gzip.compress(data, mtime=0)).decode())
