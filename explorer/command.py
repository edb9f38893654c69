"""The command line: `cutaway demo`, `cutaway doctor`.

In: arguments. Out: printed text, files that were asked for, an exit status: 0 when all is right,
1 when a program is wrong or fell back, 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compiler_core import __version__
from compiler_core.errors import BAD_VALUE, CutawayError, OptionError, closest
from compiler_core.options import Target

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a subcommand; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except CutawayError as error:
        print(error, file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    """A parser whose help ends with lines that are made only when somebody asks for it."""

    more: Callable[[], str] | None = None

    def format_help(self) -> str:
        return super().format_help() + (f"\n{self.more()}\n" if self.more else "")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="cutaway", description="A torch.compile you can see through.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="compile the example programs, check every stage, write a report"
    )
    demo.more = _programs
    demo.add_argument("programs", nargs="*", help="names of programs; all if none is given")
    demo.add_argument(
        "--json", type=Path, metavar="FILE", help="write counts, errors and times as JSON"
    )
    demo.add_argument(
        "--report", type=Path, default=Path("cutaway-report.html"), metavar="FILE",
        help="the page to write: one file, opens in any browser without a network (default: %(default)s)",
    )  # fmt: skip
    demo.add_argument(
        "--also", default="cuda:90", metavar="TARGET",
        help="a GPU to compile for besides the CPU; none is needed, its kernels are evaluated "
        "(default: %(default)s; '' for none)",
    )  # fmt: skip
    demo.set_defaults(run=_demo)
    doctor = commands.add_parser("doctor", help="what this machine can do, and why not")
    doctor.set_defaults(run=_doctor)
    return parser


def _version() -> str:
    """Versions of this program and of what it stands on, read without loading them."""
    found = []
    for name in ("torch", "triton"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return f"cutaway {__version__} ({', '.join(found)}, Python {platform.python_version()})"


def _programs() -> str:
    from explorer.programs import PROGRAMS

    rows = [f"  {program.name:20s} {program.about}" for program in PROGRAMS]
    return "\n".join(["programs:", *rows])


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from compiler_core.recording import write_atomically
    from explorer.demo import run_program
    from explorer.html import write_report
    from explorer.programs import PROGRAMS
    from explorer.terminal import print_outcome, print_summary, print_times

    by_name = {program.name: program for program in PROGRAMS}
    for name in options.programs:
        if name not in by_name:
            raise OptionError(BAD_VALUE, f"unknown program {name!r}{closest(name, by_name)}")
    if options.also:
        Target.parse(options.also)
    console = Console()
    outcomes = []
    for name in options.programs or by_name:
        outcomes.append(run_program(by_name[name], [options.also] if options.also else []))
        print_outcome(outcomes[-1], console)
    print_times(outcomes, console)
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
