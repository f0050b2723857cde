"""The report in a browser: opened from the file system, without network."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request

from coordinator_core.audit.folds.group_history import GroupHistory
from jobs.report.build import ReportHeader, build
from jobs.report.render import to_html
from jobs.settings import load
from tests.commands import run_command
from tests.core.audit.histories import all_shown
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
    result = run_command("report", "--log", ROOT / "data/samples/logs", "--out", page)
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
    assert page.locator("#then").is_visible()
    assert page.locator(".timeline .spell").count() > 5
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
        to_html(build(found, load().findings, ReportHeader("c", "1", 0, (), True, []), all_shown)), "utf-8"
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
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 718, "height": 1000})
    for link in ("", f"#group={GROUP}&epoch=6"):
        page.goto(report.as_uri() + link)
        page.wait_for_selector("#story li" if link else "#overview")
        wide = "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.className)"
        assert page.locator(".scroll:visible, .story:visible, .panel:visible").evaluate_all(wide) == [], link
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)", "a dark screen makes no dark paper"
        for table in page.locator("table:visible").all():
            heads = table.locator("thead th")
            assert heads.count() == heads.evaluate_all("heads => heads.filter((each) => each.innerText.trim()).length")
    whole_words = """cells => cells.filter((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return !cell.children.length && /^[a-z]+$/.test(cell.textContent) && range.getClientRects().length > 1;
    }).map((cell) => cell.textContent)"""
    assert page.locator("td:visible").evaluate_all(whole_words) == []


VIEWS = ("", f"#group={GROUP}", "#group=D-share-38", "#group=E-count", "#group=A-expire-393")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_keeps_anybody_out(browser, report, width, theme):
    """The rules of axe-core, most of WCAG 2.2 AA; and no table is cut where it can be avoided."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, offline=True)
    for link in VIEWS:
        page.goto("about:blank")
        page.goto(report.as_uri() + link)
        page.wait_for_selector(".plot canvas" if not link else "#group-title")
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], link
        wide = "boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.ariaLabel)"
        allowed = [] if width > 400 else ["Log partitions"]
        assert page.locator(".scroll:visible").evaluate_all(wide) in ([], allowed), link
    page.close()


def test_every_tab_stop_has_a_name(opened, report):
    page = opened.page
    name = """() => {
      const each = document.activeElement;
      const name = each.ariaLabel || each.textContent || each.labels?.[0]?.textContent || each.title || "";
      return each === document.body ? null : `${each.tagName} ${name.trim().slice(0, 40)}`;
    }"""
    for link, most in (("", 110), (f"#group={GROUP}", 60), ("#group=D-share-38", 60)):
        page.goto("about:blank")
        opened.requests.clear()
        page.goto(report.as_uri() + link)
        page.wait_for_selector(".plot canvas" if not link else ".axis .band")
        page.evaluate("document.activeElement.blur()")
        stops = []
        for _ in range(most + 1):
            page.keyboard.press("Tab")
            stops.append(page.evaluate(name))
            if stops[-1] is None:
                break
        assert stops.pop() is None, f"more than {most} tab stops"
        assert len(stops) > 20
        assert all(len(stop.split(" ", 1)[1]) > 0 for stop in stops), stops


def test_the_worst_rebalance_is_selected_at_once_and_names_who(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group=B-range-5175")
    page.wait_for_selector("#story li")
    assert "Epoch 5 to 6" in page.locator("#story").inner_text()
    assert "1.8 s" in page.locator("#story .figures").inner_text()
    why = page.locator("#story .causes").inner_text()
    assert "member left or expired: B-range-5175-re1 at 127.0.0.1" in why
    assert "gQOHxEgbR-Gc_gLysC66HA" in why
    assert page.locator("tr[aria-current]").inner_text().startswith("5 → 6")
    assert "epoch" not in page.url, "the link to the group stays as it is"


def test_members_are_ranked_by_the_rebalances_that_they_caused(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group=N-cls-7")
    page.wait_for_selector("#group-title")
    ranks = page.get_by_role("region", name="Members by the rebalances that they caused")
    caused = [int(text) for text in ranks.locator("td:nth-child(2)").all_inner_texts()]
    assert caused == sorted(caused, reverse=True)
    assert ranks.locator("tbody th").first.inner_text() == "instance inst-0"
    assert caused[0] == 4


def shown_time(page: Page) -> list[str]:
    return page.locator(".timeline .axis .tick").all_text_contents()


def test_a_drag_over_any_panel_zooms_all_of_them(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".lanes .own")
    whole, owners = shown_time(page), page.locator(".lanes .own").count()
    for panel in (".lanes", ".brushed", "#group .plot"):
        page.locator(panel).first.scroll_into_view_if_needed()
        box = page.locator(panel).first.bounding_box()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 300, y)
        page.mouse.down()
        page.mouse.move(box["x"] + 400, y, steps=3)
        page.mouse.move(box["x"] + 450, y, steps=3)
        page.mouse.up()
        page.wait_for_function("before => document.querySelectorAll('.lanes .own').length < before", arg=owners)
        assert shown_time(page) != whole, panel
        assert "epoch" not in page.url, "a drag selects no rebalance"
        assert "since=" in page.url, "the address has the window"
        page.get_by_role("button", name="Fit the whole history").click()
        assert shown_time(page) == whole
        assert page.locator(".lanes .own").count() == owners


def test_charts_are_read_with_arrow_keys_and_as_tables(opened, report):
    page = opened.page
    data = json.loads(report.with_suffix(".json").read_text())
    page.wait_for_selector("#charts .plot canvas")
    page.locator("#charts .plot").first.focus()
    page.keyboard.press("Home")
    first = data["activity"][0]
    told = page.locator("#charts .readout").first.inner_text()
    assert all(f"{each['count']} {each['name']}" in told for each in first["causes"])
    page.locator("#charts").get_by_text("As a table").first.click()
    rows = page.get_by_role("region", name="Rebalances by cause: table").locator("tbody tr")
    sums = rows.locator("td:last-child").all_inner_texts()
    assert sum(map(int, sums)) == sum(each["count"] for each in data["outcomes"])


def test_owners_are_drawn_and_told(opened, report):
    page = opened.page
    data = json.loads(report.with_suffix(".json").read_text())
    (group,) = (each for each in data["groups"] if each["line"]["group_id"] == GROUP)
    page.goto(f"{report.as_uri()}#group={GROUP}")
    page.wait_for_selector(".lanes .own")
    assert page.locator(".lanes .own").count() == sum(len(unit["owners"]) for unit in group["owned"])
    page.locator(".lanes .own").first.hover()
    assert group["owned"][0]["name"] in page.locator("#tip").inner_text()
    page.locator(".legend button.chip").first.click()
    assert page.locator(".lanes .own.dim").count() > 0
    page.locator(".legend button.chip").first.click()
    assert page.locator(".lanes .own.dim").count() == 0


def test_share_partitions_over_time(opened, report):
    page = opened.page
    page.goto(f"{report.as_uri()}#group=D-share-38")
    page.wait_for_selector("#group-title")
    panel = page.locator(".panel", has=page.get_by_role("heading", name="Share partitions"))
    assert panel.locator(".own").count() > 5
    panel.get_by_text("As a table").click()
    assert "no start offset yet" in panel.locator("table").inner_text()


def test_what_is_not_known_is_said_with_the_command_that_gives_it(opened, report):
    page = opened.page
    page.wait_for_selector("#charts .plot canvas")
    assert "unknown: no end offsets were given" in page.locator("#charts").inner_text()
    assert "coordinator-audit snapshot kafka://HOST:9092 --out cluster.jsonl" in page.locator("#charts").inner_text()
    assert "coordinator-audit nightly" in page.locator("#charts").inner_text()


def test_lag_over_time_where_end_offsets_are_given(browser, tmp_path):
    times = [1_795_810_201_000 + 240_000 * step for step in range(9)]
    ends = [
        {"topic": "payments", "partition": number, "timestamp_ms": time, "end_offset": 10**6}
        for number in range(4)
        for time in times
    ]
    (tmp_path / "ends.jsonl").write_text("\n".join(map(json.dumps, ends)))
    page_file = tmp_path / "r.html"
    given = ["--log", str(ROOT / "data/samples/shop"), "--end-offsets", str(tmp_path / "ends.jsonl")]
    assert run_command("report", *given, "--out", page_file).exit_code == 0
    data = json.loads(page_file.with_suffix(".json").read_text())
    (group,) = (each for each in data["groups"] if each["line"]["group_id"] == "payments")
    page = browser.new_page(viewport={"width": 1440, "height": 900}, offline=True)
    for link in ("", "#group=payments", "#group=mailer", "#group=pricing"):
        page.goto("about:blank")
        page.goto(page_file.as_uri() + link)
        page.wait_for_selector("#group .panel" if link else ".plot canvas")
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], link
    page.goto(f"{page_file.as_uri()}#group=payments")
    panel = page.locator(".panel", has=page.get_by_role("heading", name="Lag over time"))
    panel.get_by_text("As a table").click()
    told = panel.get_by_role("region", name="Lag over time: table").locator("tbody tr").first.inner_text()
    newest = {f"{line['topic']} {line['partition']}": line["lags"][0] for line in group["lag"]}
    assert newest
    assert all(f"{lag:,}" in told for lag in newest.values() if lag is not None)
    page.close()
