"""Fixtures that the tests of the regression share."""

from pathlib import Path

import pytest

from sim.run.simulate import Job
from tests.shared import one_yosys

__all__ = ["one_yosys", "small_job"]


@pytest.fixture
def small_job(tmp_path: Path) -> Job:
    """A unit that is simulated in about a second."""
    return Job(
        "float16_to_float32_stages_3", seed=1, folder=tmp_path / "run", effort=0.05, scenarios="stream_idle_none*"
    )
