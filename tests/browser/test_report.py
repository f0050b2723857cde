"""The report in a browser: opened from the file system, without network."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, Request
from typer.testing import CliRunner

from coordinator_core.audit.findings.group_history import GroupHistory
from jobs.cli.app import app
from jobs.report.build import ReportHeader, build
from jobs.report.render import to_html
from jobs.settings import load
from tests.browser.synthetic import large_report
from tests.shared_data import ROOT

GROUP = "A-coop-a2d7"
WIDTHS = {"wide": 1280, "narrow": 420}


class Opened(NamedTuple):
    """A page, what its console complained of, and what it asked for."""

    page: Page
    complaints: list[str]
    requests: list[str]


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("report") / "report.html"
    result = CliRunner().invoke(app, ["report", "--log", str(ROOT / "data/samples/logs"), "--out", str(page)])
    assert result.exit_code == 0, result.output
    return page


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": WIDTHS["wide"], "height": 900}, offline=True)
    opened = Opened(context.new_page(), [], [])

    def ask(request: Request) -> None:
        opened.requests.append(request.url)

    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("request", ask)
    opened.page.goto(report.as_uri())
    yield opened
    assert opened.complaints == []
    assert {url.partition("#")[0] for url in opened.requests if not url.startswith("blob:")} == {report.as_uri()}
    context.close()


def rows(page: Page) -> int:
    return page.locator("#groups tbody tr:visible").count()


def test_filters(opened):
    page = opened.page
    everything = rows(page)
    page.get_by_role("searchbox").fill("connect")
    some = rows(page)
    assert 0 < some < everything
    assert page.locator("#shown").inner_text() == f"{some} of {everything} groups"
    page.get_by_role("searchbox").fill("")
    page.get_by_role("checkbox", name="share", exact=True).check()
    assert set(page.locator("#groups tbody tr:visible td:nth-child(2)").all_inner_texts()) == {"share"}
    page.get_by_role("checkbox", name="share", exact=True).uncheck()
    page.get_by_role("checkbox", name="with findings").check()
    assert 0 < rows(page) < everything


def test_the_order_of_groups(opened):
    page = opened.page
    page.get_by_role("button", name="Rebalances", exact=True).click()
    counts = [int(text) for text in page.locator("#groups tbody td:nth-child(6)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    page.get_by_role("button", name="Rebalances", exact=True).click()
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("Rebalances")


def test_from_a_finding_to_the_story_of_a_rebalance(opened):
    page = opened.page
    page.locator(".findings").get_by_role("link", name=GROUP).first.click()
    page.wait_for_selector("#group-title")
    assert not page.locator("#overview").is_visible()
    assert page.locator(".timeline .spell").count() > 10
    page.get_by_role("link", name="5 → 6").click()
    assert "&epoch=6" in page.url
    page.wait_for_selector("#story li")
    assert "subscription" in page.locator("#story").inner_text()
    assert page.locator("#story code").count() > 3
    assert page.locator("tr[aria-current]").count() == 1
    page.go_back()
    page.go_back()
    assert page.locator("#overview").is_visible()


def test_a_deep_link_opens_its_rebalance(opened, report):
    opened.page.goto("about:blank")
    opened.requests.clear()
    opened.page.goto(f"{report.as_uri()}#group={GROUP}&epoch=6")
    opened.page.wait_for_selector("#story li")
    assert "Generation 5 to 6" in opened.page.locator("#story").inner_text()


def test_evidence_that_is_a_rebalance_leads_to_its_story(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    evidence = page.locator("#group .findings .proof a").first
    position = evidence.inner_text()
    evidence.click()
    page.wait_for_selector("tr[aria-current]")
    assert page.locator("tr[aria-current] code").inner_text() == position
    assert page.locator("#story li").count() > 0


def test_a_group_of_offsets_only_has_no_epoch_or_assignor(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group=A-expire-393")
    page.wait_for_selector("#group-title")
    assert page.locator(".facts dt").all_inner_texts() == ["Type", "History"]


def test_a_link_to_a_group_that_is_not_there(opened, report):
    opened.page.goto(f"{report.as_uri()}#group=no%20such")
    opened.page.wait_for_selector("#group .notice")
    assert "no such" in opened.page.locator("#group").inner_text()


@pytest.mark.parametrize("group_id", ["\0nul", "", "a+b %2B&epoch=1", "</script>'\"", "Grüße 🦊", "tab\tnewline\n"])
def test_a_group_opens_whatever_its_id_is(browser, tmp_path, group_id):
    found = [GroupHistory(group_id, 5), GroupHistory("another", 5)]
    (tmp_path / "r.html").write_text(
        to_html(build(found, load().findings, ReportHeader("c", "1", 0, (), True, []))), "utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "r.html").as_uri())
    page.locator("#groups tbody tr", has_not_text="another").get_by_role("link").click()
    page.wait_for_selector("#group-title", timeout=10_000)
    assert page.locator("#group-title").text_content() == (group_id or "(empty id)")
    page.close()


def test_the_keyboard_alone_is_enough(opened, report):
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".axis .band")
    page.locator(".axis .band[tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tip").is_visible()
    assert "Log " in page.locator("#tip").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector("#story li")
    assert "Generation 2 to 3" in page.locator("#story").inner_text()


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent")


def test_what_was_chosen_by_keyboard_keeps_the_focus(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".axis .band")
    page.locator(".axis .band[tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector("#story li")
    assert focused(page).startswith("Rebalance 1 to 2")
    page.keyboard.press("ArrowRight")
    assert focused(page).startswith("Rebalance 2 to 3")
    page.get_by_role("link", name="5 → 6").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#story').innerText.includes('5 to 6')")
    assert focused(page) == "5 → 6"


def test_the_way_back_ends_where_it_began(opened, report):
    page = opened.page
    title = page.title()
    page.locator("#groups").get_by_role("link", name=GROUP).click()
    page.wait_for_selector("#group-title")
    assert page.title() == f"{GROUP} · {title}"
    page.get_by_role("link", name="All groups").click()
    page.wait_for_selector("#overview:visible")
    assert page.title() == title
    assert focused(page) == GROUP
    assert page.locator("#groups").get_by_role("link", name=GROUP).bounding_box()["y"] < page.viewport_size["height"]


def test_to_skip_to_the_content_does_not_leave_the_group(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector("#group-title")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator("#group-title").is_visible()


def test_headings_go_down_one_level_at_a_time(opened, report):
    page = opened.page
    levels = "headings => headings.filter((each) => each.checkVisibility()).map((each) => +each.tagName[1])"
    for link in ("", f"#group={GROUP}&epoch=6"):
        page.goto(report.as_uri() + link)
        page.wait_for_selector("#story li" if link else "#overview")
        found = page.locator("h1, h2, h3, h4, h5").evaluate_all(levels)
        assert found[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(found))


def test_the_timeline_tells_epochs_and_which_rebalances_did_not_finish(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group=D-share-38")
    page.wait_for_selector(".axis .band")
    labels = page.locator(".axis .epoch")
    epochs = [int(text) for text in labels.all_text_contents()]
    assert epochs == sorted(epochs)
    assert len(epochs) > 5
    boxes = labels.evaluate_all("texts => texts.map((each) => each.getBBox()).map(({ x, width }) => [x, x + width])")
    assert all(before[1] <= after[0] for before, after in pairwise(boxes))
    heights = {
        outcome: {
            band.locator("rect").get_attribute("height")
            for band in page.locator(".axis .band").all()
            if f": {outcome}," in band.get_attribute("aria-label")
        }
        for outcome in ("converged", "superseded")
    }
    assert heights["superseded"]
    assert heights["converged"].isdisjoint(heights["superseded"])


def test_pointing_shows_the_evidence(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".spell")
    page.locator(".spell").nth(3).hover()
    assert "log 0:" in page.locator("#tip").inner_text()


def test_zoom_shows_less_and_then_all_again(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".spell")
    whole = page.locator(".timeline .spell").count()
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".timeline .spell").count() < whole
    page.get_by_role("button", name="Fit the whole history").click()
    assert page.locator(".timeline .spell").count() == whole


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_every_group_opens_at_every_width_in_both_themes(opened, report, width):
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    links = page.locator("#groups tbody th a").evaluate_all("links => links.map((link) => link.hash)")
    for link in ["#", *links]:
        page.goto(report.as_uri() + link)
        page.wait_for_selector("#overview" if link == "#" else "#group-title")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, link


def test_nothing_is_cut_off_on_paper(opened, report):
    page = opened.page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1024, "height": 900})
    for link in ("", f"#group={GROUP}&epoch=6"):
        page.goto(report.as_uri() + link)
        page.wait_for_selector("#story li" if link else "#overview")
        wide = "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).length"
        assert page.locator(".scroll:visible, .story:visible").evaluate_all(wide) == 0, link


def test_a_large_cluster_loads_in_two_seconds(browser, tmp_path):
    page_file = tmp_path / "large.html"
    page_file.write_text(to_html(large_report(groups=500, rebalances=5000)), encoding="utf-8")
    page = browser.new_page()
    began = time.monotonic()
    page.goto(page_file.as_uri())
    loaded = time.monotonic() - began
    began = time.monotonic()
    page.locator("#groups tbody th a").first.click()
    page.wait_for_selector("#group-title")
    drilled = time.monotonic() - began
    size = page_file.stat().st_size / 1e6
    print(f"500 groups, 5,000 rebalances: {size:.1f} MB, loaded in {loaded:.2f} s, a group in {drilled:.2f} s")
    page.close()
    assert loaded < 2
    assert drilled < 2
