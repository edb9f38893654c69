"""Every opcode of every supported CPython: in the table of its version, or refused with a reason.

`opcodes.json` has the names in `dis.opmap`, recorded from each version, so that all tables are walked
whichever Python runs the tests.
"""

from __future__ import annotations

import dis
import json
import sys
from pathlib import Path

import pytest

from compiler_core.capture.dialect import DIALECT
from compiler_core.capture.handlers import HANDLERS
from compiler_core.capture.versions import VERSIONS

RECORDED = {
    tuple(map(int, version.split("."))): set(names.split())
    for version, names in json.loads((Path(__file__).parent / "opcodes.json").read_text()).items()
}


def test_the_recorded_names_are_those_of_this_python():
    assert RECORDED[sys.version_info[:2]] == set(dis.opmap)


@pytest.mark.parametrize("python", RECORDED)
def test_every_opcode_has_a_row_or_a_reason(python):
    version = VERSIONS[python]
    unknown = [op for op in RECORDED[python] if "not known" in (version.reason(op) or "")]
    assert unknown == []


@pytest.mark.parametrize("python", RECORDED)
def test_every_row_is_of_an_opcode_that_exists(python):
    assert set(VERSIONS[python].rows) - RECORDED[python] == set()


@pytest.mark.parametrize("python", RECORDED)
def test_every_row_expands_to_operations_that_the_interpreter_handles(python):
    used = {step.op for row in VERSIONS[python].rows.values() for step in row}
    assert used - set(DIALECT) == set()
    assert used - set(HANDLERS) == set()


def test_an_opcode_that_nobody_knows_is_refused_by_name():
    for version in VERSIONS.values():
        assert "NO_SUCH_OPCODE is not known" in version.reason("NO_SUCH_OPCODE")
