"""Two ranks are started again if they do not connect, and only then."""

import pytest
import torch.multiprocessing as mp

from . import processes


def raising(message, times):
    """Return a `start_processes` that fails `times` times, and the list of its calls."""
    calls = []

    def start_processes(*given, **named):
        calls.append(given)
        if len(calls) <= times:
            raise mp.ProcessRaisedException(f"Traceback\n{message}", 1, 2)

    return start_processes, calls


@pytest.mark.parametrize(
    ("message", "times", "attempts"),
    [
        ("RuntimeError: Gloo connectFullMesh failed with [...] Connection closed by peer", 2, 3),
        ("RuntimeError: Gloo connectFullMesh failed with [...] Connection closed by peer", 9, 3),
        ("AssertionError: the ranks differ", 1, 1),
    ],
)
def test_ranks_that_do_not_connect_are_started_again_and_an_error_of_theirs_is_raised(
    monkeypatch, message, times, attempts
):
    start_processes, calls = raising(message, times)
    monkeypatch.setattr(mp, "start_processes", start_processes)
    if times < attempts:
        processes.run_on_two_ranks(print)
    else:
        with pytest.raises(mp.ProcessRaisedException, match=message.split(":")[0]):
            processes.run_on_two_ranks(print)
    assert len(calls) == attempts
