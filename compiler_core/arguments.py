"""Checks that several functions of the public interface share: switches, names of arguments, callables.

In: an argument's name and what was given. Out: the value, or an OptionError that says what is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compiler_core.errors import A_CLASS, BAD_VALUE, NO_ARGUMENT, OptionError, closest

__all__ = ["check_callable", "check_names", "check_switch"]


def check_switch(name: str, value: Any) -> None:
    """Only True and False: the text "no" would be true."""
    if not isinstance(value, bool):
        raise OptionError(BAD_VALUE, f"{name} takes True or False, not {value!r}")


def check_names(function: str, given: Mapping[str, Any], valid: Iterable[str]) -> None:
    """Every given argument is one that the function takes."""
    names = list(valid)
    for name in given:
        if name not in names:
            raise OptionError(NO_ARGUMENT, f"{function} and {name!r}{closest(name, names)}")


def check_callable(function: str, value: Any) -> None:
    """A function, a module or another object that can be called; a class makes objects and runs nothing."""
    if isinstance(value, type):
        raise OptionError(A_CLASS, f"{function} and the class {value.__name__}")
    if not callable(value):
        what = f"{type(value).__name__} ({value!r})"
        raise OptionError(BAD_VALUE, f"{function} takes a function or nn.Module, not {what}")
