"""What the tests of the kernels for cards share."""

import pytest

from tests.cuda.host import HostDevice


@pytest.fixture(scope="session")
def host_device(tmp_path_factory: pytest.TempPathFactory) -> HostDevice:
    """The kernels on this machine; what is built stays for the session."""
    return HostDevice(tmp_path_factory.mktemp("kernels"))
