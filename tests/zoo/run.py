"""The zoo's table: every architecture under each compiler, each in a process of its own.

    python tests/zoo/run.py [NAMES] [--under cutaway,capture,torch.compile] [--device cuda] [--dropout]
                            [--jobs 2] [--json tests/benchmarks/results/zoo.json]

`cutaway` is the whole compiler, `capture` its capture alone (backend="eager"), `torch.compile` is
torch.compile(backend="eager"). Exit status 0 when every row equals eager, has a graph, did not fall
back, and breaks no more often than torch.compile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from architectures import all_rows  # noqa: E402
from outcomes import MODES  # noqa: E402

ONE = Path(__file__).parent / "one.py"
ROOT = Path(__file__).resolve().parents[2]
OURS = ("cutaway", "capture")


def row_of(name: str, compiler: str, options: argparse.Namespace) -> dict[str, Any]:
    """One architecture under one compiler; a crash or a timeout is a row like any other."""
    command = [sys.executable, str(ONE), name, compiler, "--device", options.device]
    command += ["--dropout"] if options.dropout else []
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=options.timeout
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        problem = f"no answer after {options.timeout} s"
    except (IndexError, json.JSONDecodeError):
        problem = f"process ended with {done.returncode}: {done.stderr[-400:]}"
    return {"name": name, "compiler": compiler, **{mode: {"error": problem} for mode in MODES}}


def problems(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Why one architecture does not hold; rows: compiler -> its row."""
    found = []
    for compiler in OURS:
        for mode in MODES if compiler in rows else ():
            facts = rows[compiler][mode]
            found += [f"{compiler} {mode}: {why}" for why in _faults(facts)]
            peer = rows.get("torch.compile", {}).get(mode, {}).get("breaks")
            if peer is not None and len(facts.get("breaks", ())) > len(peer):
                count = len(facts["breaks"])
                found.append(f"{compiler} {mode}: {count} breaks, torch.compile has {len(peer)}")
    return found


def _faults(facts: dict[str, Any]) -> list[str]:
    if "error" in facts:
        return [facts["error"]]
    tests = (
        (facts["difference"], facts["difference"]),
        ("no graph", facts["graphs"] < 1),
        ("fell back", facts["fallbacks"] > 0),
    )
    return [str(what) for what, is_so in tests if is_so]


def line(name: str, rows: dict[str, dict[str, Any]]) -> str:
    cells = [f"{name:14}"]
    for compiler, row in rows.items():
        for mode in MODES:
            facts = row[mode]
            text = "error" if "error" in facts else _cell(facts)
            cells.append(f"{compiler} {mode} {text:22}")
    return " | ".join(cells)


def _cell(facts: dict[str, Any]) -> str:
    same = "differs" if facts["difference"] else "equal"
    return f"{facts['graphs']}g {len(facts['breaks'])}b {facts['seconds']:.2f}s {same}"


def summary(table: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Figures over all architectures."""
    held = [name for name, rows in table.items() if not problems(rows)]
    figures: dict[str, Any] = {"architectures": len(table), "held": len(held)}
    for mode in MODES:
        ours = [rows["capture"][mode] for rows in table.values() if "capture" in rows]
        counts = [facts["graphs"] for facts in ours if "graphs" in facts]
        figures[f"median graphs, {mode}"] = statistics.median(counts) if counts else None
        ratios = [r for rows in table.values() if (r := _seconds_ratio(rows, mode))]
        mean = statistics.geometric_mean(ratios) if ratios else None
        figures[f"capture seconds / torch.compile's, {mode}"] = mean
    return figures


def _seconds_ratio(rows: dict[str, dict[str, Any]], mode: str) -> float | None:
    pair = [rows.get(c, {}).get(mode, {}).get("seconds") for c in ("capture", "torch.compile")]
    return pair[0] / pair[1] if all(pair) and pair[1] > 0 < pair[0] else None


def write(path: Path, table: dict[str, dict[str, dict[str, Any]]], device: str) -> None:
    """The table as JSON; what the file has of other architectures and compilers stays."""
    known = json.loads(path.read_text())["rows"] if path.exists() else {}
    merged = {name: {**known.get(name, {}), **rows} for name, rows in table.items()}
    order = [row.name for row in all_rows()]
    rows = dict(sorted({**known, **merged}.items(), key=lambda item: order.index(item[0])))
    whole = {**machine(), "device": device, "summary": summary(rows), "rows": rows}
    path.write_text(json.dumps(whole, indent=1) + "\n")


def machine() -> dict[str, str]:
    from importlib.metadata import version

    names = ("torch", "transformers")
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }


def main() -> int:
    given = _arguments()
    names = given.names or [row.name for row in all_rows()]
    compilers = given.under.split(",")
    table: dict[str, dict[str, dict[str, Any]]] = {}

    def one(name: str) -> tuple[str, dict[str, dict[str, Any]]]:
        return name, {compiler: row_of(name, compiler, given) for compiler in compilers}

    with ThreadPoolExecutor(given.jobs) as pool:
        for name, rows in pool.map(one, names):
            table[name] = rows
            print(line(name, rows), flush=True)
            for why in problems(rows):
                print(f"    {why}", flush=True)
    figures = summary(table)
    print(json.dumps(figures, indent=1))
    if given.json:
        write(Path(given.json), table, given.device)
    return 0 if figures["held"] == len(names) else 1


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", nargs="*")
    options.add_argument("--under", default="cutaway,capture,torch.compile")
    options.add_argument("--device", default="cpu")
    options.add_argument("--dropout", action="store_true", help="the configurations' own rates")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--timeout", type=float, default=600)
    options.add_argument("--json")
    return options.parse_args()


if __name__ == "__main__":
    sys.exit(main())
