"""Data Docs that open without a network: the style sheets and scripts lie beside the pages, in ``static``.

Great Expectations' own pages name them on servers in the internet. ``static/LICENSES.txt`` has their licences.
"""

import re
from pathlib import Path
from typing import Any, Final

from great_expectations.render.renderer.site_builder import DefaultSiteIndexBuilder
from great_expectations.render.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

STATIC: Final = Path(__file__).parent / "static"
STYLES: Final = (
    "bootstrap-table.min.css",
    "bootstrap.min.css",
    "bootstrap-table-filter-control.min.css",
    "bootstrap-datepicker.min.css",
)
SCRIPTS: Final = (
    "jquery.min.js",
    "bootstrap.bundle.min.js",
    "bootstrap-table.min.js",
    "bootstrap-table-filter-control.min.js",
    "bootstrap-datepicker.min.js",
)
"""In the order in which pages load them: each uses the ones before it."""

ICONS: Final = (
    "<style>.fa-check-circle::before{content:'\\2714'} .fa-times::before{content:'\\2718'} "
    ".fa-exclamation-triangle::before{content:'\\26A0'} .fa-question-circle::before{content:'?'} "
    "[class*='fa-']{font-style:normal}</style>"
)
"""Signs in place of the icons of Font Awesome."""

REMOTE: Final = re.compile(
    r"<link\b[^>]*href=\"https?://[^>]*>|<script\b[^>]*src=\"https?://[^>]*></script>|<img\b[^>]*src=\"https?://[^>]*>"
    r"|url\('https?://[^']*'\)",
    re.DOTALL,
)
HOME: Final = re.compile(r'href="((?:\.\./)*)index\.html"')
NEWSLETTER: Final = re.compile(r"<p>Stay current.*?</p>", re.DOTALL)


def offline(page: str) -> str:
    """Return the page with nothing in it that is loaded from a server."""
    home = HOME.search(page)
    static = f"{home[1] if home else './'}static"
    links = [f'<link rel="stylesheet" href="{static}/{name}">' for name in STYLES]
    links += [f'<script src="{static}/{name}"></script>' for name in SCRIPTS]
    local = NEWSLETTER.sub("", REMOTE.sub(lambda found: "none" if found[0].startswith("url") else "", page))
    return local.replace("<style>", "\n".join((*links, ICONS, "<style>")), 1)


class OfflinePageView(DefaultJinjaPageView):
    """A page of a suite or of a validation."""

    def render(self, document: Any, template: str | None = None, **kwargs: Any) -> str:
        """Return the page as HTML."""
        return offline(super().render(document, template, **kwargs))


class OfflineIndexView(DefaultJinjaIndexPageView):
    """The first page."""

    def render(self, document: Any, template: str | None = None, **kwargs: Any) -> str:
        """Return the page as HTML."""
        return offline(super().render(document, template, **kwargs))


class OfflineIndexBuilder(DefaultSiteIndexBuilder):
    """Builds the first page, and puts the style sheets and scripts beside it."""

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Return what Great Expectations' own builder returns."""
        self.target_store.copy_static_assets(str(STATIC))
        return super().build(*args, **kwargs)
