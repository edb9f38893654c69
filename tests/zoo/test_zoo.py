"""Eight architectures of the zoo, whole: equal to eager in eval and in train mode, one graph, no break.

`tests/zoo/run.py` does the same for all of them and writes the table.
"""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="the zoo is built from transformers' configurations")

from architectures import FAST, ROWS
from one import measured
from outcomes import MODES


@pytest.mark.parametrize("name", FAST)
def test_architecture(name: str) -> None:
    row = next(row for row in ROWS if row.name == name)
    found = measured(row, "cutaway", "cpu", dropout=False)
    for mode in MODES:
        facts = found[mode]
        assert "error" not in facts, facts["error"]
        assert facts["difference"] == ""
        assert (facts["graphs"], facts["breaks"], facts["fallbacks"]) == (1, [], 0)


def test_the_rows_are_forty_different_models() -> None:
    assert len({row.name for row in ROWS}) == len({row.model for row in ROWS}) == 40
    assert set(FAST) < {row.name for row in ROWS}
