"""The private names that the compiler borrows: listed, there in this version, used nowhere else.

Private is what torch, triton or Python may change without a word: a name with an underscore, everything
under `torch.fx.experimental`, everything of triton but its language. The names are read out of the
source text, through imports and `getattr`. What the names *do* is tested where they are used:
`autodiff/test_borrowed.py`, `capture/test_torch_hook.py`, `runtime/build_triton/`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.modules import module as torch_module

CORE = Path(__file__).resolve().parent.parent / "compiler_core"

# Module → the private names that it uses. A new name needs a reason not to use a public one.
BORROWED = {
    "control_flow.py": "torch._C._AutoDispatchBelowAutograd",
    "autodiff/borrowed.py": """
        torch._C._functorch.is_functorch_wrapped_tensor torch._C._functorch.is_legacy_batchedtensor
        torch._C._DisableAutocast torch._C._autograd._get_sequence_nr torch._C._is_any_autocast_enabled
        torch._decomp.decomposition_table torch._dispatch.python.enable_python_dispatcher
        torch._from_functional_tensor torch._sync
        torch._subclasses.fake_tensor.FakeTensor
        torch._subclasses.functional_tensor.FunctionalTensor.to_functional
        torch._subclasses.functional_tensor.FunctionalTensorMode
        torch.fx.experimental.proxy_tensor.disable_proxy_modes_tracing
        torch.fx.experimental.proxy_tensor.get_proxy_mode
        torch.fx.experimental.proxy_tensor.make_fx
        torch.fx.experimental.proxy_tensor.track_tensor_tree""",
    "autodiff/float_arguments.py": "torch.utils._pytree.tree_leaves torch.utils._pytree.tree_map",
    "autodiff/functionalise.py": "torch.utils._pytree.tree_leaves",
    "autodiff/tidy.py": "torch.utils._pytree.tree_leaves",
    "autodiff/vocabulary.py": "torch._ops.OpOverload",
    "eager_layouts.py": "torch._subclasses.fake_tensor.FakeTensorMode",
    "capture/control_flow.py": "torch._C._is_any_autocast_enabled torch._higher_order_ops.while_loop",
    "capture/frame_capture.py": """
        torch._C._functorch.peek_interpreter_stack torch._C._len_torch_dispatch_stack
        torch._C._len_torch_function_stack torch._C._set_grad_enabled""",
    "capture/break_examples/calls.py": "torch._assert",
    "capture/graph_builder.py": """
        torch._dispatch.python.enable_python_dispatcher
        torch._ops.OpOverload torch._ops.OpOverloadPacket
        torch.utils._pytree.tree_leaves
        torch.fx.experimental.symbolic_shapes.DimDynamic.DYNAMIC
        torch.fx.experimental.symbolic_shapes.DimDynamic.STATIC
        torch.fx.experimental.symbolic_shapes.ShapeEnv
        torch.fx.experimental.symbolic_shapes.StatelessSymbolicContext""",
    "capture/operator_kinds.py": """
        torch._subclasses.fake_tensor.DataDependentOutputException
        torch._subclasses.fake_tensor.DynamicOutputShapeException
        torch._subclasses.fake_tensor.UnsupportedOperatorException
        torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode""",
    "capture/guard_check.py": """
        torch._C._dynamo.guards.RootGuardManager torch._C._dynamo.guards.TensorGuards""",
    "capture/guard_conditions.py": """
        torch._C._is_any_autocast_enabled torch._C._is_torch_function_enabled
        torch._C._len_torch_function_stack""",
    "capture/guard_facts.py": "torch._C._len_torch_dispatch_stack",
    "capture/guard_predicates.py": """
        torch._C._functorch.is_functorch_wrapped_tensor torch._C._get_function_stack_at
        torch._C._is_torch_function_enabled torch._C._len_torch_function_stack
        torch.autograd.forward_ad._current_level""",
    "capture/guard_texts.py": """
        torch._ops.OpOverload torch._ops.OpOverloadPacket torch._ops._OpNamespace""",
    "capture/input_source.py": "torch._guards.Source",
    "capture/managers.py": "torch._C._set_grad_enabled",
    "capture/normalise.py": "dis._parse_exception_table",
    "capture/replacement.py": "torch._C._set_grad_enabled",
    "capture/resolve.py": "torch._ops.OpOverload torch._ops.OpOverloadPacket torch._ops._OpNamespace",
    "capture/symbolic.py": " ".join(
        f"torch.utils._sympy.functions.{name}"
        for name in (
            "CeilToInt", "CleanDiv", "FloatPow", "FloatTrueDiv", "FloorDiv", "FloorToInt", "IntTrueDiv",
            "Max", "Min", "Mod", "PowByNatural", "PythonMod", "ToFloat", "TruncToInt",
        )
    ),
    "capture/torch_calls.py": "torch._C.TensorBase torch._ops.OpOverload torch._ops.OpOverloadPacket",
    "capture/torch_frames.py": """
        torch._C._dynamo.eval_frame._FrameAction torch._C._dynamo.eval_frame._FrameExecStrategy
        torch._C._dynamo.eval_frame._debug_get_cache_entry_list torch._C._dynamo.eval_frame.reset_code
        torch._C._dynamo.eval_frame.set_code_exec_strategy torch._C._dynamo.eval_frame.set_eval_frame
        torch._C._dynamo.eval_frame.set_eval_frame_isolate_recompiles_id
        torch._C._dynamo.guards.RootGuardManager""",
    "capture/module_calls.py": """
        torch.nn.Module._call_impl torch.nn.Module._wrapped_call_impl""",
    "capture/torch_rules.py": """
        torch._C._get_tracing_state torch._C._has_torch_function torch._C._has_torch_function_unary
        torch._C._has_torch_function_variadic torch._C._is_any_autocast_enabled
        torch._C._log_api_usage_once torch._C._set_grad_enabled torch._assert torch._check
        torch.utils._python_dispatch._get_current_dispatch_mode_stack""",
    "capture/watch.py": "torch.utils._python_dispatch.TorchDispatchMode",
    "compiled_module.py": "copyreg._reconstructor",
    "devtools/replay.py": """
        torch.utils._python_dispatch.TorchDispatchMode torch.utils._pytree.tree_leaves
        torch.utils._pytree.tree_map_only""",
    "driver.py": """
        torch._C._functorch.peek_interpreter_stack torch._C._len_torch_dispatch_stack
        torch._C._len_torch_function_stack""",
    "fuse/start.py": "torch._ops.OpOverload",
    "graph_text.py": "torch._ops.OpOverload torch._ops.OpOverloadPacket",
    "interception.py": """
        torch._C._autograd._top_saved_tensors_default_hooks torch.autograd._enable_record_function""",
    "lower/fallback.py": "torch._ops.OpOverload",
    "passes/rewriting.py": "sys._getframe",
    "runtime/artifacts/sass_text.py": "triton.knobs.nvidia.nvdisasm.path",
    "runtime/launch_triton.py": """
        triton.compiler.compiler.CompiledKernel
        triton.runtime.driver.driver.active.get_current_stream""",
    "runtime/triton_stages.py": """
        triton._C.libtriton.ir.context triton._C.libtriton.ir.load_dialects
        triton.backends.compiler.GPUTarget triton.compiler.ASTSource
        triton.compiler.compiler.make_backend""",
}  # fmt: skip

# Names that not every machine has, and where they are; the module that uses one says what it does without.
SOMETIMES = {
    "torch._C._dynamo.eval_frame.set_eval_frame_isolate_recompiles_id": "torch 2.13 and newer",
    "triton.runtime.driver.driver.active.get_current_stream": "a GPU",
}


def _module() -> torch.nn.Module:
    return torch.nn.Linear(1, 1)


def _tensor() -> torch.Tensor:
    return torch.ones(1, requires_grad=True) * 2


# Private attribute of an object → an object that has it.
ATTRIBUTES: dict[str, Callable[[], Any]] = {
    "_backward_hooks": _module,
    "_backward_pre_hooks": _module,
    "_base": _tensor,
    "_buffers": _module,
    "_cdata": lambda: _tensor().untyped_storage(),
    "_compiled_call_impl": _module,
    "_forward_hooks": _module,
    "_forward_hooks_with_kwargs": _module,
    "_forward_pre_hooks": _module,
    "_forward_pre_hooks_with_kwargs": _module,
    "_global_backward_hooks": lambda: torch_module,
    "_global_backward_pre_hooks": lambda: torch_module,
    "_global_forward_hooks": lambda: torch_module,
    "_global_forward_pre_hooks": lambda: torch_module,
    "_is_view": _tensor,
    "_modules": _module,
    "_overloadname": lambda: torch.ops.aten.add.Tensor,
    "_parameters": _module,
    "_schema": lambda: torch.ops.aten.add.Tensor,
    "_sequence_nr": lambda: _tensor().grad_fn,
    "_version": _tensor,
    "_VariableFunctions": lambda: torch._C,
    "_fft": lambda: torch._C,
    "_linalg": lambda: torch._C,
    "_nested": lambda: torch._C,
    "_nn": lambda: torch._C,
    "_sparse": lambda: torch._C,
    "_special": lambda: torch._C,
}

OURS = {"_cutaway_dynamic"}  # set by us on tensors of the user


# ------------------------------------------------------------------------------ reading the source


@functools.cache
def trees() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(CORE.rglob("*.py"))
    return tuple((str(p.relative_to(CORE)), ast.parse(p.read_text())) for p in paths)


def roots_of(tree: ast.Module) -> dict[str, str]:
    """Local name → dotted name of what is imported from elsewhere, and of `aten = torch.ops.aten`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                top = a.name.partition(".")[0]
                found[a.asname or top] = a.name if a.asname else top
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    found = {name: full for name, full in found.items() if not full.startswith("compiler_core")}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if full := dotted(node.value, found):
                found[node.targets[0].id] = full
    return found


def dotted(node: ast.AST, roots: dict[str, str]) -> str | None:
    """`torch._C.f` as text, also where it is written `getattr(place, "f", …)`."""
    match node:
        case ast.Name():
            return roots.get(node.id)
        case ast.Attribute(value=place, attr=name):
            base = dotted(place, roots)
            return base and f"{base}.{name}"
        case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[place, ast.Constant(name), *_]):
            base = dotted(place, roots)
            return base and f"{base}.{name}"
    return None


def is_private(name: str) -> bool:
    if name.startswith(("torch.fx.experimental.", "triton.")):
        return not name.startswith("triton.language") and not name.endswith("__")
    if name.startswith("torch.ops."):  # operators have a test of their own
        return False
    parts = name.split(".")
    return (
        any(p.startswith("_") and not p.startswith("__") for p in parts) and parts[-1][:2] != "__"
    )


@functools.cache
def names_in(tree: ast.Module) -> frozenset[str]:
    """All dotted names from elsewhere, the longest form of each; also those inside texts of guards."""
    roots = roots_of(tree)
    found = set(roots.values()) | {full for node in ast.walk(tree) if (full := dotted(node, roots))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"\btorch\._C\.\w+(?=\()", node.value))
    shorter = {name[:at] for name in found for at, sign in enumerate(name) if sign == "."}
    return frozenset(found - shorter)


def private_attributes(tree: ast.Module, own: set[str]) -> set[str]:
    """Attributes with an underscore, of objects that are neither `self` nor imported."""
    roots, found = roots_of(tree), set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls")):
                continue
            case ast.Attribute(attr=name):
                pass
            case ast.Call(func=ast.Name("getattr" | "hasattr"), args=[_, ast.Constant(name), *_]):
                pass
            case _:
                continue
        if str(name).startswith("_") and not str(name).startswith("__") and not dotted(node, roots):
            found.add(str(name))
    return found - own - OURS


def resolve(name: str) -> Any:
    parts = name.split(".")
    found, place = importlib.import_module(parts[0]), parts[0]
    for part in parts[1:]:
        place += f".{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(place)
            except ImportError:
                raise AttributeError(f"{name}: there is no {place}") from None
    return found


# ------------------------------------------------------------------------------ the questions

LISTED = {module: set(names.split()) for module, names in BORROWED.items()}
NAMES = sorted(set().union(*LISTED.values()))


def test_every_private_name_stands_in_its_row() -> None:
    used = {module: {n for n in names_in(tree) if is_private(n)} for module, tree in trees()}
    problems = []
    for module in sorted(used.keys() | LISTED.keys()):
        uses, row = used.get(module, set()), LISTED.get(module, set())
        problems += [f"{module} borrows {name}, which its row lacks" for name in sorted(uses - row)]
        problems += [f"{module} no longer borrows {name}" for name in sorted(row - uses)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", NAMES)
def test_this_version_has_it(name: str) -> None:
    users = [module for module, names in LISTED.items() if name in names]
    try:
        resolve(name)
    except (AttributeError, RuntimeError) as error:
        assert name in SOMETIMES, f"{error} in torch {torch.__version__}; used in {users}"


def test_every_operator_exists() -> None:
    missing = []
    for module, tree in trees():
        for name in names_in(tree):
            if name.startswith("torch.ops."):
                if not name.startswith(("torch.ops.aten.", "torch.ops.prims.")):  # one of its own
                    importlib.import_module(f"compiler_core.{module[:-3].replace('/', '.')}")
                try:
                    resolve(".".join(name.split(".")[:5]))  # torch.ops.aten.add.Tensor
                except AttributeError as error:
                    missing.append(f"{module}: {error}")
    assert not missing, f"torch {torch.__version__}: " + "\n".join(missing)


def test_every_private_attribute_is_listed() -> None:
    own = {n.name for _, tree in trees() for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    used = {name: module for module, tree in trees() for name in private_attributes(tree, own)}
    unknown = {name: module for name, module in used.items() if name not in ATTRIBUTES}
    assert not unknown, f"private attributes without a row: {unknown}"
    text = "".join(path.read_text() for path in CORE.rglob("*.py"))
    stale = [name for name in ATTRIBUTES if not re.search(rf"\b{name}\b", text)]
    assert not stale, f"rows of attributes that nobody reads: {stale}"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_objects_still_have_it(name: str) -> None:
    owner = ATTRIBUTES[name]()
    assert hasattr(owner, name), (
        f"{type(owner).__name__}.{name} is gone in torch {torch.__version__}"
    )
