"""One architecture under one compiler, in this process: the measured facts as one JSON line.

    python tests/zoo/one.py bert cutaway [--device cuda] [--dropout]

Each mode (eval without gradients, train with backward) calls the model with batch sizes 2, 3 and 2
again and compares every call with eager. `seconds` is the processor time that the first call took
more than the last: what else the machine does is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
os.environ["CUTAWAY_STRICT"] = "1"

import torch  # noqa: E402
from architectures import Row, all_rows, build, feed  # noqa: E402
from compilers import COMPILERS, Watched, watched  # noqa: E402
from outcomes import MODES, Outcome, difference, outcome, wide  # noqa: E402

BATCHES = (2, 3, 2)


def measured(row: Row, compiler: str, device: str, dropout: bool) -> dict[str, Any]:
    """All facts of one architecture: {"eval": …, "train": …}; an exception is a fact."""
    model = build(row, dropout).to(device)
    found: dict[str, Any] = {"name": row.name, "compiler": compiler}
    with watched(compiler, model) as under:
        for mode in MODES:
            model.train(mode == "train")
            try:
                found[mode] = _mode(row, model, under, mode, device)
            except Exception as error:
                found[mode] = {"error": _told(error)}
    return found


def _mode(
    row: Row, model: torch.nn.Module, under: Watched, mode: str, device: str
) -> dict[str, Any]:
    facts: dict[str, Any] = {"difference": ""}
    seconds = []
    for number, batch in enumerate(BATCHES):
        given = {k: _moved(v, device) for k, v in feed(row, batch).items()}
        eager = outcome(model, model, given, mode)
        before, start = under.facts(), time.process_time()
        ours = outcome(under.call, model, given, mode)
        seconds.append(time.process_time() - start)
        facts |= _since(before, under.facts()) if number == 0 else {}
        found = difference(ours, eager, _truth(model, given, mode))
        facts["difference"] = facts["difference"] or (found and f"call {number}: {found}")
    return {**facts, "seconds": seconds[0] - seconds[-1], **_later(under, facts)}


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _truth(model: torch.nn.Module, given: dict[str, Any], mode: str) -> Outcome | None:
    """What float64 gives, or None where a model cannot run in it."""
    double = wide(model)
    try:
        return outcome(double, double, wide(given), mode)
    except RuntimeError:
        return None


def _since(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Counts of one call: differences of numbers, the new items of lists."""
    return {
        name: now[len(before[name]) :] if isinstance(now, list) else now - before[name]
        for name, now in after.items()
    }


def _later(under: Watched, first: dict[str, Any]) -> dict[str, Any]:
    now = under.facts()
    return {"fallbacks": now.get("fallbacks", 0), "recompiles": now.get("recompiles", 0)}


def _told(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    return f"{type(error).__name__}: {str(error)[:600]} ({where})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name")
    options.add_argument("compiler", choices=list(COMPILERS))
    options.add_argument("--device", default="cpu")
    options.add_argument("--dropout", action="store_true", help="the configurations' own rates")
    given = options.parse_args()
    row = next(row for row in all_rows() if row.name == given.name)
    print(json.dumps(measured(row, given.compiler, given.device, given.dropout)))


if __name__ == "__main__":
    main()
