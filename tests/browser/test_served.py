"""The served page in Chromium: its own scripts alone run, and what is asked for is shown.

The page forbids ``eval``, by which ``wait_for_function`` asks again: what is waited for is a locator.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.group_times import GroupTimes
from jobs.serve.guard import Guard
from jobs.serve.live import Live
from jobs.serve.server import served
from jobs.serve.site import Site
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.audit.histories import all_shown
from tests.shared_data import ROOT

GROUP = "A-coop-a2d7"
HOSTILE = '<img src=x onerror="document.title=1">'


class Running(NamedTuple):
    """The address of a served page, and where its live rows come from."""

    address: str
    live: Live


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    chosen = load(environment={})
    logs = find_logs([Path(ROOT, "data/samples/logs")])
    histories = list(group_histories(logs, pytest.fail, audit=chosen.audit, over_time=True))
    report = build(histories, chosen.findings, ReportHeader("sample", "1", 0, (), True, []), all_shown)
    times = {history.group_id: GroupTimes.of(history) for history in histories}
    place, live = (
        ServedLogs(LogsRead(report, times, LogAnswers(logs, pytest.fail, lambda: chosen)), chosen.findings, {}),
        Live(),
    )
    with served("127.0.0.1", 0, Site(place, is_live=True), Guard.of("127.0.0.1"), live) as port:
        yield Running(f"http://127.0.0.1:{port}/", live)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    assert complaints == []
    page.close()


def test_groups_are_asked_for_at_the_moment_of_the_address(page, running):
    page.goto(f"{running.address}#moment=2026-11-21T10:30:40Z")
    page.wait_for_selector("#groups-place tbody tr")
    assert "Groups at 2026-11-21 10:30:40.000 UTC" in page.locator("#groups-title").inner_text()
    heads = page.locator("#groups-place thead th").all_inner_texts()
    assert {"State", "Who owns how much", "Lag"} <= set(heads)
    assert "Coordinator away: " in page.locator("#then-all").inner_text()
    page.locator("#groups-place").get_by_role("link", name=GROUP).click()
    page.wait_for_selector("#then:visible")
    expect(page.locator("#then")).not_to_contain_text("not in this page")
    expect(page.locator("#then")).not_to_contain_text("asked for")
    assert "moment=2026-11-21T10:30:40Z" in page.url


def test_what_lay_within_a_minute_of_a_moment_is_told(page, running):
    report = json.loads(page.request.get(f"{running.address}api/overview").text())
    away = next(each for each in report["bands"] if each["kind"] == "coordinator_away")
    for time, said in ((away["since_ms"] - 7_000, "7.0 s later"), (away["until_ms"] + 8_000, "8.0 s before")):
        page.goto(
            f"{running.address}#moment={datetime.fromtimestamp(time / 1000, UTC).isoformat().replace('+00:00', 'Z')}"
        )
        expect(page.locator("#then-all")).to_contain_text(f"Coordinator away, {said}: ")
    page.goto(f"{running.address}#moment=2026-11-21T00:00:00Z")
    expect(page.locator("#then-all")).to_contain_text("no coordinator was away")


def test_offsets_at_a_moment_are_exact(page, running):
    page.goto(f"{running.address}#group=N-cls-7&moment=2026-11-21T10:37:20Z")
    page.wait_for_selector("#then:visible table")
    expect(page.locator("#then")).to_contain_text("n-1 0")
    expect(page.locator("#then")).not_to_contain_text("asked for")
    assert "not in this page" not in page.locator("#then").inner_text()


def test_offsets_that_the_log_does_not_show_are_unknown_and_not_awaited(page, running):
    page.goto(f"{running.address}#group=N-cls-7&moment=2030-01-01T00:00:00Z")
    expect(page.locator("#then")).to_contain_text(re.compile(r"n-1 0\s*unknown"))


def test_two_moments_of_a_group_with_what_is_set_for_it(page, running):
    page.goto(f"{running.address}#group=E-count&moment=2026-11-21T10:32:20Z&than=2026-11-21T10:38:00Z")
    differs = page.get_by_role("region", name="What differs between the two moments")
    expect(differs).to_contain_text(re.compile(r"Setting of the group: streams.num.standby.replicas\s*1\s*0"))


def test_where_the_metadata_log_shows_no_settings_of_a_group_snapshots_do(page, running):
    def answer(route):
        value = "1" if "10:32" in route.request.url.replace("%3A", ":") else "2"
        shown = [{"name": "streams.num.standby.replicas", "value": value}]
        route.fulfill(json={"group": None, "brokers": [], "shown": shown})

    page.route("**/api/settings*", answer)
    page.goto(f"{running.address}#group=E-count&moment=2026-11-21T10:32:20Z&than=2026-11-21T10:38:00Z")
    differs = page.get_by_role("region", name="What differs between the two moments")
    expect(differs).to_contain_text(re.compile(r"Setting of the group: streams.num.standby.replicas\s*1\s*2"))
    expect(differs).not_to_contain_text("Settings of the group")


def test_all_owners_are_there_and_those_that_are_not_are_counted(page, running):
    def answer(route):
        asked = route.fetch().json()
        names = [{"member_id": f"m-{number}", "client_id": None, "units": 1} for number in range(32)]
        asked["groups"][0] |= {"owners": names, "owning": 40, "owned": 40}
        asked["groups"][1] |= {"owners": names[:5], "owning": 5, "owned": 5}
        route.fulfill(json=asked)

    page.route("**/api/groups?*", answer)
    page.goto(running.address)
    many, few = (page.locator("#groups-place tbody tr").nth(index) for index in (0, 1))
    expect(few).to_contain_text("m-4 1")
    expect(few.locator("details")).to_have_count(0)
    expect(many.get_by_text("m-31 1")).to_be_hidden()
    many.get_by_text("and 36 more").click()
    expect(many.get_by_text("m-31 1")).to_be_visible()
    expect(many.get_by_role("link", name="and 8 more")).to_have_attribute("href", re.compile("#group="))


def test_a_question_that_fails_is_said(page, running):
    page.route("**/api/offsets*", lambda route: route.fulfill(body="no JSON"))
    page.goto(f"{running.address}#group=N-cls-7&moment=2026-11-21T10:37:20Z")
    expect(page.locator("#then")).to_contain_text("no answer: ")


def test_a_search_finds_members_and_topics(page, running):
    page.goto(running.address)
    page.get_by_role("searchbox").fill("inst-0")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#found table")
    assert "find=inst-0" in page.url
    page.get_by_role("searchbox").fill("a-coop")
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_contain_text("topic")


def test_two_moments_of_all_groups(page, running):
    page.goto(f"{running.address}#moment=2026-11-21T10:28:00Z&than=2026-11-21T10:30:00Z")
    page.wait_for_selector("#groups-place tbody tr")
    assert "What differs at the other moment" in page.locator("#groups-place").inner_text()
    assert "→" in page.locator("#groups-place tbody tr").first.inner_text()


def test_live_rows_are_text(page, running):
    page.goto(running.address)
    expect(page.locator("#live-state")).to_contain_text("Connected")
    row = {"event": "rebalance_ended", "group_id": HOSTILE, "from_epoch": 1, "to_epoch": 2, "outcome": "converged"}
    causes = [{"kind": "member_joined", "detail": None}, {"kind": "topic_grew", "detail": "orders"}]
    running.live.publish(json.dumps({**row, "at": {"timestamp_ms": 0}, "causes": causes}))
    expect(page.locator("#live-rows")).to_contain_text("<img src=x")
    expect(page.locator("#live-rows")).to_contain_text("member joined; topic grew, orders")
    assert page.locator("#live-rows img").count() == 0
    assert "moment=1970-01-01T00:00:00" in page.locator("#live-rows a").get_attribute("href")
    assert page.title() != "1"


def ended(group_id: str) -> str:
    at = {"partition": 0, "offset": 1, "timestamp_ms": 0}
    return json.dumps(
        {"event": "rebalance_ended", "group_id": group_id, "to_epoch": 9, "outcome": "converged", "at": at}
    )


def test_the_page_of_a_group_follows_its_rows(page, running):
    page.goto(f"{running.address}#group={GROUP}")
    page.wait_for_selector("#group-title")
    page.wait_for_timeout(500)  # the rows before are not new
    with page.expect_request("**/api/group?*"):
        running.live.publish(ended(GROUP))
    expect(page.locator("#news")).to_be_empty()


def test_what_was_chosen_stays_and_a_link_shows_what_is_new(page, running):
    page.goto(f"{running.address}#group={GROUP}&epoch=2")
    page.wait_for_selector("#group-title")
    page.wait_for_timeout(500)
    running.live.publish(ended("another"))
    running.live.publish(ended(GROUP))
    expect(page.locator("#news")).to_contain_text("New in this group: rebalance ended: ? → 9, converged")
    with page.expect_request("**/api/group?*"):
        page.get_by_role("link", name="show it").click()
    expect(page.locator("#news")).to_be_empty()
    assert "epoch=2" in page.url


def test_the_list_of_groups_follows_what_is_read(page, running):
    page.goto(running.address)
    page.wait_for_selector("#groups-place tbody tr")
    expect(page.locator("#live-state")).not_to_contain_text("Not connected")
    with page.expect_request("**/api/groups?*"):
        running.live.announce_news()
    expect(page.locator("#live-older")).to_contain_text("reload")


def test_inline_code_does_not_run(browser, running):
    page = browser.new_page()
    page.goto(running.address)
    ran = page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      document.body.append(script);
      return Boolean(window.ran);
    }""")
    page.close()
    assert not ran


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_nothing_keeps_anybody_out(browser, running, width, theme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    for link in (
        "",
        "moment=2026-11-21T10:28:00Z&than=2026-11-21T10:30:00Z&find=coop",
        f"group={GROUP}&moment=2026-11-21T10:28:00Z",
    ):
        page.goto("about:blank")
        page.goto(f"{running.address}#{link}")
        page.wait_for_selector("#then:visible" if "group=" in link else "#groups-place table")
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], link
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, link
    page.close()
