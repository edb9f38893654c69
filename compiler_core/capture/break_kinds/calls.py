"""Calls that are not followed, by what the callee does."""

from __future__ import annotations

from compiler_core.errors import register

UNKNOWN_CALL = register(
    "CC104",
    "a call that is not understood",
    "The function is not Python that can be followed, and no rule says what it does to its arguments.",
    "Move the call out of the compiled function, or to its start or end.",
    "Use a torch operator that does the same.",
)
DISABLED = register(
    "CC119",
    "a function that must not be compiled",
    "It is marked with torch.compiler.disable, or is a compiled function itself.",
    "Remove the mark if the function may be captured.",
    "Call it before or after the compiled function.",
)
RANDOM = register(
    "CC106",
    "a random operator that no graph can hold",
    "Graphs draw from torch's default generators, into dense tensors; this one asks for more, so it runs natively.",
    "Draw into a new tensor, from the default generator (torch.manual_seed sets its state).",
    "Pass the random tensor in as an argument.",
)
GLOBAL_STATE = register(
    "CC121",
    "global state of torch is read or changed",
    "The setting decides what later operators do, and changing it is seen outside of the function.",
    "Change the setting outside of the compiled function.",
    "Use a form that is captured: torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled().",
)
NUMPY = register(
    "CC156",
    "a function of numpy is called",
    "It computes at once on memory, and no rule says what it does to its arguments.",
    "Use the torch function that does the same; most have numpy's name.",
    "Compute it before the call, and pass the result as a tensor.",
)
CLOCK = register(
    "CC157",
    "the clock is read, or the program waits",
    "The time at this point is wanted, each time anew; a graph runs as a whole.",
    "Measure in the caller, around the compiled function.",
    "Pass the time as a tensor.",
)
SYSTEM = register(
    "CC158",
    "the operating system is asked",
    "Files, processes and the environment may have changed at each call, so they are asked each time.",
    "Ask once, where the model is made, and keep the answer as an attribute.",
    "Ask before the call, and pass the answer.",
)
OTHER_RANDOM = register(
    "CC159",
    "a random number is drawn that is not torch's",
    "Each call must draw the next number of Python's or numpy's generator, so it is drawn natively.",
    "Draw before the call, and pass the number as a tensor.",
    "Decide with a tensor: torch.where(pass_in < p, a, b).",
)
THREADS = register(
    "CC160",
    "threads, locks or processes are used",
    "What other threads do in the meantime is not part of a graph.",
    "Take the lock in the caller, around the compiled function.",
    "Start threads outside; each may call the compiled function.",
)
CODE_FROM_TEXT = register(
    "CC161",
    "code is made from text",
    "exec(), eval() and compile() run what a string says, which is not known from the function's code.",
    "Write the code out, or choose among functions in a dict.",
    "Make the function with exec() once, outside, and call it here.",
)
INTROSPECTION = register(
    "CC162",
    "the interpreter's frames are looked at",
    "locals(), inspect and traceback show frames, and those of a compiled function are others.",
    "Name the variables that are meant.",
    "Look at frames in the caller.",
)
COMPILED = register(
    "CC163",
    "a function that is compiled by itself",
    "It was compiled with other options, by TorchScript or by torch.compile, and stays a unit of its own.",
    "Compile the outer function only: what it calls is captured with it.",
    "Compile both with the same options: they become one graph then.",
)
NOT_LOADED = register(
    "CC164",
    "a module is imported that is not loaded yet",
    "Importing runs the module's code, which may do anything, once.",
    "Import at the top of the file.",
    "Call the function once before it is compiled.",
)
COPIES = register(
    "CC165",
    "an object is copied that only Python can copy",
    "copy and deepcopy ask the object how to copy itself, which needs the real one.",
    "Use clone() for tensors, and make containers anew: list(x), dict(x).",
    "Copy before the call.",
)
TRANSFORM = register(
    "CC166",
    "a transform of torch.func",
    "Batching and differentiating a function changes what every operator in it means, so the call runs natively.",
    "Apply the transform outside, to the compiled function or to its result.",
    "Write the batch out: most operators take a further dimension as they are.",
)
LIBRARY = register(
    "CC167",
    "a function of the standard library that is not followed",
    "Patterns, JSON, paths and dates work on text and files, not on tensors; they run natively.",
    "Call it where the model is made, and keep the result.",
    "Call it before the call, and pass the result.",
)
CHECKS = register(
    "CC168",
    "a check of a tensor's value that raises",
    "torch._assert and torch._check raise when it does not hold, at this place in the order of effects.",
    "Check the value in the caller, before or after the compiled function.",
    "Check shapes and dtypes instead: they are known while the graph is built.",
)
CONTROL_FLOW = register(
    "CC187",
    "a control flow operator",
    "Graphs hold torch.cond and torch.while_loop whose functions only compute tensors: they neither write to what "
    "is outside of them nor draw random numbers. This one runs natively, as torch runs it.",
    "Make new tensors in the branches, and draw random numbers before the call.",
    "Where both branches are cheap, compute both and choose: torch.where(condition, a, b).",
    "Write a loop whose count does not depend on data as a Python for: it is unrolled.",
)
