"""Moments in the report: gone to, compared, shared by the address; two owners and what lay over a time."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from coordinator_core.audit.folds.commit_times import CommitPoint, CommitTrail
from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.lost_records import LogExtent, LostRecords
from coordinator_core.records import GROUP_LOG
from jobs.report.build import ReportHeader, build
from jobs.report.render import to_html
from jobs.settings import load
from tests.core.audit.histories import all_shown, assignment, at, epoch, member, rebalance

START = 1_800_000_000_000 // 86_400_000 * 86_400_000
"""Midnight, so that a time of day is that many seconds after it."""


def then(second: int):
    return at(second, START + 1_000 * second)


TRAIL = [
    CommitPoint(then(second).timestamp_ms, second, offset, number)
    for second, offset, number in ((70, 5, 1), (200, 40, 7), (260, 50, 8), (400, 77, 9))
]
"""At 00:01:10 offset 5; five further commits; then 40, 50 and 77, between which there was none."""


def history() -> GroupHistory:
    """Two members; from 00:05:00 to 00:05:09 both had partition 0. Member b goes at 00:10:00."""
    return GroupHistory(
        "g",
        START + 3_600_000,
        epochs=[epoch(3, then(600))],
        rebalances=[rebalance(number, then(second)) for number, second in ((1, 60), (2, 300), (3, 600))],
        memberships=[member("a", then(60)), member("b", then(300), then(600), client="franz-go")],
        assignments=[
            assignment("a", 0, then(60)),
            assignment("b", 0, then(300), then(309)),
            assignment("b", 1, then(300), then(600)),
        ],
        violations=[Violation(Rule.ASSIGNED_TO_TWO, then(300), "g", "b", "t-0 is also assigned to a")],
        commits=[PartitionCommits("t", 0, 9, then(70), then(400), 77, (), ())],
        trails=[CommitTrail("t", 0, 0, tuple(TRAIL))],
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("moments") / "report.html"
    made = build(
        [history(), GroupHistory("other", 5)], load().findings, ReportHeader("c", "1", 0, (), True, []), all_shown
    )
    file.write_text(to_html(made), "utf-8")
    return file


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1440, "height": 900}, offline=True)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{report.as_uri()}#group=g")
    page.wait_for_selector("#group-title")
    yield page
    assert errors == []
    page.close()


def go_to(page: Page, moment: str, than: str = "") -> str:
    page.locator("#group .goto input").first.fill(moment)
    page.locator("#group .goto input").nth(1).fill(than)
    page.locator("#group .goto").get_by_role("button", name="Go", exact=True).click()
    return page.locator("#then").inner_text() if page.locator("#then").is_visible() else ""


def test_a_time_of_day_shows_members_owners_and_offsets(page):
    told = go_to(page, "00:08:20")
    assert "t 0\n77" in told.replace("\t", "\n")
    assert re.search(r"\ba\b[\s\S]*t 0[\s\S]*\bb\b[\s\S]*t 1", told)
    assert "client: franz-go" in told
    assert "moment=" in page.url
    assert page.locator(".timeline line.moment").count() > 0
    assert "rebalance 1 → 2: converged" in told


def test_a_distance_counts_from_the_moment_and_the_way_back_is_there(page):
    go_to(page, "00:08:20")
    assert "00:07:20" in go_to(page, "-1 min")
    page.go_back()
    page.wait_for_function("document.querySelector('#then').innerText.includes('00:08:20')")
    page.go_forward()
    page.wait_for_function("document.querySelector('#then').innerText.includes('00:07:20')")


def test_before_the_first_commit_there_is_none(page):
    told = go_to(page, "00:01:00")
    assert "none yet" in told
    assert "coordinator-audit offsets g --at" not in told


def test_behind_records_that_are_missing_nothing_is_claimed(browser, tmp_path):
    lost = LostRecords(read={(GROUP_LOG, 0): LogExtent(9, 400, 201)})
    made = build([replace(history(), lost=lost)], load().findings, ReportHeader("c", "1", 0, (), True, []), all_shown)
    file = tmp_path / "report.html"
    file.write_text(to_html(made), "utf-8")
    page = browser.new_page(offline=True)
    page.goto(f"{file.as_uri()}#group=g")
    page.wait_for_selector("#group-title")
    told = go_to(page, "00:04:00")
    page.close()
    assert "not in this page" in told
    assert "coordinator-audit offsets g --at" in told


def test_an_offset_is_exact_between_commits_that_follow_each_other(page):
    assert re.search(r"t 0\s+50\s+2027-01-15 00:04:20.000 0:260", go_to(page, "00:05:04"))
    told = go_to(page, "00:02:00")
    assert "between 5 and 40" in told
    assert "2027-01-15 00:01:10.000 0:70 and 2027-01-15 00:03:20.000 0:200" in told
    assert "coordinator-audit offsets g --at" in told


def test_two_moments_side_by_side(page):
    told = go_to(page, "00:08:20", "+5 min")
    lines = page.get_by_role("region", name="What differs between the two moments").inner_text()
    assert "Member client-b" in lines
    assert "gone" in lines
    assert re.search(r"Owner of t 1\s+client-b [^\n]+\s+no owner", lines)
    assert "What differs at" in told
    assert "than=" in page.url


@pytest.mark.parametrize("width", [1440, 390])
def test_the_answer_to_a_link_is_seen_first(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 844}, offline=True)
    page.goto(f"{report.as_uri()}#group=g&moment=2027-01-15T00:05:04Z")
    expect(page.locator("#then h3")).to_have_text("g at 2027-01-15 00:05:04.000 UTC")
    expect(page.locator("#then li").first).to_be_in_viewport()
    assert page.locator("#then li").first.inner_text().startswith("Two owners: t 0: client-a")
    page.close()


def test_a_window_without_the_moment_gives_way(page, report):
    page.goto(f"{report.as_uri()}#group=g&since=2027-01-15T00:01:00Z&until=2027-01-15T00:02:00Z")
    go_to(page, "00:08:20")
    assert "since=" not in page.url
    assert page.locator(".timeline line.moment").count() > 0
    page.goto(f"{report.as_uri()}#group=g&since=2027-01-15T00:08:00Z&until=2027-01-15T00:09:00Z")
    go_to(page, "00:08:20")
    assert "since=" in page.url


@pytest.mark.parametrize("wrong", ["yesterday", "25 past", "-3 parsecs", "<b>"])
def test_what_is_no_time_is_said(page, wrong):
    go_to(page, wrong)
    assert f"“{wrong}” is no time" in page.locator("#group .goto output").inner_text()
    assert "&moment" not in page.url


def test_two_owners_are_seen_at_any_zoom_and_said_first(page):
    mark = page.locator(".twice-mark").bounding_box()
    assert mark["width"] >= 12
    assert page.locator(".twice-unit").count() == 1
    page.locator(".axis .band").nth(1).click()
    text = page.locator("#story").inner_text()
    assert text.lower().index("two owners") < text.index("converged")
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".twice-mark").bounding_box()["width"] == mark["width"]


def test_a_finding_leads_to_its_moment_with_a_window_around_it(page, report):
    page.goto("about:blank")
    page.goto(report.as_uri())
    page.locator(".findings li[data-kind=two_owners]").get_by_role("link", name="g", exact=True).click()
    page.wait_for_selector("#then:visible")
    assert "00:05:00" in page.locator("#then h3").inner_text()
    assert "Epoch 1 to 2" in page.locator("#story").inner_text()
    assert "since=" in page.url


def test_the_address_alone_gives_the_same_view_again(page, browser, report):
    go_to(page, "00:08:20", "+5 min")
    page.get_by_role("button", name="Zoom in").click()
    other = browser.new_page(viewport={"width": 1440, "height": 900})
    other.goto(page.url)
    other.wait_for_selector("#then:visible")
    for part in ("#then", "#story", ".timeline .axis"):
        assert other.locator(part).text_content() == page.locator(part).text_content()
    other.close()


def test_filters_search_and_kinds_are_in_the_address(page, report):
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#find=franz-go")
    page.wait_for_function("document.querySelector('#shown').textContent.includes('by a member')")
    assert page.locator("#groups tbody tr:visible th").all_inner_texts() == ["g"]
    page.get_by_role("searchbox").fill("")
    page.locator("[name=kind][value=two_owners]").check()
    assert "kind=two_owners" in page.url
    shown = page.locator("#overview .findings > li:visible").evaluate_all("all => all.map((each) => each.dataset.kind)")
    assert set(shown) == {"two_owners"}
    page.go_back()
    assert not page.locator("[name=kind][value=two_owners]").is_checked()


def test_all_groups_at_a_moment(page, report):
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#moment=2027-01-15T00:05:04Z")
    page.wait_for_selector("#then-all table")
    row = page.get_by_role("region", name="All groups at the moment").locator("tbody tr").first.inner_text()
    assert "two owners" in row
    page.get_by_role("region", name="All groups at the moment").get_by_role("link", name="g").click()
    page.wait_for_selector("#then:visible")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_keeps_anybody_out_of_a_moment(browser, report, width, theme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    for link in ("moment=2027-01-15T00:05:04Z", "group=g&moment=2027-01-15T00:05:04Z&than=2027-01-15T00:11:00Z"):
        page.goto("about:blank")
        page.goto(f"{report.as_uri()}#{link}")
        page.wait_for_selector("#then:visible" if "group" in link else "#then-all table")
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], link
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, link
    page.close()
