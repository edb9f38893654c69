"""The program speaks to the outside: it prints, logs, warns, reads and writes files."""

from __future__ import annotations

from compiler_core.errors import register

PRINTS = register(
    "CC103",
    "the program prints",
    "Output must appear at this point, in order, with the values that the graph so far computes.",
    "Remove the print, or move it to the caller.",
    "Print shapes and dtypes instead, outside of the hot function: they are known without running.",
)
READS_INPUT = register(
    "CC145",
    "the program waits for input",
    "What is typed is not known while the graph is built, and the question must appear at its place.",
    "Ask before the call, and pass the answer as an argument.",
    "Read settings once, where the model is made.",
)
LOGS = register(
    "CC146",
    "a log record of a tensor or with options",
    "A record must be made at this point, in order, with the values that the graph so far computes.",
    "Log texts and numbers of Python, such as sizes: such records are made after the graph.",
    "Log in the caller, from the result.",
)
WARNS = register(
    "CC147",
    "the program warns",
    "Filters and the list of what was shown already decide what a warning does, each time anew.",
    "Warn where the object is made, or in the caller.",
    "Guard it with `if not torch.compiler.is_compiling():` where it may be left out.",
)
FILES = register(
    "CC148",
    "a file is opened, read or written",
    "What a file holds is not known while the graph is built, and writing must happen at its place.",
    "Read the file before the call, and pass what it holds.",
    "Return what is to be written, and write it in the caller.",
)
SAVES = register(
    "CC149",
    "objects are saved or loaded",
    "Saving needs the values at this point; loading gives objects that are not known before.",
    "Save the results in the caller, load before the call.",
    "Register what is loaded as a buffer of the module.",
)
