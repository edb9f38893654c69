"""The environment variables that are read, and what is said about those that nothing reads.

In: `os.environ`. Out: values by name, checked; a warning for a `CUTAWAY_…` that is no variable of ours,
since a misspelt one would be without effect and nobody would know.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

from compiler_core.errors import BAD_VALUE, UNKNOWN_VARIABLE, OptionError, closest, warning_text

__all__ = ["VARIABLES", "switch_of", "warn_of_unknown"]

VARIABLES = {
    "CUTAWAY_STRICT": "1 raises inside the compiler instead of falling back to eager",
    "CUTAWAY_CACHE_DIR": "the folder of built kernels",
    "CUTAWAY_LOGS": "log channels that are on from the start, with commas",
}

_SWITCH = {"1": True, "true": True, "yes": True, "on": True,
           "0": False, "false": False, "no": False, "off": False}  # fmt: skip


def switch_of(name: str, text: str) -> bool:
    """A switch from its text. Raises OptionError for a word that says neither yes nor no."""
    if text.lower() not in _SWITCH:
        valid = ", ".join(_SWITCH)
        raise OptionError(BAD_VALUE, f"the environment variable {name}={text!r}. Valid: {valid}")
    return _SWITCH[text.lower()]


@cache
def warn_of_unknown() -> None:
    """Say once which variables of the environment look like ours and are not."""
    for name in sorted(os.environ):
        if name.startswith("CUTAWAY_") and name not in VARIABLES:
            text = warning_text(UNKNOWN_VARIABLE, f"{name}{closest(name, VARIABLES)}")
            warnings.warn(text, RuntimeWarning, stacklevel=4)
