"""Further targets (`also`) are built to be looked at: what fails in one is said, and the rest goes on.

In: a target's name and the code that builds or prints it. Out: nothing; a "target" decision and a warning
when that failed. Under strict the exception is raised as any other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from compiler_core.errors import TARGET_LEFT_OUT, OptionError, warning_text
from compiler_core.options import Context

__all__ = ["extra_target"]


@contextmanager
def extra_target(target: str, context: Context) -> Iterator[None]:
    """What is done inside belongs to a target that nothing depends on."""
    try:
        yield
    except OptionError:
        raise
    except Exception as error:
        if context.options.strict:
            raise
        reason = f"{type(error).__name__}: {error}"
        context.recorder.decide("target", (f"target:{target}",), "left out", reason)
        warnings.warn(
            warning_text(TARGET_LEFT_OUT, f"{target}: {reason}"), RuntimeWarning, stacklevel=2
        )
