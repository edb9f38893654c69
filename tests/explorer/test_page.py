"""The standalone page in Chromium: what lights, keys, pictures, themes, hostile strings, times."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import chromium, hits, page_of, show, source_line
from explored import break_report, hostile, mlp_report, wave_report

import explorer
from compiler_core.recording import Frame, Item, Recording, StageRecord, Version
from explorer.html import write_report


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    reports = {"wave": wave_report, "breaks": break_report, "mlp": mlp_report}
    return {name: make().save(folder / f"{name}.html").as_uri() for name, make in reports.items()}


def opened(page, uri: str):
    page.goto(uri)
    page.wait_for_selector("#report[data-ready]")
    return page


def test_a_source_line_lights_what_it_became_and_nothing_else(browser, pages) -> None:
    with page_of(browser, width=1900) as page:
        opened(page, pages["wave"])
        show(page, "source", "capture", "joint", "kernels", "fuse")
        source_line(page, "torch.sin").click()
        assert hits(page, "source") == ["a = torch.sin(x)"]
        assert set(hits(page, "capture")) == {"x", "sin"} == set(hits(page, "joint"))
        kernel = "\n".join(hits(page, "kernels"))
        assert "v_sin" in kernel and "v_cos" not in kernel
        fused = "\n".join(hits(page, "fuse"))
        assert "sin" in fused and "cos(" not in fused
        for stage in ("ptx", "ttir", "lower", "bytecode"):
            assert int(page.locator(f'.ct-chip[data-stage="{stage}"] b').inner_text()) > 0
        assert "linked items" in page.locator('[role="status"]').inner_text()


def test_a_ptx_instruction_lights_its_line(browser, pages) -> None:
    with page_of(browser) as page:
        opened(page, pages["wave"])
        show(page, "source", "ptx")
        store = page.locator(
            '.ct-pane[data-stage="ptx"] .ct-line.linked', has_text="st.global"
        ).first
        store.click()
        assert "return a + b" in hits(page, "source")
        store.click()
        assert page.locator(".hit").count() == 0


def test_the_lit_set_of_the_page_is_pythons(browser, pages) -> None:
    report = wave_report()
    with page_of(browser) as page:
        opened(page, pages["wave"])
        source_line(page, "torch.cos").click()
        got = page.evaluate(
            "() => { const v = document.getElementById('report').view; return [v.handles(), [...v.light].map((i) => v.data.handles[i])]; }"
        )
    assert set(got[1]) == report.links.lit(*got[0])


def test_one_line_in_several_graphs_and_the_way_from_a_break(browser, pages) -> None:
    with page_of(browser) as page:
        opened(page, pages["breaks"])
        assert page.locator(".ct-break").count() == 2
        page.locator(".ct-where").nth(1).click()
        assert hits(page, "source") == ["if y.mean() > 0.5:"]
        assert (
            page.locator('.ct-pane[data-stage="joint"] select')
            .evaluate("(s) => s.selectedOptions[0].text")
            .startswith("with_break, resumed after line ")
        )
        source_line(page, "torch.relu").click()
        assert "mul" in hits(page, "joint")


def test_every_action_has_a_key(browser, pages) -> None:
    with page_of(browser) as page:
        opened(page, pages["wave"])
        show(page, "source", "joint")
        source_line(page, "def wave").focus()
        for key in ("ArrowDown", "Enter"):
            page.keyboard.press(key)
        assert hits(page, "source") == ["a = torch.sin(x)"]
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Enter")
        assert hits(page, "source") == ["a = torch.sin(x)", "b = torch.cos(y)"]
        page.keyboard.press("Home")
        page.keyboard.press("n")
        assert "torch.sin" in page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Escape")
        assert hits(page, "source") == []
        page.keyboard.press("?")
        assert page.locator(".ct-keys").is_visible()
        node = page.locator('[data-node][aria-label^="sin,"]')
        node.focus()
        page.keyboard.press("Enter")
        assert "a = torch.sin(x)" in hits(page, "source") and "sin" in hits(page, "joint")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("add,")
        width = page.locator('.ct-pane[data-stage="joint"] svg').get_attribute("width")
        page.keyboard.press("+")
        assert float(
            page.locator('.ct-pane[data-stage="joint"] svg').get_attribute("width")
        ) > float(width)
        page.keyboard.press("t")
        assert page.locator('.ct-pane[data-stage="joint"] svg').count() == 0
        assert any("aten.sin" in line for line in hits(page, "joint"))
        page.keyboard.press("t")
        assert page.locator('.ct-pane[data-stage="joint"] svg').count() == 1


def test_other_texts_of_a_stage_by_key_and_tabs_by_arrows(browser, tmp_path) -> None:
    write_report(
        [("one", wave_report().recording), ("two", break_report().recording)], tmp_path / "two.html"
    )
    with page_of(browser) as page:
        opened(page, (tmp_path / "two.html").as_uri())
        show(page, "kernels")
        page.locator('.ct-pane [tabindex="0"]').focus()
        page.keyboard.press("]")
        assert "triton" in page.locator(".ct-pane select").evaluate(
            "(s) => s.selectedOptions[0].text"
        )
        page.get_by_role("tab", name="one").focus()
        page.keyboard.press("ArrowRight")
        assert page.get_by_role("tab", name="two").get_attribute("aria-selected") == "true"
        assert "2 breaks" in page.locator(".ct-summary").inner_text()


def test_names_for_screen_readers(browser, pages) -> None:
    with page_of(browser) as page:
        opened(page, pages["mlp"])
        tree = page.locator("#report").aria_snapshot()
        for words in (
            'navigation "stages"',
            'listbox "Source"',
            'listbox "Joint graph as a picture"',
            "option",
        ):
            assert words in tree, words
        unnamed = page.evaluate(
            "() => [...document.querySelectorAll('button, select, [role=listbox]')].filter((e) => !(e.ariaLabel || e.textContent.trim())).length"
        )
        assert unnamed == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 900, 480])
def test_nothing_is_cut_off_at_any_width_in_either_theme(browser, pages, scheme, width) -> None:
    with page_of(browser, width=width, color_scheme=scheme) as page:
        opened(page, pages["mlp"])
        source_line(page, "F.gelu").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for pane in page.locator(".ct-pane").all():
            box = pane.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] >= 200
        back = page.evaluate("getComputedStyle(document.getElementById('report')).backgroundColor")
        assert (sum(map(int, back.strip("rgb()").split(","))) > 380) == (scheme == "light")


def test_guards_of_torchs_state_are_one_row_that_opens_and_no_word_is_broken(
    browser, pages
) -> None:
    with page_of(browser, width=700) as page:
        opened(page, pages["breaks"])
        page.locator("summary", has_text="Guards").click()
        rows = page.locator('.ct-table[aria-label="guards"] tbody tr:visible')
        before = rows.count()
        first = page.locator(".ct-fold button").first
        assert "global state: grad mode on" in first.inner_text()
        assert not page.get_by_text("inference mode off").first.is_visible()
        first.click()
        assert rows.count() == before + 10
        assert page.get_by_text("inference mode off").first.is_visible()
        broken = page.evaluate(BROKEN_WORDS)
        assert broken == []


# Words (up to 24 characters) of the guard table that stand on more than one line.
BROKEN_WORDS = """() => [...document.querySelectorAll('.ct-table[aria-label="guards"] td')].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const match of node.data.matchAll(/[A-Za-z_]+/g)) {
      const range = document.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(match[0]);
    }
  return found;
})"""


def test_motion_is_only_for_those_who_want_it(browser, pages) -> None:
    with page_of(browser, reduced_motion="reduce") as page:
        opened(page, pages["wave"])
        assert (
            page.locator(".ct-line").first.evaluate("(e) => getComputedStyle(e).transitionDuration")
            == "0s"
        )


def test_a_hostile_program_executes_nothing(browser, tmp_path: Path) -> None:
    import torch

    report = explorer.explore(
        hostile, torch.ones(2), name="<img src=x onerror=\"document.title='broken'\">"
    )
    with page_of(browser) as page:
        opened(page, report.save(tmp_path / "hostile.html").as_uri())
        show(page, "source", "bytecode", "capture", "replacement")
        for name in ("Guards", "Decisions"):
            page.locator("summary", has_text=name).click()
        page.locator('.ct-line:has-text("onerror")').first.click()
        page.wait_for_timeout(100)
        assert page.title() == "Cutaway report" and page.locator("img").count() == 0


def large(count: int) -> Recording:
    """A recording of one graph of `count` nodes over as many source lines, and a kernel as long."""
    file = "large.py"
    spans = [f"src:{file}:{n + 2}:4-{n + 2}:20" for n in range(count)]
    source = "# large.py\n" + "".join(
        f"{n + 1:5d}  {'def f(x):' if not n else f'    x{n} = x{n - 1} + x0'}\n"
        for n in range(count + 1)
    )

    def items(stage: str, before: list[str], first: int) -> list[Item]:
        data = [{"op": "call_function" if n else "placeholder", "target": "aten.add.Tensor", "type": "f32[8, 8]", "phase": "forward",
                 "inputs": [f"{stage}:n{m}" for m in {n - 1, n * 7 // 8} if 0 <= m < n]} for n in range(count)]  # fmt: skip
        return [
            Item(f"{stage}:n{n}", f"n{n}", (before[n],), (n + first,), data[n])
            for n in range(count)
        ]

    text = "".join(f"    n{n}: f32[8, 8] = aten.add.Tensor(n{n - 1}, n0)\n" for n in range(count))
    joint = items("joint", [f"capture:n{n}" for n in range(count)], 1)
    kernel = [
        Item(f"kernels:forward/k:{n + 1}@cpu", "", (f"joint:n{n}",), (n + 1,)) for n in range(count)
    ]
    stages = [
        StageRecord(
            "source",
            "",
            "",
            "python",
            source,
            "",
            [Item(s, "", (), (n + 3,)) for n, s in enumerate(spans)],
        ),
        StageRecord("capture", "", "", "python", text, "", items("capture", spans, 1)),
        StageRecord("joint", "", "", "python", text, "", joint),
        StageRecord("kernels", "forward/k", "cpu", "cpp", text, "", kernel),
    ]
    return Recording([Frame("f", file, 1, "", [Version("f/0", "first call", stages)])])


def test_three_hundred_nodes_paint_and_click_in_time(browser, tmp_path: Path) -> None:
    """Meant: 300 ms to the first paint, 50 ms a click. Asserted at three times that: machines are shared."""
    write_report([("large", large(300))], tmp_path / "large.html")
    with page_of(browser) as page:
        opened(page, (tmp_path / "large.html").as_uri())
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        clicks = page.evaluate(
            """() => [20, 150, 280].map((n) => {
              const row = document.querySelectorAll('.ct-pane[data-stage="source"] .ct-line.linked')[n], start = performance.now();
              row.click();
              document.body.getBoundingClientRect();
              return performance.now() - start;
            })"""
        )
    print(f"first paint {paint:.0f} ms, clicks {[round(c) for c in clicks]} ms")
    assert paint < 900 and sorted(clicks)[1] < 150


def test_a_picture_above_the_window_draws_only_what_is_near(browser, tmp_path: Path) -> None:
    write_report([("large", large(3000))], tmp_path / "large.html")
    with page_of(browser) as page:
        opened(page, (tmp_path / "large.html").as_uri())
        show(page, "source", "joint")
        assert 0 < page.locator("[data-node]").count() < 400
        page.evaluate(
            "() => { const v = document.getElementById('report').view; v.select([v.data.handles.indexOf('joint:n2500')]); }"
        )
        page.wait_for_selector('.ct-node.chosen[aria-label^="n2500,"]')
        assert page.locator("[data-node]").count() < 400
        assert page.locator(".ct-node.chosen").is_visible()
