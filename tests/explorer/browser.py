"""Chromium for tests: found or the test is skipped with the reason; every page must stay without errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    path = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page_of(browser: Any, width: int = 1400, height: int = 900, **settings: Any) -> Iterator[Any]:
    """A page; errors, console errors and requests to anywhere are failures when it closes."""
    page = browser.new_page(viewport={"width": width, "height": height}, **settings)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on(
        "console",
        lambda m: faults.append(f"console: {m.text}") if m.type in ("error", "warning") else None,
    )
    page.on(
        "request",
        lambda r: faults.append(f"request: {r.url}") if r.url.startswith("http") else None,
    )
    try:
        yield page
        assert faults == []
    finally:
        page.close()


def hits(page: Any, stage: str) -> list[str]:
    """The text of the lit lines (without cells), or the names of the lit nodes, of a stage's pane."""
    return page.evaluate(
        """(stage) => [...document.querySelectorAll(`.ct-pane[data-stage="${stage}"] :is(.ct-line, .ct-node).hit`)]
        .map((e) => e.classList.contains("ct-node") ? e.querySelector("text").textContent : e.querySelector("span").textContent.trim())""",
        stage,
    )


def source_line(page: Any, text: str) -> Any:
    return page.locator('.ct-pane[data-stage="source"] .ct-line', has_text=text)


def show(page: Any, *stages: str) -> None:
    """Open the panes of these stages and no others."""
    for chip in page.locator(".ct-chip").all():
        is_open = chip.get_attribute("aria-pressed") == "true"
        if is_open != (chip.get_attribute("data-stage") in stages):
            page.locator(f'.ct-chip[data-stage="{chip.get_attribute("data-stage")}"]').click()
