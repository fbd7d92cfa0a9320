"""What a person sees who logs in, in a real browser over a real Airflow.

The navigation page, and the report of a run.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright
from sluice.report.store import report_path
from sluice.setup.browser import find_browser

from tests.airflow_service import AirflowService, land_visits
from tests.stored_reports import store_history, store_idle_run, store_refused

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SYSTEM = {"dark": 0, "light": 1}
"""What Chromium's own setting calls the colours that the system prefers."""
IS_DARK = """() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  return r + g + b < 3 * 60;
}"""
CUT = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), cut = [];
  for (let node; (node = walker.nextNode()); ) {
    const range = document.createRange(), holder = node.parentElement;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    const apart = holder.closest(".wide, thead, style, script, details:not([open]), svg");
    const out = box.left < 0 || box.right > innerWidth + 1;
    if (!apart && node.data.trim() && out) cut.push(node.data);
  }
  return cut;
}"""
"""The texts that stand over the edge of the window, but for tables that scroll by themselves."""


@pytest.fixture(scope="module")
def playwright():
    """Playwright, with the path of a Chromium: the system's, else its own.

    Without one the tests are skipped, but never where CI is set.
    """
    found = find_browser()
    if found is None and not os.environ.get("CI"):
        pytest.skip(
            "no browser is installed: `apt-get install chromium` or `playwright install chromium`"
        )
    with sync_playwright() as playwright:
        yield playwright, found


@pytest.fixture(scope="module")
def browser(playwright):
    """A headless Chromium."""
    playwright, found = playwright
    browser = playwright.chromium.launch(executable_path=found, args=QUIET)
    yield browser
    browser.close()


def log_in(context: BrowserContext, service: AirflowService) -> Page:
    """A page that is logged in as a viewer."""
    page = context.new_page()
    page.goto(f"{service.client.url}/auth/login")
    page.locator("input[name=username]").fill("viewer")
    page.locator("input[name=password]").fill(
        service.client.read_password(service.client.env, "viewer")
    )
    page.locator("button[type=submit]").click()
    expect(page.get_by_role("link", name="Dags").first).to_be_visible(timeout=60_000)
    return page


@pytest.fixture(scope="module")
def watched(airflow_service):
    """The pipeline `watched` after a run in which two rows broke a rule."""
    landing = airflow_service.add_pipeline("watched")
    land_visits(landing, 0, range(8))
    land_visits(landing, 1, range(8, 10), seconds=-1)
    assert airflow_service.run("watched", "seen_by_a_person") == "success"
    return airflow_service


@pytest.fixture(scope="module")
def storied(watched):
    """The pipeline `shop_visits` with reports of many runs, the newest idle, and refused rows."""
    watched.add_pipeline("shop_visits")
    paths, now = watched.paths("shop_visits"), datetime.now(UTC)
    store_history(paths, 33, now - timedelta(hours=1))
    store_idle_run(paths, "idle", now)
    rows = [
        (
            f'{{"id": {n}, "at": "2026-01-01T01:00:{n:02}", "page": "/{n % 7}", "seconds": -{n}}}',
            ["seconds_not_negative"],
            None,
        )
        for n in range(1, 31)
    ]
    rows += [
        ('{"id": 31, "at": "2026-01-01T01:00:31", "page": "<script>', ["malformed"], None),
        (
            '{"id": 32, "at": null, "page": "/4", "seconds": -3}',
            ["null_time", "seconds_not_negative"],
            None,
        ),
    ]
    store_refused(paths, "visits", rows, "hour_0032")
    return watched


@pytest.fixture
def page(browser, watched):
    """A page that is logged in as a viewer.

    The test fails when it asked another host for anything.
    """
    context, foreign = browser.new_context(viewport={"width": 1400, "height": 900}), []
    context.on(
        "request",
        lambda request: (
            foreign.append(request.url)
            if not request.url.startswith((watched.client.url, "data:", "blob:"))
            else None
        ),
    )
    yield log_in(context, watched)
    context.close()
    assert foreign == []


@pytest.fixture
def keep(tmp_path):
    """keep(page, name) stores a screenshot with the test; with `publish` in $SLUICE_SCREENSHOTS
    too, where that is set: `include/docs` has its pictures from there."""

    def shoot(page: Page, name: str, *, publish: bool = False) -> None:
        file = tmp_path / f"{name}.png"
        page.screenshot(path=file)
        assert file.stat().st_size > 10_000, "an empty page"
        if publish and (folder := os.environ.get("SLUICE_SCREENSHOTS")):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)

    return shoot


def open_quality(page: Page) -> None:
    """Go to the pages by the navigation."""
    page.get_by_role("link", name="Quality", exact=True).click()
    expect(page.frame_locator("iframe").locator("h1")).to_have_text("Data quality", timeout=30_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_navigation_leads_to_every_pipeline_and_on_to_its_report(page, keep, scheme):
    page.emulate_media(color_scheme=scheme)
    open_quality(page)
    frame = page.frame_locator("iframe")
    row = frame.locator("tr", has_text="watched")
    expect(row).to_contain_text(
        "10 read = 8 written + 2 quarantined + 0 duplicate + 0 late + 0 filtered", timeout=30_000
    )
    expect(row).to_contain_text("seconds_not_negative failed (2 rows)")
    keep(page, f"data-quality-{scheme}")
    row.get_by_role("link", name="watched").click()
    expect(frame.get_by_text("seconds_not_negative").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tab_of_a_run_shows_its_report_with_the_failing_rule(page, watched, keep, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(
        {"width": 1400, "height": 1700}
    )  # the picture shows the rule without scrolling
    page.goto(f"{watched.client.url}/dags/watched/runs/seen_by_a_person")
    page.get_by_text("Quality report").first.click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("seconds_not_negative").first).to_be_visible(timeout=30_000)
    expect(frame.locator("body")).to_contain_text("8 written")
    keep(page, f"quality-report-{scheme}")


def test_an_anonymous_visitor_is_sent_to_the_login(browser, watched):
    context = browser.new_context()
    page = context.new_page()
    assert page.goto(f"{watched.client.url}/sluice/").status == 401
    page.goto(f"{watched.client.url}/dags/watched")
    page.wait_for_url("**/auth/login**")
    context.close()


@contextmanager
def open_browser(playwright, system: str) -> Iterator[BrowserContext]:
    """A browser on a system that prefers these colours. Playwright's own emulation would be the
    same in every frame, whatever the page around it says."""
    playwright, found = playwright
    setting = f"--blink-settings=preferredColorScheme={SYSTEM[system]}"
    browser = playwright.chromium.launch(executable_path=found, args=[*QUIET, setting])
    try:
        yield browser.new_context(viewport={"width": 1200, "height": 760}, color_scheme="null")
    finally:
        browser.close()


def switch(page: Page, mode: str) -> None:
    """Choose the appearance in Airflow's own menu: `Light Mode`, `Dark Mode`."""
    page.get_by_role("button", name="User").click()
    page.get_by_text("Appearance").hover()
    page.get_by_text(mode).click()
    expect(page.locator("html")).to_have_class(mode.split()[0].lower())
    page.keyboard.press("Escape")


def wait_for_colours(page: Page, *, dark: bool) -> None:
    """Wait until the page within Airflow's frame is dark, or light."""
    page.frames[1].wait_for_function(f"() => ({IS_DARK})() === {str(dark).lower()}", timeout=10_000)


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_pages_and_the_report_follow_airflows_own_switch(playwright, storied, keep, system):
    with open_browser(playwright, system) as context:
        page = log_in(context, storied)
        open_quality(page)
        frame = page.frame_locator("iframe")
        wait_for_colours(page, dark=system == "dark")
        for mode in ("Dark Mode", "Light Mode", "Dark Mode"):
            switch(page, mode)
            wait_for_colours(page, dark=mode == "Dark Mode")
        frame.locator("tr", has_text="shop_visits").get_by_role("link", name="History").click()
        expect(frame.locator(".bar").first).to_be_visible()
        wait_for_colours(page, dark=True)
        keep(page, "dark_mode", publish=system == "light")
        frame.locator("tbody a").first.click()
        expect(frame.locator(".masthead")).to_be_visible()
        for mode in ("Light Mode", "Dark Mode", "Light Mode"):
            switch(page, mode)
            wait_for_colours(page, dark=mode == "Dark Mode")


@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_report_opened_alone_has_the_colours_of_the_system(playwright, storied, system):
    file = report_path(storied.paths("shop_visits").reports(), "hour_0032", "html")
    with open_browser(playwright, system) as context:
        page = context.new_page()
        page.goto(file.as_uri())
        assert page.evaluate(IS_DARK) == (system == "dark")


def test_the_history_draws_the_fates_of_each_run(page, storied, keep):
    page.set_viewport_size({"width": 1200, "height": 760})
    open_quality(page)
    frame = page.frame_locator("iframe")
    frame.locator("tr", has_text="shop_visits").get_by_role("link", name="History").click()
    bars = frame.get_by_role("img", name="written + ")
    expect(bars.first).to_be_visible()
    assert all(bar.bounding_box()["width"] > 100 for bar in bars.all())
    expect(frame.locator("tbody tr")).to_have_count(30)
    keep(page, "history", publish=True)


def test_the_quarantine_is_on_the_pages(page, storied, keep):
    page.set_viewport_size({"width": 1200, "height": 760})
    open_quality(page)
    frame = page.frame_locator("iframe")
    keep(page, "data_quality", publish=True)
    frame.locator("tr", has_text="shop_visits").get_by_role("link", name="Quarantine").click()
    expect(frame.get_by_text("32 rows in quarantine")).to_be_visible()
    expect(frame.locator(".refused")).to_contain_text('"page": "<script>')
    keep(page, "quarantine", publish=True)
    frame.get_by_role("link", name="null_time").click()
    expect(frame.locator(".refused tbody tr")).to_have_count(1)


def test_a_failing_rule_leads_to_itself_in_the_report(page, watched):
    open_quality(page)
    frame = page.frame_locator("iframe")
    row = frame.locator("tr", has_text="watched")
    row.get_by_role("link", name="seconds_not_negative").click()
    rule = frame.locator("#rule-visits-seconds_not_negative")
    expect(rule).to_be_in_viewport()


def test_the_report_says_why_rows_were_refused(page, watched, keep):
    page.set_viewport_size({"width": 1000, "height": 620})
    page.goto(f"{watched.client.url}/sluice/report?dag_id=watched&run_id=seen_by_a_person")
    reasons = page.get_by_role("region", name="Refused rows")
    expect(reasons).to_contain_text("seconds_not_negative")
    reasons.evaluate("reasons => reasons.scrollIntoView()")
    keep(page, "report_reasons", publish=True)


@pytest.mark.parametrize("link", ["DAG", "UTC"])
def test_a_link_leads_out_of_the_frame_into_airflow_and_back(page, watched, link):
    open_quality(page)
    row = page.frame_locator("iframe").locator("tr", has_text="watched")
    row.get_by_role("link", name=link).click()
    page.wait_for_url("**/dags/watched" if link == "DAG" else "**/dags/watched/runs/**")
    expect(page.locator("iframe")).to_have_count(0)
    page.go_back()
    expect(page.frame_locator("iframe").locator("h1")).to_have_text("Data quality")


PATHS = {
    "overview": "",
    "history": "history?dag_id=shop_visits",
    "quarantine": "quarantine?dag_id=shop_visits",
    "report": "report?dag_id=shop_visits&run_id=hour_0032",
    "real_report": "report?dag_id=watched&run_id=seen_by_a_person",
    "idle_report": "report?dag_id=shop_visits&run_id=idle",
    "no_report": "report?dag_id=shop_visits&run_id=never",
}


@pytest.mark.parametrize("name", PATHS)
def test_at_320_pixels_nothing_is_cut_and_nothing_scrolls_sideways(page, storied, keep, name):
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{storied.client.url}/sluice/{PATHS[name]}")
    assert page.evaluate("innerWidth") == 320
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.evaluate("document.documentElement.clientWidth")
    assert page.evaluate(CUT) == []
    keep(page, f"narrow_{name}" if name != "history" else "narrow", publish=name == "history")


def test_what_is_cut_would_be_seen(page, storied):
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{storied.client.url}/sluice/")
    page.evaluate("document.body.style.whiteSpace = 'nowrap'")
    assert page.evaluate(CUT) != []
