"""Examples of every kind of graph break, one module a theme, and the catalogue made of them."""

from compiler_core.capture.break_examples.catalogue import CatalogueRow, catalogue, examples
from compiler_core.capture.break_examples.example import Example, marked_lines

__all__ = ["CatalogueRow", "Example", "catalogue", "examples", "marked_lines"]
