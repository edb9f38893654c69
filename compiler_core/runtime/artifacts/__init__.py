"""Texts that a compiled kernel leaves behind, mapped to the kernel's lines; and its static facts."""

from __future__ import annotations

from compiler_core.runtime.artifacts.facts import KernelFacts, facts_of
from compiler_core.runtime.artifacts.forms import artifacts_of, instruction_names, sass_artifact

__all__ = ["KernelFacts", "artifacts_of", "facts_of", "instruction_names", "sass_artifact"]
