"""Reports of large clusters and of large groups in a browser: fast, small, and open about what they leave out."""

import re

from playwright.sync_api import CDPSession, Page

from jobs.report.render import to_html
from tests.browser.synthetic import large_report, report_of_a_large_group
from tests.browser.test_report import rows


def seconds_of_processor(page: Page, session: CDPSession) -> float:
    """Return what the main thread of the page has used: other processes beside the test do not count."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return metrics["TaskDuration"]


def test_a_large_cluster_stays_fast_and_small(browser, tmp_path):
    page_file = tmp_path / "large.html"
    page_file.write_text(to_html(large_report(groups=2000, rebalances=10_000)), encoding="utf-8")
    size = page_file.stat().st_size
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(page_file.as_uri())
    page.wait_for_function("document.querySelectorAll('#groups tbody tr').length === 2000")
    page.wait_for_selector("#charts .plot canvas")
    loaded = seconds_of_processor(page, session)
    page.locator("#groups tbody th a").first.click()
    page.wait_for_selector("#story li")
    drilled = seconds_of_processor(page, session) - loaded
    page.go_back()
    page.get_by_role("searchbox").fill("service-1430")
    assert rows(page) == 1
    page.close()
    print(f"2,000 groups, 10,000 rebalances: {size / 1e6:.1f} MB, loaded in {loaded:.2f} s, a group in {drilled:.2f} s")
    assert size < 3_000_000
    assert loaded < 2
    assert drilled < 1


def test_groups_for_which_there_is_no_room_are_listed_and_say_how_to_ask(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("jobs.report.render.MOST_BYTES", 1)
    monkeypatch.setattr("jobs.report.packing.CHUNK", 1)
    (tmp_path / "r.html").write_text(to_html(large_report(groups=3, rebalances=9)), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "r.html").as_uri())
    assert rows(page) == 3
    assert page.locator("#groups tbody th a").count() == 1
    notice = page.locator("#overview .notice").inner_text()
    assert "2 of the listed groups have no page here" in notice
    assert "coordinator-audit history GROUP" in notice
    page.close()


def test_a_very_large_group_stays_fast_and_small(browser, tmp_path):
    """500 members and 5,000 partitions: what is left out is said, with the command that shows it."""
    page_file = tmp_path / "group.html"
    page_file.write_text(to_html(report_of_a_large_group(members=500, partitions=5000)), encoding="utf-8")
    size = page_file.stat().st_size
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{page_file.as_uri()}#group=large")
    page.wait_for_selector("#story li")
    page.wait_for_selector(".lanes .own")
    used = seconds_of_processor(page, session)
    text = page.locator("#group").inner_text()
    zoomed = seconds_of_processor(page, session)
    page.get_by_role("button", name="Zoom in").click()
    zoomed = seconds_of_processor(page, session) - zoomed
    page.close()
    print(f"500 members, 5,000 partitions: {size / 1e6:.1f} MB, opened in {used:.2f} s, zoomed in {zoomed:.2f} s")
    assert "120 of 5000 partitions or tasks" in text
    assert re.search(r"All owners: coordinator-audit owners \S+ --history", text)
    assert "200 of " in text
    assert size < 3_000_000
    assert used < 3
    assert zoomed < 1
