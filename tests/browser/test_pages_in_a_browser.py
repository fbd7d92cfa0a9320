"""What a person sees who logs in, in a real browser over a real Airflow.

The navigation page, and the report of a run.
"""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from sluice.setup.browser import find_browser

from tests.airflow_service import land_visits

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium: the system's, else Playwright's own.

    Without one the tests are skipped, but never where CI is set.
    """
    found = find_browser()
    if found is None and not os.environ.get("CI"):
        pytest.skip(
            "no browser is installed: `apt-get install chromium` or `playwright install chromium`"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def watched(airflow_service):
    """The pipeline `watched` after a run in which two rows broke a rule."""
    landing = airflow_service.add_pipeline("watched")
    land_visits(landing, 0, range(8))
    land_visits(landing, 1, range(8, 10), seconds=-1)
    assert airflow_service.run("watched", "seen_by_a_person") == "success"
    return airflow_service


@pytest.fixture
def page(browser, watched):
    """A page that is logged in as a viewer.

    The test fails when it asked another host for anything.
    """
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page, foreign = context.new_page(), []
    page.on(
        "request",
        lambda request: (
            foreign.append(request.url)
            if not request.url.startswith((watched.client.url, "data:", "blob:"))
            else None
        ),
    )
    page.goto(f"{watched.client.url}/auth/login")
    page.locator("input[name=username]").fill("viewer")
    page.locator("input[name=password]").fill(
        watched.client.read_password(watched.client.env, "viewer")
    )
    page.locator("button[type=submit]").click()
    expect(page.get_by_role("link", name="Dags").first).to_be_visible(timeout=60_000)
    yield page
    context.close()
    assert foreign == []


@pytest.fixture
def keep(page, tmp_path):
    """keep(name) stores a screenshot with the test, and in $SLUICE_SCREENSHOTS when that is set."""

    def shoot(name: str) -> None:
        file = tmp_path / f"{name}.png"
        page.screenshot(path=file)
        assert file.stat().st_size > 10_000, "an empty page"
        if folder := os.environ.get("SLUICE_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(file, folder)

    return shoot


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_navigation_leads_to_every_pipeline_and_on_to_its_report(page, keep, scheme):
    page.emulate_media(color_scheme=scheme)
    page.get_by_text("Data quality").first.click()
    frame = page.frame_locator("iframe")
    row = frame.locator("tr", has_text="watched")
    expect(row).to_contain_text(
        "10 read = 8 written + 2 quarantined + 0 duplicate + 0 late + 0 filtered", timeout=30_000
    )
    expect(row).to_contain_text("seconds_not_negative failed (2 rows)")
    keep(f"data-quality-{scheme}")
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
    keep(f"quality-report-{scheme}")


def test_an_anonymous_visitor_is_sent_to_the_login(browser, watched):
    context = browser.new_context()
    page = context.new_page()
    assert page.goto(f"{watched.client.url}/sluice/").status == 401
    page.goto(f"{watched.client.url}/dags/watched")
    page.wait_for_url("**/auth/login**")
    context.close()
