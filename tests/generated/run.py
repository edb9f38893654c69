"""Generated programs, run from the command line.

    python tests/generated/run.py --seed 0 --count 500            seeds 0 … 499, failures shrunk and kept
    python tests/generated/run.py --seed 7 --show                 the program of seed 7
    python tests/generated/run.py generated_failures/17.py        a kept program again

Prints what failed, how often graphs broke and why. Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judge import Verdict, judge  # noqa: E402
from shrink import shrink  # noqa: E402
from write_program import write_program  # noqa: E402

import compiler_core as cc  # noqa: E402


def main() -> int:
    asked = _arguments()
    if asked.show:
        print(write_program(asked.seed))
        return 0
    if asked.file:
        verdict = judge(asked.file.read_text(), asked.backend)
        print(verdict.failure or f"holds: {verdict.graphs} graph(s)", *verdict.breaks, sep="\n  ")
        return bool(verdict.failure)
    return _campaign(asked)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="a program to run again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--show", action="store_true", help="print the program of the seed")
    parser.add_argument("--keep", type=Path, default=Path("generated_failures"))
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args()


def _campaign(asked: argparse.Namespace) -> int:
    started, failures, graphs, raised = time.perf_counter(), 0, 0, 0
    breaks: collections.Counter[str] = collections.Counter()
    for seed in range(asked.seed, asked.seed + asked.count):
        source = write_program(seed)
        verdict = judge(source, asked.backend)
        graphs, raised = graphs + verdict.graphs, raised + verdict.raised
        breaks.update(verdict.breaks)
        if verdict.failure:
            failures += 1
            print(f"seed {seed}: {verdict.kind}: {verdict.failure.strip()[-300:]}", flush=True)
            if not asked.no_shrink:
                _keep(asked, seed, source, verdict)
        cc.reset()
    print(f"{asked.count} programs, {failures} failed, {graphs} graphs, {raised} calls raised, {time.perf_counter() - started:.0f} s")  # fmt: skip
    for reason, count in breaks.most_common(60):
        print(f"{count:6}  {reason}")
    return bool(failures)


def _keep(asked: argparse.Namespace, seed: int, source: str, verdict: Verdict) -> None:
    """Shrink the program and write it where it can be run again."""

    def fails_alike(text: str) -> bool:
        cc.reset()
        return judge(text, asked.backend).kind == verdict.kind

    asked.keep.mkdir(exist_ok=True)
    small = shrink(source, fails_alike)
    (asked.keep / f"{seed}.py").write_text(small + "\n")


if __name__ == "__main__":
    sys.exit(main())
