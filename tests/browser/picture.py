"""Take the picture of the report for README and documentation: ``python -m tests.browser.picture``."""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.commands import run_command
from tests.shared_data import ROOT

GROUP = "payments"
PICTURE = ROOT / "docs" / "report.png"


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder, "report.html")
        run_command("report", "--log", ROOT / "data/samples/shop", "--out", page_file)
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = chromium.new_page(viewport={"width": 1440, "height": 1150})
        page.goto(f"{page_file.as_uri()}#group={GROUP}")
        page.wait_for_selector("#group .plot canvas")
        page.locator("#group .findings .when a").first.click()
        page.wait_for_selector("#then:visible")
        page.evaluate("scrollTo(0, document.querySelector('.drawn').getBoundingClientRect().top - 16)")
        page.screenshot(path=PICTURE)
        chromium.close()


if __name__ == "__main__":
    main()
