import pytest

from golden import Rounding

from ...shared import shared_folder
from .build import Steps, build, built


@pytest.fixture(scope="session")
def steps(tmp_path_factory):
    """The steps of each mode."""

    def make(folder):
        for mode in Rounding:
            build(folder / str(mode), mode)

    folder = shared_folder(tmp_path_factory, "steps", make)
    return {mode: Steps(built(folder / str(mode))) for mode in Rounding}
