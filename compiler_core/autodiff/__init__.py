"""Captured → Joint → Partitioned, and the runtime that makes the pair differentiable.

joint = trace_joint(captured, context)        # forward and backward in one functional graph
parts = partition(joint, context)             # cut in two
call = attach(parts, forward_call, backward_call)
"""

from compiler_core.autodiff.partition import partition
from compiler_core.autodiff.runtime import attach
from compiler_core.autodiff.trace_joint import trace_joint

__all__ = ["attach", "partition", "trace_joint"]
