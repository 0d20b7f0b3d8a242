"""Record the pictures that ``test_looks_in_browser`` compares with.

``python -m tests.integration.dashboard.record_baselines``: to be run, and looked at, after a change of how a page
looks.
"""

import base64
import json
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.fixtures_browser import FLAGS
from tests.integration.dashboard.conftest import looking, serving
from tests.integration.dashboard.test_looks_in_browser import BASELINES, PAGES, PICTURES, small_picture

RECORDED = ("fleet-light-en", "fleet-dark-zh", "job-light-en", "job-dark-zh", "jobs-light-en")


def main() -> None:
    """Write every picture, and what they were recorded with."""
    with serving() as served, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        letters = ""
        for name in RECORDED:
            page_name, theme, lang = name.split("-")
            path, ready = PAGES[page_name]
            with looking(browser, served.url) as seen:
                page = seen.open(f"{path}?theme={theme}&lang={lang}", ready)
                letters = page.evaluate(f"({PICTURES}).letters()")
                picture = small_picture(page)
            Path(BASELINES / f"{name}.png").write_bytes(base64.b64decode(picture.partition(",")[2]))
        about = {"chromium": browser.version, "letters": letters, "pictures": list(RECORDED)}
        (BASELINES / "recorded.json").write_text(json.dumps(about, indent=1) + "\n")
        browser.close()


if __name__ == "__main__":
    main()
