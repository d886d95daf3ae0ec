"""Settings that all tests share."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Timing differs between machines, so no deadline; the blob lets anyone replay a failure that another machine found.
# CBFLOAT_EXAMPLES makes it quicker, for those who run the same tests hundreds of times.
EXAMPLES = int(os.environ.get("CBFLOAT_EXAMPLES", "100"))
settings.register_profile("cbfloat", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("cbfloat")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Set aside what collecting the tests makes, which stays until the end.

    Python's garbage collector would go through it again and again, for a tenth of the time of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50)  # netlists and graphs are many objects that stay: it looks at them less often
        gc.enable()


@pytest.fixture(autouse=True)
def _no_evidence_from_tests(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep findings of the few inputs of a test apart from the tools' evidence about the units."""
    monkeypatch.setattr("tools.evidence.BUILD", tmp_path_factory.getbasetemp() / "evidence")


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_counts() -> None:
    """Let Ctrl-C count: a shell ignores it for background processes, and children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
