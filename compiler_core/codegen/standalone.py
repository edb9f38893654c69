"""A script that builds and runs a `Generated` by itself, for reading, timing and reporting.

In: the generated code and one example per argument. Out: a Python script. It builds the kernels,
makes random inputs, calls twice on equal inputs, stops if the two results differ, and prints what came out
and how long a call takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from compiler_core.codegen.host_text import host_name
from compiler_core.stages import Generated, KernelSource

__all__ = ["Example", "standalone"]

# A tensor's sizes, strides and type; or an integer argument.
Example = int | tuple[tuple[int, ...], tuple[int, ...], torch.dtype]

_BUILD = '''
def build():
    """Compile KERNELS into one library; its functions by name."""
    source = "\\n".join(text for text, _ in KERNELS.values())
    folder = Path(tempfile.mkdtemp())
    (folder / "kernels.c").write_text(source)
    library = folder / "kernels.so"
    files = [str(folder / "kernels.c"), "-o", str(library), "-lm"]
    subprocess.run([find_compiler(), *FLAGS, "-I", str(HEADERS), *files], check=True)
    loaded = ctypes.CDLL(str(library))
    for name, (_, parameters) in KERNELS.items():
        function = getattr(loaded, name)
        function.argtypes = [ctypes.c_int64 if p == "size" else ctypes.c_void_p for p in parameters]
        function.restype = None
        globals()[name] = function
'''

_MAIN = '''
def random_tensor(sizes, strides, dtype):
    """Random values in this layout: integers below 10, floats around 0."""
    tensor = torch.empty_strided(sizes, strides, dtype=dtype, device=DEVICE)
    if dtype.is_floating_point:
        return tensor.copy_(torch.randn(sizes))
    return tensor.copy_(torch.randint(0, 2 if dtype is torch.bool else 10, sizes))


def main():
    torch.manual_seed(0)
    examples = inputs()
    copies = [[e.clone() if isinstance(e, torch.Tensor) else e for e in examples] for _ in range(2)]
    first, second = (call(copy) for copy in copies)
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
            a = f"{tuple(a.shape)} {a.dtype}, sum {a.double().sum().item():.6g}"
        print(f"output {number}: {a}")
    seconds = []
    for _ in range(20):
        arguments = list(examples)
        start = time.perf_counter()
        call(arguments)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    print(f"{min(seconds) * 1e6:.1f} us a call (least of {len(seconds)})")


if __name__ == "__main__":
    main()
'''


def standalone(generated: Generated, example_shapes: Sequence[Example]) -> str:
    """The script. `example_shapes` has one entry per argument of `call`, in order."""
    arguments = "".join(f"        {_argument(example)},\n" for example in example_shapes)
    inputs = f'\n\ndef inputs():\n    """One example per argument."""\n    return [\n{arguments}    ]\n\n'
    is_cpp = generated.target.language == "cpp"
    kernels = _cpp_section(generated.kernels) if is_cpp else _triton_section(generated.kernels)
    start = "    build()\n    main()\n" if is_cpp else "    main()\n"
    main = _MAIN.replace("    main()\n", start)
    return f'"""{generated.part} for {generated.target}: kernels, host program, timing."""\n\n{kernels}\n{generated.host.source}{inputs}{main}'


def _cpp_section(kernels: Sequence[KernelSource]) -> str:
    imports = ["import ctypes", "import subprocess", "import tempfile", "import time", "from pathlib import Path", "",
               "from compiler_core.runtime.build_cpp import FLAGS, HEADERS, find_compiler"]  # fmt: skip
    rows = [
        f"    {host_name(k.name)!r}: (\n        r'''\n{k.source}''',\n        {[p.kind for p in k.params]},\n    ),\n"
        for k in kernels
    ]
    return "\n".join(imports) + f"\n\nKERNELS = {{\n{''.join(rows)}}}\n\n{_BUILD}\n"


def _triton_section(kernels: Sequence[KernelSource]) -> str:
    return "import time\n\n" + "\n\n".join(kernel.source for kernel in kernels)


def _argument(example: Example) -> str:
    if isinstance(example, int):
        return str(example)
    sizes, strides, dtype = example
    return f"random_tensor({tuple(sizes)}, {tuple(strides)}, {dtype})"
