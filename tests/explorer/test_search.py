"""Searching all panes, and keys that work wherever the focus is."""

from __future__ import annotations

import pytest
from browser import chromium, hits, page_of, show, source_line
from explored import mlp_report, wave_report
from test_page import opened


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def wave(tmp_path_factory) -> str:
    return wave_report().save(tmp_path_factory.mktemp("search") / "wave.html").as_uri()


def count_of(text: str, words: str) -> int:
    return sum(words in line.lower() for line in text.splitlines())


def test_search_marks_the_lines_of_every_pane_and_counts_those_of_closed_ones(
    browser, wave
) -> None:
    with page_of(browser) as page:
        opened(page, wave)
        show(page, "source", "capture", "kernels")
        page.keyboard.press("/")
        page.keyboard.type("SIN")
        marked = page.locator('.ct-pane[data-stage="kernels"] .ct-line.found').count()
        kernels = wave_report().kernels["sin_cos_add_0"]
        assert marked == count_of(kernels.source, "sin") > 0
        assert page.locator('.ct-pane[data-stage="source"] .found').count() == 1
        chip = page.locator('.ct-chip[data-stage="ptx"] b.found')
        assert chip.inner_text() == f"⌕ {count_of(kernels.ptx, 'sin')}"
        assert " stages; Enter: next" in page.locator('[role="status"]').inner_text()


def test_enter_goes_on_and_back_and_escape_leaves(browser, wave) -> None:
    with page_of(browser) as page:
        opened(page, wave)
        show(page, "source", "kernels")
        page.keyboard.press("/")
        page.keyboard.type("cos")
        status = page.locator('[role="status"]')
        page.keyboard.press("Enter")
        assert status.inner_text().startswith("Source, line") and ": 1 of " in status.inner_text()
        assert "torch.cos" in page.locator(".ct-line.current").inner_text()
        page.keyboard.press("Enter")
        assert status.inner_text().startswith("Kernels, line") and ": 2 of " in status.inner_text()
        page.keyboard.press("Shift+Enter")
        assert ": 1 of " in status.inner_text()
        page.keyboard.press("Escape")
        assert page.locator(".found").count() == 0
        page.keyboard.type("no such words anywhere")
        assert status.inner_text() == "no line holds this"


def test_what_only_a_closed_pane_holds_opens_it(browser, wave) -> None:
    with page_of(browser) as page:
        opened(page, wave)
        show(page, "source")
        page.keyboard.press("/")
        page.keyboard.type(".visible .entry")
        page.keyboard.press("Enter")
        assert page.locator('.ct-pane[data-stage="ptx"] .ct-line.current').is_visible()


def test_nodes_of_a_picture_are_found_too(browser, wave) -> None:
    with page_of(browser) as page:
        opened(page, wave)
        show(page, "joint")
        page.keyboard.press("/")
        page.keyboard.type("aten.sin")
        names = page.locator(".ct-node.found").evaluate_all(
            "(all) => all.map((n) => n.textContent)"
        )
        assert len(names) == 1 and "sin" in names[0]


def test_keys_work_with_the_focus_anywhere(browser, wave) -> None:
    with page_of(browser) as page:
        opened(page, wave)
        keys = page.locator(".ct-keys")
        page.keyboard.press("?")  # nothing was ever clicked
        assert keys.is_visible()
        page.keyboard.press("Escape")
        assert not keys.is_visible()
        source_line(page, "torch.sin").click()
        page.locator("summary", has_text="Decisions").click()  # the focus is outside of the panes
        page.keyboard.press("?")
        assert keys.is_visible()
        page.keyboard.press("Escape")
        assert hits(page, "source") != []
        page.keyboard.press("Escape")
        assert hits(page, "source") == []
        page.keyboard.press("/")
        page.keyboard.type("?")  # in the field, keys are text
        assert not keys.is_visible() and page.locator(".ct-search").input_value() == "?"


def test_a_row_is_as_tall_as_its_own_panes_ask(browser, tmp_path) -> None:
    page_file = mlp_report().save(tmp_path / "mlp.html").as_uri()
    with page_of(browser, width=700, height=1200) as page:
        opened(page, page_file)
        show(page, "replacement", "joint")
        heights = {
            pane.get_attribute("data-stage"): pane.bounding_box()["height"]
            for pane in page.locator(".ct-pane").all()
        }
        assert heights["replacement"] < heights["joint"] - 100
