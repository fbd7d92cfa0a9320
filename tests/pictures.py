"""Pictures of reports for the pages of the worked pipelines, of what `make demo NAME=...` left:
`python -m tests.pictures NAME [ROOT]`."""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from sluice.setup.browser import find_browser
from sluice.storage import PROJECT

from tests.documentation import FOLDER

SIZE = {"width": 1000, "height": 780}


def find_report(root: Path) -> Path:
    """The report of the second run, which knows of an earlier one."""
    return sorted(root.rglob("*_2.html"))[0]


def take_picture(report: Path, picture: Path) -> None:
    """The head of a report as a person sees it, in light colours."""
    program = find_browser()  # it asks playwright itself, which starts once at a time
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    name = sys.argv[1]
    root = Path(sys.argv[2]) if len(sys.argv) > 2 else PROJECT / ".sluice" / "demos" / name
    take_picture(find_report(root), FOLDER / "examples" / f"{name}.png")
