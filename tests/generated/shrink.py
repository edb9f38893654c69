"""A program that fails becomes a smaller one that fails alike: statements are dropped while it does.

In: source text and a test of source texts. Out: source text. Each round tries to delete every
statement, or to put its body in its place, from the end to the beginning.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

__all__ = ["shrink"]

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_KEPT = ("inputs", "mutate", "program", "State")


def shrink(source: str, fails: Callable[[str], bool], budget: int = 400) -> str:
    """The smallest text found for which `fails` holds, after at most `budget` tries."""
    tree, tries = ast.parse(source), 0
    for size in (16, 8, 4, 2, 1, 1):
        for path in reversed(list(_paths(tree))):
            for candidate in _without(tree, path, size):
                tries += 1
                if tries > budget:
                    return ast.unparse(tree)
                if fails(ast.unparse(ast.fix_missing_locations(candidate))):
                    tree = candidate
                    break
    return ast.unparse(tree)


Path = tuple[tuple[str, int], ...]


def _paths(node: ast.AST, path: Path = ()) -> Iterator[Path]:
    """Where each statement lies, the outer ones first."""
    for name in _BODIES:
        below = getattr(node, name, None)
        if not isinstance(below, list):  # the body of a lambda
            continue
        for index, child in enumerate(below):
            here = (*path, (name, index))
            if getattr(child, "name", None) not in _KEPT:
                yield here
            yield from _paths(child, here)


def _without(tree: ast.Module, path: Path, size: int) -> Iterator[ast.Module]:
    """The tree without `size` statements that end there; for one, also with its bodies in its place."""
    statement = _at(tree, path)
    if statement is None:
        return
    name, last = path[-1]
    if size > 1:
        below = getattr(_at(tree, path[:-1]), name)
        first = last - size + 1
        if first >= 0 and (len(below) - 1 - last) % size == 0 and not _holds_kept(below[first : last + 1]):  # fmt: skip
            yield _replaced(tree, path, [], size)
        return
    yield _replaced(tree, path, [])
    inner = [x for name in ("body", "orelse", "finalbody") for x in getattr(statement, name, [])]
    if inner and not isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler, ast.match_case)):  # fmt: skip
        yield _replaced(tree, path, inner)


def _holds_kept(statements: list[ast.AST]) -> bool:
    return any(getattr(statement, "name", None) in _KEPT for statement in statements)


def _at(tree: ast.AST, path: Path) -> ast.AST | None:
    node: ast.AST | None = tree
    for name, index in path:
        below = getattr(node, name, [])
        node = below[index] if index < len(below) else None
    return node


def _replaced(tree: ast.Module, path: Path, by: list[ast.AST], size: int = 1) -> ast.Module:
    tree = copy.deepcopy(tree)
    parent = _at(tree, path[:-1])
    name, index = path[-1]
    below = getattr(parent, name)
    below[index - size + 1 : index + 1] = copy.deepcopy(by)
    if name == "body" and not below and not isinstance(parent, ast.Module):
        below.append(ast.Pass())
    return tree
