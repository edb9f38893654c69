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
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels built by tests go to a folder of this run."""
    os.environ["CUTAWAY_CACHE_DIR"] = str(tmp_path_factory.mktemp("kernels"))
