"""Every test is strict and starts clean: a failure inside the compiler raises, nothing is left over."""

from __future__ import annotations

import os

import pytest

os.environ["CUTAWAY_STRICT"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden texts")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # the mark, not the keyword: keywords hold the names of folders too
    marked = {name: _with_mark(items, name) for name in ("gpu", "evaluated")}
    if not any(marked.values()):
        return
    import torch

    has_gpu = torch.cuda.is_available()
    reason = "kernels run on the CUDA device" if has_gpu else "no CUDA device"
    for item in marked["evaluated" if has_gpu else "gpu"]:
        item.add_marker(pytest.mark.skip(reason=reason))


def _with_mark(items: list[pytest.Item], name: str) -> list[pytest.Item]:
    return [item for item in items if item.get_closest_marker(name)]


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels built by tests go to a folder of this run."""
    os.environ["CUTAWAY_CACHE_DIR"] = str(tmp_path_factory.mktemp("kernels"))
