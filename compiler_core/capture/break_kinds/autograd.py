"""The autograd engine is spoken to from inside."""

from __future__ import annotations

from compiler_core.errors import register

AUTOGRAD = register(
    "CC118",
    "the autograd engine is called from inside",
    "Gradients, hooks and custom autograd functions work on the eager graph, which this one replaces.",
    "Call backward() or autograd.grad on the result of the compiled function.",
    "Compile the function that computes the loss, not the training step.",
)
HOOKS = register(
    "CC113",
    "a module with backward hooks",
    "Backward hooks attach to autograd nodes that exist only in eager, so the module is called natively.",
    "Remove the hooks for the compiled run.",
    "Register a hook on the output tensor outside of the compiled function.",
)
TENSOR_HOOKS = register(
    "CC179",
    "a hook is put on a tensor",
    "It is called with the gradient when the backward pass of eager runs; a graph has one of its own.",
    "Put the hook on the input or the output, outside of the compiled function.",
    "Change the gradient by arithmetic: x * scale + (x - x * scale).detach().",
)
CUSTOM_FUNCTION = register(
    "CC180",
    "a custom autograd function is applied",
    "Its forward saves tensors for a backward written in Python, which works on the eager graph.",
    "Write it with operators that are differentiated by themselves.",
    "Make it a custom operator: torch.library.custom_op with register_autograd and register_fake.",
)
GRADIENT_READ = register(
    "CC181",
    "the gradient or the history of a tensor is read",
    ".grad, .grad_fn and their like belong to the autograd graph of eager, which this one replaces.",
    "Read it in the caller, and pass it as an argument.",
    "x.requires_grad and x.is_leaf are known while the graph is built.",
)
REQUIRES_GRAD = register(
    "CC182",
    "what autograd tracks is changed",
    "requires_grad_, retain_grad and detach_ change the real tensor and its place in the autograd graph.",
    "Call it before the compiled function, on the argument.",
    "Use x.detach(), or torch.no_grad() around what is not to be tracked.",
)
STORAGE_SWAP = register(
    "CC183",
    "a tensor gets other memory",
    "Setting .data, set_() and resize_() swap what is behind a tensor that others hold as well.",
    "Copy into it under no_grad: x.copy_(new).",
    "Bind the new tensor to the name, and return it.",
)
CHECKPOINT = register(
    "CC184",
    "activations are checkpointed",
    "torch.utils.checkpoint runs its function again in the backward pass of eager.",
    "Leave it out: what the backward pass needs is chosen when the graph is split.",
    "Compile the function that is checkpointed, and checkpoint outside.",
)
INFERENCE = register(
    "CC185",
    "inference mode is entered or left",
    "Tensors made in it can never be used by autograd, which only the real tensor knows.",
    "Use torch.no_grad(), which is captured.",
    "Enter inference mode in the caller.",
)
