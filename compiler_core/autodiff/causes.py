"""Why a value of the forward pass stands in the backward graph.

In: a backward graph whose nodes have their own `joint:` handles as origins. Out: the same graph, in
which saved and recomputed values also name

* what *needs* them: the operators of the backward pass that read them, directly or through other such
  values;
* what made them *cheap*: a value is made again, and not saved, because what it is made from is kept for
  other operators anyway. Those operators share in the decision.

Arguments of the program are always at hand and make nothing cheap.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import fx

from compiler_core.provenance import NOWHERE, Origins

__all__ = ["name_causes"]


def name_causes(graph: fx.Graph, arguments: Collection[str]) -> None:
    """Write the causes into `meta["origins"]`. `arguments`: names of nodes that are program inputs."""
    needs = _needs(graph)
    cheap = _cheapness(graph, needs, arguments)
    for node in reversed(graph.nodes):
        if not _is_backward(node):
            made_again = [user for user in node.users if not _is_backward(user)]
            causes = needs[node].union(cheap[node], *(cheap[user] for user in made_again))
            node.meta["origins"] = node.meta["origins"] | causes


def _is_backward(node: fx.Node) -> bool:
    return bool(node.meta["phase"] == "backward")


def _needs(graph: fx.Graph) -> dict[fx.Node, Origins]:
    """node → the backward operators that it is there for."""
    needs: dict[fx.Node, Origins] = {}
    for node in reversed(graph.nodes):
        own: Origins = node.meta["origins"]
        needs[node] = own if _is_backward(node) else NOWHERE.union(*(needs[u] for u in node.users))
    return needs


def _cheapness(
    graph: fx.Graph, needs: dict[fx.Node, Origins], arguments: Collection[str]
) -> dict[fx.Node, Origins]:
    """node → what the values that it is made from are kept for; nothing for a saved value itself."""
    cheap: dict[fx.Node, Origins] = {}
    for node in graph.nodes:
        operands = () if _is_backward(node) else node.all_input_nodes
        made_from = [o for o in operands if o.name not in arguments]
        cheap[node] = NOWHERE.union(*(needs[o] | cheap[o] for o in made_from))
    return cheap
