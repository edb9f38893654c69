"""All options, typed, in one file; and the context that carries them through the stages.

In: the user's arguments, `options={...}` and the environment. Out: one frozen `Options`.
Order: argument > `options` > environment > default. No stage reads `os.environ` itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler_core.environment import switch_of, warn_of_unknown
from compiler_core.errors import BAD_VALUE, NOT_YET, NotSupportedYet, OptionError, closest

if TYPE_CHECKING:
    from compiler_core.recording import Recorder

__all__ = ["MODES", "Context", "Options", "Target"]

ARCHITECTURES = ("75", "80", "86", "89", "90", "100", "103", "120")  # compute capabilities of GPUs

MODES = {
    None: "the default: fuse, generate, no autotuning",
    "default": "the same as None",
    "reduce-overhead": "not supported yet: record CUDA graphs",
    "max-autotune": "not supported yet: time every candidate configuration",
    "max-autotune-no-cudagraphs": "not supported yet",
}


def _option(default: Any, doc: str, env: str | None = None) -> Any:
    metadata = {"doc": doc, "env": env, "default": default}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Options:
    """Every option of a compile. `Options.describe()` prints this table.

    Raises OptionError from `of()` for an unknown name or a value of the wrong type.
    """

    strict: bool = _option(
        False, "raise inside the compiler instead of falling back to eager", "CUTAWAY_STRICT"
    )
    verify: bool = _option(False, "run the verifier after every pass (always on under strict)")
    explore: bool = _option(False, "record every instruction and every rewrite, for the explorer")
    replace: Mapping[str, str] = _option(
        {}, "artifact name, such as 'kernels/add_0', to a file that replaces it"
    )
    target: str = _option("auto", "'auto' (the inputs' device), 'cpu', or a GPU such as 'cuda:90'")
    also: tuple[str, ...] = _option(
        (), "further targets to compile for, such as ('cuda:90',): built, shown, not called"
    )
    threads: int = _option(0, "OpenMP threads of CPU kernels; 0 takes torch.get_num_threads()")
    cache_dir: str = _option(
        "", "where built kernels are kept; '' takes the user's cache folder", "CUTAWAY_CACHE_DIR"
    )
    recompile_limit: int = _option(8, "versions of one frame before it runs in eager")
    inline_limit: int = _option(40, "depth of inlined calls before the graph breaks")
    recompute: bool = _option(
        True, "let the partitioner recompute cheap values in the backward pass"
    )

    @classmethod
    def of(cls, given: Mapping[str, Any] | None = None, **arguments: Any) -> Options:
        """Options from a mapping of names, checked; arguments win over the mapping."""
        warn_of_unknown()
        names = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, f in names.items():
            text = os.environ.get(f.metadata["env"] or "", "")
            if text:
                values[name] = switch_of(f.metadata["env"], text) if f.type == "bool" else text
        for name, value in {**(given or {}), **arguments}.items():
            if name not in names:
                raise OptionError(BAD_VALUE, f"unknown option {name!r}{closest(name, names)}")
            values[name] = _checked(name, value, str(names[name].type))
        return cls(**values)

    @classmethod
    def describe(cls) -> str:
        """One line per option: name, default, environment variable, meaning."""
        return "\n".join(
            f"{f.name:16s} {f.metadata['default']!r:8} {f.metadata['env'] or '':20s} {f.metadata['doc']}"
            for f in fields(cls)
        )

    def with_(self, **changes: Any) -> Options:
        """A copy with some options changed."""
        return replace(self, **changes)

    @property
    def is_verifying(self) -> bool:
        return self.verify or self.strict

    def cache_path(self) -> Path:
        """The folder for built kernels, not yet created."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(self.cache_dir) if self.cache_dir else Path(base) / "cutaway"


_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,), "int": (int,), "str": (str, os.PathLike), "Mapping[str, str]": (Mapping,),
    "tuple[str, ...]": (tuple, list),
}  # fmt: skip


def _checked(name: str, value: Any, annotation: str) -> Any:
    if name == "replace" and isinstance(value, Mapping):
        _check_replace(value)
    if annotation == "int" and isinstance(value, int) and value < 0:
        raise OptionError(BAD_VALUE, f"option {name!r} takes a number from 0 on, not {value}")
    accepted = _TYPES[annotation]
    if not isinstance(value, accepted) or (annotation == "int" and isinstance(value, bool)):
        raise OptionError(
            BAD_VALUE, f"option {name!r} takes {annotation}, not {type(value).__name__} ({value!r})"
        )
    convert = _CONVERT.get(annotation)
    return convert(value) if convert else value


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "str": os.fspath, "Mapping[str, str]": dict, "tuple[str, ...]": tuple,
}  # fmt: skip


def _check_replace(value: Mapping[str, Any]) -> None:
    for key in value:
        if not str(key).startswith("kernels/"):
            form = "'kernels/<name>', or 'kernels/backward/<name>' in the backward graph"
            raise OptionError(
                BAD_VALUE, f"option 'replace' names {key!r}; kernels are named {form}"
            )


def check_mode(mode: str | None) -> None:
    """Refuse a mode that is unknown (OptionError) or not built yet (NotSupportedYet)."""
    if mode not in MODES:
        built = [str(m) for m, doc in MODES.items() if not doc.startswith("not supported")]
        raise OptionError(BAD_VALUE, f"unknown mode {mode!r}{closest(str(mode), built)}")
    if MODES[mode].startswith("not supported"):
        raise NotSupportedYet(NOT_YET, f"mode={mode!r}; use mode=None and options instead")


@dataclass(frozen=True, slots=True)
class Target:
    """What code is generated for: a device type and, for GPUs, a compute capability."""

    device: str  # "cpu" or "cuda"
    arch: int = 0  # 90 for sm_90; 0 on CPU

    @classmethod
    def parse(cls, text: str) -> Target:
        """'cpu' or 'cuda:90'. Raises OptionError for anything else."""
        device, _, arch = text.partition(":")
        if text == "cpu":
            return cls("cpu")
        if device == "cuda" and arch in ARCHITECTURES:
            return cls("cuda", int(arch))
        valid = ["cpu", *(f"cuda:{a}" for a in ARCHITECTURES)]
        raise OptionError(
            BAD_VALUE,
            f"unknown target {text!r}. Valid: {', '.join(valid)}.",
        )

    @property
    def language(self) -> str:
        return "cpp" if self.device == "cpu" else "triton"

    def __str__(self) -> str:
        return self.device if self.device == "cpu" else f"{self.device}:{self.arch}"


@dataclass(frozen=True, slots=True)
class Context:
    """What travels with a compile besides its values: options and the recorder. Passed, never ambient."""

    options: Options
    recorder: Recorder
