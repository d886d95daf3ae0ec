"""Settings that the tests of the laboratory share."""

from collections.abc import Iterator

import pytest

from tools.yosys import loaded_yosys


@pytest.fixture(autouse=True, scope="package")
def _one_yosys() -> Iterator[None]:
    """Load Yosys once for all Verilog that these tests make."""
    with loaded_yosys():
        yield
