"""Tables as text: aligned, never wider than asked, nothing lost but what is cut with a mark."""

from __future__ import annotations

import pytest
import torch
from explored import break_report, mlp_report, wave_report
from hypothesis import given
from hypothesis import strategies as st

import explorer
from explorer.columns import aligned
from explorer.twin import text_twin

WORDS = st.lists(st.text("abcde", min_size=1, max_size=9), max_size=40).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.integers(40, 120))
def test_no_line_is_wider_and_no_word_is_lost(rows, width) -> None:
    text = aligned(("a", "b", "c"), rows, width)
    assert max(map(len, text.splitlines())) <= width
    for word in {word for row in rows for cell in row for word in cell.split()}:
        assert text.split().count(word) >= 1


def test_source_is_cut_with_a_mark_and_numbers_stand_to_the_right() -> None:
    rows = [("7", "    " + "x" * 200), ("12", "y")]
    lines = aligned(("line", "source"), rows, 60, ("line",), ("source",)).splitlines()
    assert lines[1].startswith("   7      xxx") and lines[1].endswith("…") and len(lines[1]) == 60
    assert lines[2] == "  12  y"


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("make", [wave_report, break_report, mlp_report])
def test_every_text_of_a_report_fits(make, width) -> None:
    report = make()
    assert max(map(len, text_twin(report, width).splitlines())) <= width
    for table in (report.guards, report.breaks, report.timings):
        assert max(map(len, str(table).splitlines())) <= 100


def test_a_wide_lambda_keeps_its_columns_and_shows_no_strange_lines() -> None:
    def before(x):
        return x + 1

    wide = lambda x: (torch.sin(x) + torch.cos(x) * torch.tanh(x) - torch.sigmoid(x) * torch.exp(x)).sum(dim=-1, keepdim=True)  # fmt: skip  # noqa: E731
    report = explorer.explore(wide, torch.ones(3, 3))
    head, _, *rows = str(report).splitlines()[2:]
    assert head.split() == ["line", "graphs", "breaks", "guards", "kernels", "source"]
    (row,) = [r for r in rows if "lambda" in r]
    assert row.split()[0].isdigit() and row.endswith("…") and len(row) <= 100
    assert "before" not in str(report)


def test_torchs_state_is_one_row_that_opens() -> None:
    guards = wave_report().guards
    text = str(guards)
    assert text.count("global state: grad mode on") == 1 and "deterministic" not in text
    assert len(guards) > 10 and "inference mode off" in [row[1] for row in guards]
    html = guards._repr_html_()
    assert html.count("<details><summary>global state") == 1
    assert "<li>inference mode off" in html
    assert "L['x']" not in text and "x: Tensor float32 [64, 32]" in " ".join(text.split())
