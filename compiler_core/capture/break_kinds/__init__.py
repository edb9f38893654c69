"""The kinds of graph break, one module a theme: code, sentence, explanation, what to do.

A kind is what the user can do about it: two causes with the same remedy are one kind, two remedies
are two. `break_examples/` has a failing and a fixed function of each.
"""
