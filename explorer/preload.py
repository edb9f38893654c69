"""Loading what the first compile needs while nobody waits: when a notebook's kernel is idle.

In: the running event loop of a kernel. Out: nothing; modules are loaded by the main thread between two cells.
Most of a first compile is imports (torch's fake tensors bring about a second of them). A thread would do it
earlier, but imports of one package in two threads may see each other's half-made modules.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

__all__ = ["load_stages", "load_when_idle"]

_PAUSE = 0.2  # seconds after the cell; the loop is busy, and this waits, while another one runs


def load_when_idle() -> None:
    """Load the stages soon, if this is a kernel; in a plain shell they load at the first compile."""
    with suppress(RuntimeError):  # no loop is running
        asyncio.get_running_loop().call_later(_PAUSE, load_stages)


def load_stages() -> None:
    """Load what a first compile would. Without torch there is nothing to compile, and nothing is loaded."""
    with suppress(ImportError):
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        ShapeEnv()
        import compiler_core.driver  # noqa: F401
        import explorer.exploring
        import explorer.widgets.linked  # noqa: F401
