"""Bad input, everywhere: each public function is called with one bad argument after the other.

Whatever comes of it is an error of ours that names an argument, or nothing where the argument is good after all. The
functions are found by introspection, so that a new one is tried, too.
"""

import contextlib
import io
import math
import resource
import signal
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from golden import CB16, FLOAT4_E2M1FN, FP32, Reduction, Rounding
from golden.torch.cerebras import backends
from golden.torch.settings import half, levels

from .surface import Surface, fault_of, methods, state_of, surface

BAD = [
    None, True, 0, -1, 3, 2**63, -(2**70), 1.5, float("inf"), float("nan"), 1j, ..., int, object(), lambda: 1,
    "", "no such thing", "\0", b"x", Path("/nonexistent/x"), range(3), {1}, {}, {"a": 1}, (1,), [], [1, 2], ["a"],
    [[1], [1, 2]], np.zeros(2), np.zeros((2, 3), complex), np.array(["a"]), np.array([object()]), np.uint16([1, 2]),
    np.zeros((0, 2), np.uint16), np.zeros((2, 2), bool), torch.zeros(2, dtype=torch.int64),
    torch.zeros(2, 2, dtype=torch.complex64), torch.zeros(2, 2, device="meta"), torch.eye(2).to_sparse(), torch.float64,
    nn.Identity(), 2**40, 10**400, -math.inf, 1e308, "a\0b", "float32", [None], [1, "a"], len, slice(1), np, FP32, CB16,
    FLOAT4_E2M1FN, Rounding.STOCHASTIC, Reduction(FP32, None, FP32), np.float32(2), np.int64(-5), np.array(3),
    np.zeros((2, 3), np.uint8), np.zeros(3, np.uint32), np.full(4, 65535, np.uint16), np.zeros(4, np.int64),
    np.full((2, 2), np.nan), np.zeros((1,) * 20, np.uint16), np.zeros(4, ">u2"), np.zeros(4, np.longdouble),
    np.zeros(2, "M8[s]"), np.array([None, 1]), np.zeros(3, [("a", "f4")]), np.ma.masked_array([1.0, 2.0], [0, 1]),
    torch.ones(2, 3), torch.ones(()), torch.zeros(0, 3), torch.full((3, 3), torch.nan), torch.ones((1,) * 7),
    torch.ones(2, 3, dtype=torch.float64), torch.float16, torch.device("cpu"),
]  # fmt: skip
OURS = (
    *surface("golden", "golden.reference", "golden.mx", "golden.loss_scaling", "golden.kernels", "hdl"),
    *methods(),
)
LAYER = tuple(
    surface(
        *("golden.torch", "golden.torch.amp", "golden.torch.backend", "golden.torch.mx", "golden.torch.optim"),
        *("golden.torch.optim.lr_scheduler", "golden.torch.utils", "golden.torch.utils.data", "golden.torch.metrics"),
    )
)
#: These hand their arguments to PyTorch's functions of the same names, whose errors name them.
OF_PYTORCH = {
    *(f"golden.torch.{name}" for name in ("full", "ones", "zeros", "full_like", "ones_like", "zeros_like", "tensor")),
    *(f"golden.torch.{name}" for name in ("from_numpy", "to_numpy", "audit")),
}
#: The names that a message may have instead of an argument: keys of its document, and arguments made from it.
KEYS = {
    "golden.torch.advise": ("fp16_type", "chunk"),
    "golden.torch.precision_from_yaml": ("trainer.init",),
    "golden.torch.optim.configure_lr_scheduler": ("scheduler",),
    "golden.torch.optim.configure_scheduler_params": ("scheduler",),
}
#: Arguments that are called, and their operands: an error in there is the caller's.
CALLED = {
    "golden.torch.Trainer": ("model", "optimizer", "schedulers"),
    "golden.torch.advise": ("model", "batches", "loss"),
}
PATIENCE = 20  # seconds


@pytest.fixture(autouse=True)
def defaults_of_the_process(monkeypatch):
    # Some functions report a missing backend before they check their arguments.
    monkeypatch.setattr(backends._Process, "backend", backends.Backend(backends.BackendType.CPU))
    monkeypatch.setattr(half._Process, "half", half.half_named("float16"))
    monkeypatch.setattr(half._Process, "mixed_precision", False)
    monkeypatch.setattr(levels._Process, "level", 1)


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Leave the process 4 GiB more than it has: a legal stride may ask for results of any size."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def outcome(one: Surface, arguments: dict[str, object], wrong: Iterable[str] = ()) -> str:
    """Call it and return the fault of its error, a file that it left behind, or nothing."""

    def too_slow(*_: object) -> None:
        raise KeyboardInterrupt(f"{one}: no answer in {PATIENCE} s")

    files, given = set(Path().iterdir()), {name: state_of(value) for name, value in arguments.items()}
    before = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(PATIENCE)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), little_memory():
            warnings.simplefilter("ignore")
            result = one.call(**arguments)
            if hasattr(result, "__enter__"):
                with result:
                    pass
    except BaseException as error:
        if left := set(Path().iterdir()) - files:
            return f"left behind: {left}"
        names = (*one.parameters, one.name, *KEYS.get(str(one), ()))
        return fault_of(error, names, wrong=wrong, of_pytorch=str(one) in OF_PYTORCH)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    written = [name for name, value in arguments.items() if state_of(value) != given[name]]
    return f"written to: {written}" if written else ""


def arguments_with(one: Surface, parameter: str, bad: object) -> dict[str, object]:
    """Good arguments except for one; a required parameter without a known good argument is bad, too."""
    return {**dict.fromkeys(one.required, bad), **one.good(), parameter: bad}


@pytest.mark.parametrize("one", [*OURS, *LAYER], ids=str)
def test_public_function_given_one_bad_argument_raises_an_error_that_names_it(one, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    wrong = [
        f"{parameter}={bad!r:.60}: {fault}"
        for parameter in one.parameters
        for bad in BAD
        if not (parameter in CALLED.get(str(one), ()) and (callable(bad) or parameter == "batches"))
        and (fault := outcome(one, arguments_with(one, parameter, bad), [parameter]))
    ]
    assert not wrong, "\n".join(wrong)


@settings(max_examples=300)
@given(one=st.sampled_from([*OURS, *LAYER]), data=st.data())
def test_public_function_given_any_arguments_raises_an_error_that_names_one(one, data, tmp_path_factory):
    values = st.one_of(st.sampled_from(BAD), st.integers(), st.floats(), st.text(), st.lists(st.integers(), max_size=3))
    tried = [name for name in one.parameters if name not in CALLED.get(str(one), ())]
    chosen = data.draw(st.dictionaries(st.sampled_from(tried), values, max_size=3))
    arguments = {name: arguments_with(one, name, None)[name] for name in one.required} | one.good() | chosen
    with contextlib.chdir(tmp_path_factory.getbasetemp()):
        assert outcome(one, arguments, chosen) == ""


def no_index(number):
    return [][number]


def no_message(number):
    raise ValueError("must be better")


def no_check(number):
    return int("x" * number)


@pytest.mark.parametrize(
    ("call", "fault"),
    [(no_index, "IndexError at"), (no_message, "no argument is named"), (no_check, "raised by Python")],
)
def test_errors_that_are_not_ours_or_name_nothing_are_told(call, fault):
    assert outcome(Surface("tests", "call", call, ("number",), ("number",)), {"number": 3}).startswith(fault)
