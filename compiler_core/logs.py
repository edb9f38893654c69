"""Live logs: the recorded facts of a compile, printed when it ends.

In: the closed record of a version. Out: lines on stderr for the channels that are switched on by
`set_logs(guards=True)` or `CUTAWAY_LOGS=guards,fusion`. Nothing is logged that is not recorded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable

from compiler_core.arguments import check_switch
from compiler_core.errors import BAD_VALUE, OptionError, closest
from compiler_core.recording import FIRST_CALL, Decision, Version

__all__ = ["CHANNELS", "log_version", "set_logs", "wants"]


def _decisions(*kinds: str) -> Callable[[Version], Iterable[str]]:
    def lines(version: Version) -> Iterable[str]:
        return (_decision_line(d) for d in version.decisions if d.kind in kinds)

    return lines


def _decision_line(decision: Decision) -> str:
    about = ", ".join(decision.about[:4]) + (", …" if len(decision.about) > 4 else "")
    where = f" at {decision.data['where']}" if decision.data.get("where") else ""
    reason = decision.reason.removesuffix(": ")
    return f"{decision.outcome}: {reason}{where} [{about}]"


def _guards(version: Version) -> Iterable[str]:
    return (f"{row['check']}    # {row['line']} {row['reason']}" for row in version.guards)


def _recompiles(version: Version) -> Iterable[str]:
    if version.reason != FIRST_CALL:
        yield version.reason


def _output_code(version: Version) -> Iterable[str]:
    return (
        f"{s.name}/{s.part} for {s.target}\n{s.text}"
        for s in version.stages
        if s.name in ("kernels", "host")
    )


CHANNELS: dict[str, Callable[[Version], Iterable[str]]] = {
    "graph_breaks": _decisions("break"),
    "guards": _guards,
    "recompiles": _recompiles,
    "fusion": _decisions("fuse"),
    "partition": _decisions("save", "recompute"),
    "fallbacks": _decisions("fallback", "skip", "library", "target"),
    "output_code": _output_code,
}


def _from_environment() -> Iterable[str]:
    """The channels of CUTAWAY_LOGS; what is no channel is said and passed over."""
    for name in filter(None, os.environ.get("CUTAWAY_LOGS", "").split(",")):
        if name in CHANNELS:
            yield name
        else:
            hint = closest(name, CHANNELS)
            print(f"CUTAWAY_LOGS names an unknown log channel {name!r}{hint}", file=sys.stderr)


_on: set[str] = set(_from_environment())


def set_logs(**channels: bool) -> None:
    """Switch channels on or off, for instance `set_logs(graph_breaks=True, guards=True)`.

    Channels not named keep their state. Raises OptionError for an unknown channel or a value that is
    no bool; then nothing is switched.
    """
    for name, on in channels.items():
        if name not in CHANNELS:
            raise OptionError(BAD_VALUE, f"unknown log channel {name!r}{closest(name, CHANNELS)}")
        check_switch(name, on)
    for name, on in channels.items():
        (_on.add if on else _on.discard)(name)


def wants(name: str) -> bool:
    """Whether a channel is on."""
    return name in _on


def log_version(version: Version) -> None:
    """Print what the channels that are on say about a version."""
    for name in CHANNELS:
        for line in CHANNELS[name](version) if name in _on else ():
            print(f"[{name}] {version.name}: {line}", file=sys.stderr)
