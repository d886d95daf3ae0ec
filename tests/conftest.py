"""Settings that all tests share."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tools.share import Share

# Timing differs between machines, so no deadline; the blob lets anyone replay a failure that another machine found.
# CBFLOAT_EXAMPLES makes it quicker, for those who run the same tests hundreds of times.
EXAMPLES = int(os.environ.get("CBFLOAT_EXAMPLES", "100"))
settings.register_profile("cbfloat", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("cbfloat")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run take a share of the tests that take turns."""
    about = "the K-th of N shares of the tests that take turns, which together are all of them (default: all)"
    parser.addoption("--share", type=Share.parse, default=Share(), metavar="K/N", help=about)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose turn it is not."""
    in_turn = [item for item in items if item.get_closest_marker("turns")]
    waiting = set(in_turn) - set(config.getoption("share").of(in_turn))
    config.hook.pytest_deselected(items=[item for item in items if item in waiting])
    items[:] = [item for item in items if item not in waiting]


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
