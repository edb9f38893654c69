"""Where the program goes depends on values, or on what cannot be followed."""

from __future__ import annotations

from compiler_core.errors import register

TENSOR_BRANCH = register(
    "CC101",
    "the program branches on the value of a tensor",
    "Which way to go is known only when the tensor has been computed, so each way is compiled on its own.",
    "Write the choice as data: torch.where(condition, a, b).",
    "If the condition depends only on shapes, dtypes or Python values, compute it from those.",
)
ITERATION = register(
    "CC109",
    "an iterator whose items are not known",
    "The iterator was made outside of this graph, and taking an item from it cannot be undone.",
    "Iterate over a list, tuple, dict or range.",
    "Turn the iterator into a list before the compiled function.",
)
SUSPENDED = register(
    "CC114",
    "a half-consumed generator is alive",
    "A suspended generator of the trace cannot be turned into a real one, so it is made natively.",
    "Use a list instead of the generator.",
    "Consume the generator before the statement that breaks the graph.",
)
TOO_DEEP = register(
    "CC115",
    "the trace is too long",
    "Calls nest deeper, or loops run longer, than the limit for one graph.",
    "Raise options={'inline_limit': n} if the depth is intended.",
    "Compile the body of the loop instead of the function around it.",
)
UNCAUGHT = register(
    "CC108",
    "an exception leaves the function",
    "The statement is run natively, so that it raises at its place with the effects before it done.",
    "If the exception is expected, catch it inside the function.",
    "If it is not, this is an error of the program: it raises in eager as well.",
)
OPCODE = register(
    "CC105",
    "an instruction that is not supported",
    "The bytecode interpreter has no handler for this operation.",
    "Write the statement in another way; the detail names what is not supported.",
    "Move it into a function of its own that is called at the end.",
)
TENSOR_LOOP = register(
    "CC130",
    "a while loop runs as long as a tensor says",
    "How often the body runs is known only when the tensor has been computed: each round is a graph.",
    "Run a fixed number of rounds and mask what is done: torch.where(active, new, old).",
    "Compile the body of the loop and keep the loop itself outside.",
)
TENSOR_ASSERT = register(
    "CC131",
    "an assert looks at the value of a tensor",
    "Whether it holds is known only when the tensor has been computed, and it must raise at its place.",
    "Check the value in the caller, before or after the compiled function.",
    "Assert shapes and dtypes instead: they are known while the graph is built.",
)
TENSOR_LOGIC = register(
    "CC132",
    "`and`, `or` or `not` is applied to a tensor",
    "Python asks the left operand for its truth to decide whether to look at the right one.",
    "Use &, |, ~ on boolean tensors, or torch.logical_and, logical_or and logical_not.",
    "For `is it there?` compare with None: `x is not None`.",
)
TENSOR_CHAIN = register(
    "CC133",
    "a chained comparison of tensors",
    "`a < x < b` means `a < x and x < b`, which asks the first result for its truth.",
    "Write both comparisons and join them: (a < x) & (x < b).",
    "Use torch.clamp when the comparison keeps x between two bounds.",
)
TENSOR_ORDER = register(
    "CC134",
    "Python's own functions decide by the truth of a tensor",
    "max(), sorted(), any(), `in` and == of containers compare items and ask the result for its truth.",
    "Use the tensor form: torch.maximum, torch.stack(items).sort(), mask.any().",
    "To find a tensor in a list compare identities: any(item is x for item in items).",
)
TENSOR_RANGE = register(
    "CC135",
    "a loop counts up to the value of a tensor",
    "range() needs a number of Python; the loop is unrolled, so the number shapes the graph.",
    "Pass the count as an int argument: it is guarded, and becomes symbolic when it changes.",
    "Loop up to a fixed bound and mask the rounds that do not count with torch.where.",
)
COROUTINE = register(
    "CC136",
    "a coroutine is made or awaited",
    "An event loop decides when it goes on, so its frames are not part of a graph.",
    "Await outside, and compile the function that computes with the results.",
    "Make the function a plain one: tensor operations wait for nothing.",
)
