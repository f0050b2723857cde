"""The report as one self-contained HTML page, and as JSON."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.cluster.clocks import utc_as
from coordinator_core.durations import duration
from jobs.formatting import number_ranges, plain, visible
from jobs.report.data import CausedBy, Count, Rebalance, Report
from jobs.report.packing import PageTexts, details, escaped, group_json, json_text, packed
from jobs.report.report_files import check_name
from jobs.whole_files import write_whole

VENDORED: Final = files("jobs.report") / "vendor"
"""The chart library, as it was published, with its licence."""
MOST_BYTES: Final = 2_200_000
"""Bytes of the page that the details of groups may take: the page stays below 3 MB."""
MOST_NAMES: Final = 3
"""Names in one cell; of more, the number."""
PAD_MS: Final = 10_000
"""A window around a finding reaches at least so far, as in ``address.js``."""
TEN_MINUTES_MS: Final = 600_000
CHARTS: Final = (
    "bands.js",
    "range.js",
    "charts.js",
    "overview_charts.js",
    "moment.js",
    "goto.js",
    "timeline.js",
    "ownership.js",
    "shares.js",
    "story.js",
    "group.js",
    "overview.js",
)
SCRIPTS: Final = ("elements.js", "address.js", "packed.js", *CHARTS, "groups.js", "route.js")
"""The scripts of the page, in this order."""
SERVED_SCRIPTS: Final = ("elements.js", "address.js", "served.js", *CHARTS, "served_groups.js", "live.js", "route.js")
TEMPLATES: Final = files("jobs.report") / "templates"
STYLES: Final = ("report.css", "panels.css", "moment.css", "print.css")
PLAIN_ROWS: Final = 200
"""Groups whose rows are in the page as they are; the rows of the others are packed, and appended by a script."""


Texts = Mapping[str, PageTexts]
"""The texts of pages by group id, of groups that have only the rest of their page."""
ALL_THERE: Final[Texts] = MappingProxyType({})


def write(report: Report, out: Path, texts: Texts = ALL_THERE) -> None:
    """Write the page, and its data as JSON next to it. Raise UsageError unless the name ends in .html."""
    check_name(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, to_html(report, texts))
    write_whole(out.with_suffix(".json"), to_json(report, texts))


def to_json(report: Report, texts: Texts = ALL_THERE) -> str:
    """Return the data of the report as one JSON object. Groups are most of it, and become text one by one."""
    groups = ",".join(group_json(group, texts.get(group.line.group_id)) for group in report.groups)
    fields = {name: json_text(plain(value)) for name, value in report._replace(groups=())._asdict().items()}
    return "{" + ",".join(f'"{name}":{text}' for name, text in (fields | {"groups": f"[{groups}]"}).items()) + "}"


def to_html(report: Report, texts: Texts = ALL_THERE) -> str:
    """Return the page. The details of groups are packed (gzip, base64) and unpacked when they are opened."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            served=False,
            overview=_overview(report),
            bands=plain(report.bands),
            scripts=SCRIPTS,
            styles=STYLES,
            details=details(report.groups, MOST_BYTES, texts),
            plain_rows=PLAIN_ROWS,
            chart_library=_vendored("uPlot.iife.min.js").partition("\n")[2],
            chart_style=_vendored("uPlot.min.css"),
            chart_licence=_vendored("uPlot.LICENSE"),
        )
    )


def served_page(report: Report, *, is_live: bool) -> str:
    """Return the page as it is served: it asks for groups, and its scripts and styles have addresses of their own."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(report=report, served=True, is_live=is_live, bands=plain(report.bands))
    )


def served_scripts() -> str:
    """Return the scripts of the served page, with the chart library and its licence."""
    parts = [f"/*\n{_vendored('uPlot.LICENSE')}*/", _vendored("uPlot.iife.min.js").partition("\n")[2]]
    texts = [(TEMPLATES / name).read_text("utf-8") for name in SERVED_SCRIPTS]
    # One function around all of them: they use each other's names, and leave none to the page.
    return "\n".join([*parts, '"use strict";', "(() => {", *texts, "})();", ""])


def served_styles() -> str:
    """Return the styles of the served page."""
    return "\n".join([_vendored("uPlot.min.css"), *((TEMPLATES / name).read_text("utf-8") for name in STYLES)])


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("jobs.report"),
        autoescape=True,
        finalize=_shown,
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
        escaped=escaped,
        link=lambda group_id: f"#group={escaped(group_id)}",
        share=_share,
        stripe=_stripe,
        packed=packed,
        why=_why,
        moment=_moment,
        ten_minutes_before=lambda row: _moment(row, TEN_MINUTES_MS),
        ranges=number_ranges,
    )
    return environment


def _shown(value: object) -> object:
    """Show characters that act on the text around them, such as a change of its direction, by their numbers."""
    return visible(value) if type(value) is str else value


def _vendored(name: str) -> Markup:
    return Markup((VENDORED / name).read_text("utf-8"))


def _moment(row: FindingRow, before_ms: int = 0) -> str:
    """Return the address of the moment at which a finding began, or of one before, with a window around it."""
    since_ms = row.since_ms - before_ms
    pad = max(PAD_MS, (row.until_ms - row.since_ms) // 4)
    window = {"moment": since_ms, "since": since_ms - pad, "until": row.until_ms + pad}
    parts = [] if row.group_id is None else [f"group={escaped(row.group_id)}"]
    if row.group_id is not None and row.evidence and not before_ms:
        parts.append(f"at={row.evidence[0].partition}:{row.evidence[0].offset}")
    return f"#{'&'.join(parts + [f'{name}={iso}' for name, time in window.items() if (iso := utc_iso(time))])}"


def utc_iso(timestamp_ms: int) -> str | None:
    """Return a time as ISO 8601 to the millisecond, in UTC; None for one outside the calendar."""
    return utc_as(timestamp_ms, lambda time: _to_the_millisecond(time).replace(" ", "T") + "Z")


def _overview(report: Report) -> dict[str, object]:
    """Return what the charts of the overview show."""
    names = ("first_ms", "last_ms", "bucket_ms", "activity", "families", "commits", "lag", "nights")
    has_ends = any(offset.lag is not None for group in report.groups for offset in group.offsets)
    return {name: plain(getattr(report, name)) for name in names} | {"has_ends": has_ends}


def utc(timestamp_ms: int) -> str:
    """Return a time to the millisecond, without its zone (UTC); one outside the calendar as a number of ms.

    The time of a record without one is ``unknown``.
    """
    return utc_as(timestamp_ms, _to_the_millisecond) or "unknown"


def _to_the_millisecond(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S.") + f"{time.microsecond // 1000:03}"


def _why(rebalance: Rebalance) -> str:
    """Return the kinds of causes, each with its members or topics, and those of the rebalance that it goes on with."""
    own = _causes(rebalance.caused_by)
    return own if rebalance.follows is None else f"{own}, after epoch {rebalance.follows}: {_causes(rebalance.origin)}"


def _causes(causes: Sequence[CausedBy]) -> str:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for cause in causes:
        name = _who(cause) if cause.member_id is not None else ", ".join(cause.topics)
        if name and name not in names[cause.kind]:
            names[cause.kind].append(name)
    kinds = dict.fromkeys(cause.kind for cause in causes)
    sentences = []
    for kind in kinds:
        subjects = names.get(kind, [])
        more = f" and {len(subjects) - MOST_NAMES} more" if len(subjects) > MOST_NAMES else ""
        listed = f" ({', '.join(subjects[:MOST_NAMES])}{more})" if subjects else ""
        sentences.append(kind.replace("_", " ") + listed)
    return "; ".join(sentences) or "unknown"


def _who(cause: CausedBy) -> str:
    """Return the instance id, or client id and host; the member id where the log has neither."""
    if cause.instance_id:
        return f"instance {cause.instance_id}"
    if cause.client_id:
        return f"{cause.client_id} at {cause.client_host or 'unknown host'}"
    return cause.member_id or ""


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
    whole, left, parts = sum(count for _, count in counts), 0.0, []
    for name, count in counts:
        wide = 100 * count / whole
        parts.append(
            Markup('<rect class="{}-{}" x="{:.2f}" width="{:.2f}" height="1"/>').format(
                kind, name.replace(" ", "-"), left, max(wide - 0.8, 0.8)
            )
        )
        left += wide
    return Markup(
        '<svg class="stripe" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(words, words, Markup("").join(parts))
