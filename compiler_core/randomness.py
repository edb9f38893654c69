"""Which operators draw random numbers, and where the default generators stand.

In: an ATen operator and its arguments; or devices. Out: yes or no; the state of their generators, to be put
back for a while. The operators say by a tag of torch that they draw; attention without dropout says so too, and does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Generators", "draws_numbers"]


def draws_numbers(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Does a call of this operator advance a generator?"""
    if torch.Tag.nondeterministic_seeded not in getattr(operator, "tags", ()):
        return False
    for position, argument in enumerate(operator._schema.arguments):
        if argument.name == "dropout_p":
            given = args[position] if position < len(args) else argument.default_value
            return bool(kwargs.get("dropout_p", given) != 0.0)
    return True


@dataclass(frozen=True, slots=True)
class Generators:
    """States of the CPU's default generator and of those of CUDA devices, by device number."""

    cpu: torch.Tensor
    cuda: tuple[tuple[int, torch.Tensor], ...]

    @classmethod
    def of(cls, devices: Iterable[torch.device]) -> Generators:
        """As they are now, for the CPU and for the CUDA devices among `devices`."""
        numbers = sorted({d.index or 0 for d in devices if d.type == "cuda"})
        states = [(n, torch.cuda.get_rng_state(n)) for n in numbers]
        return cls(torch.get_rng_state(), tuple(states))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Numbers are drawn from these states inside; outside the generators go on as if nothing was."""
        with torch.random.fork_rng(devices=[n for n, _ in self.cuda]):
            torch.set_rng_state(self.cpu)
            for number, state in self.cuda:
                torch.cuda.set_rng_state(state, number)
            yield
