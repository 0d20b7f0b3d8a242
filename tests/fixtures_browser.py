"""A real Chromium: ``browser`` once a session, ``page`` fresh for each test.

``tests/conftest.py`` has them for all tests: Playwright runs one driver a process.
"""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("FLOPWATCH_TEST_EVERYTHING"):
            pytest.fail("no chromium is installed, and every test was asked for")
        pytest.skip("no chromium is installed, so pages cannot be looked at")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1366, "height": 768}, locale="en-GB")
    made = context.new_page()
    yield made
    context.close()
