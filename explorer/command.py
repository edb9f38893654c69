"""The command line: `cutaway demo`, `cutaway doctor`.

In: arguments. Out: printed text, files that were asked for, an exit status: 0 when all is right,
1 when a program is wrong or fell back, 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from compiler_core.errors import BAD_VALUE, CutawayError, OptionError, closest

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except CutawayError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cutaway", description="A torch.compile you can see through."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="compile the example programs, check every stage, write a report"
    )
    demo.add_argument("programs", nargs="*", help="names of programs; all if none is given")
    demo.add_argument(
        "--json", type=Path, metavar="FILE", help="write counts, errors and times as JSON"
    )
    demo.add_argument("--report", type=Path, default=Path("cutaway-report.html"), metavar="FILE")
    demo.add_argument(
        "--also", default="cuda:90", metavar="TARGET", help="a further target; '' for none"
    )
    demo.set_defaults(run=_demo)
    doctor = commands.add_parser("doctor", help="what this machine can do, and why not")
    doctor.set_defaults(run=_doctor)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from compiler_core.recording import write_atomically
    from explorer.demo import run_program
    from explorer.html import write_report
    from explorer.programs import PROGRAMS
    from explorer.terminal import print_outcome, print_summary

    by_name = {program.name: program for program in PROGRAMS}
    for name in options.programs:
        if name not in by_name:
            raise OptionError(BAD_VALUE, f"unknown program {name!r}{closest(name, by_name)}")
    console = Console()
    outcomes = []
    for name in options.programs or by_name:
        outcomes.append(run_program(by_name[name], [options.also] if options.also else []))
        print_outcome(outcomes[-1], console)
    print_summary(outcomes, console)
    write_report([(o.name, o.recording) for o in outcomes], options.report)
    console.print(f"report: {options.report.resolve()} (open it in a browser; it needs no network)")
    if options.json:
        text = json.dumps({"programs": [o.to_json() for o in outcomes]}, indent=1)
        write_atomically(options.json, text.encode())
    return 0 if all(o.ok for o in outcomes) else 1


def _doctor(options: argparse.Namespace) -> int:
    from explorer.doctor import checks

    results = checks()
    for check in results:
        print(f"{'yes' if check.ok else 'no ':4s}{check.what:34s}{check.detail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
