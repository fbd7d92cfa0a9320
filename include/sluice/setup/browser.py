"""A browser for the tests of the pages: the one that is there, Debian's, or Playwright's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DEBIAN = (
    "apt-get -o Acquire::Retries=4 update -qq && DEBIAN_FRONTEND=noninteractive "
    "apt-get -o Acquire::Retries=4 install -y -qq --no-install-recommends chromium"
)
_HELP = """No browser could be installed for tests/browser. Do one of these, then run this again:
  Debian, Ubuntu: sudo apt-get install chromium
  macOS, others:  .venv/bin/playwright install chromium"""


def find_browser() -> str | None:
    """The path of a Chromium; None when there is none.

    `$SLUICE_BROWSER`, the system's, else Playwright's own.
    """
    chosen = os.environ.get("SLUICE_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)
    if chosen:
        return chosen
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def install_commands() -> list[list[str]]:
    """What to try, in order: Debian's package where we may install it, then Playwright's download.

    Both try again by themselves where the network fails.
    """
    playwright = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        return [["sh", "-c", _DEBIAN], *playwright]
    return playwright


def main() -> int:
    """Entry point of `python -m sluice.setup.browser`: install a browser unless there is one."""
    for command in install_commands():
        if find_browser():
            break
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            print(
                f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}",
                file=sys.stderr,
            )
    browser = find_browser()
    print(f"browser: {browser}" if browser else _HELP, file=sys.stdout if browser else sys.stderr)
    return 0 if browser else 1


if __name__ == "__main__":
    sys.exit(main())
