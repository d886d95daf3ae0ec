"""Fixtures that the tests of the regression share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.run.simulate import Job
from tools.yosys import loaded_yosys


@pytest.fixture(autouse=True, scope="package")
def _one_yosys() -> Iterator[None]:
    """Load Yosys once for all Verilog that these tests make."""
    with loaded_yosys():
        yield


@pytest.fixture
def small_job(tmp_path: Path) -> Job:
    """A unit that is simulated in about a second."""
    return Job(
        "float16_to_float32_stages_3", seed=1, folder=tmp_path / "run", effort=0.05, scenarios="stream_idle_none*"
    )
