"""Fixtures of the tests of the kernels for cards."""

from pathlib import Path

import pytest

from tests.cuda.host import HostDevice
from tests.shared import shared_folder


@pytest.fixture(scope="session")
def host_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the kernels for this machine, which all processes fill."""
    return shared_folder(tmp_path_factory, "host_kernels", lambda folder: None)


@pytest.fixture(scope="session")
def host_device(host_kernels: Path) -> HostDevice:
    """The kernels on this machine; the build stays for the session."""
    return HostDevice(host_kernels)
