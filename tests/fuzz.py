"""Bad arguments for every public function: each call returns, or says which argument is wrong, and soon."""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from golden import CB16, FLOAT4_E2M1FN, FP32, Reduction, Rounding

#: Of a processor, for a call. Those that are right take milliseconds.
SECONDS = 10.0


def bad_values() -> list[Any]:
    """Return values that are wrong for nearly every argument, made anew."""
    return [
        *(None, True, 0, -1, 2**40, 2**64, 10**400, 1.5, math.nan, math.inf, -math.inf, 1e308, 1j, b"x"),
        *("", "nosuch", "float32", "a\0b", [], (), {}, {1}, [1, "a"], [[1], [1, 2]], [None], range(3)),
        *(int, len, object(), slice(1), Ellipsis, np, FP32, CB16, FLOAT4_E2M1FN, Rounding.STOCHASTIC),
        *(Reduction(FP32, None, FP32), np.float32(2), np.int64(-5), np.array(3)),
        *(np.zeros(0, np.uint16), np.zeros((0, 3), np.uint16), np.zeros((2, 3), np.uint8), np.zeros(3, np.uint32)),
        *(np.full(4, 65535, np.uint16), np.zeros(4, np.int64), np.full((2, 2), np.nan), np.zeros((1,) * 20, np.uint16)),
        *(np.zeros(4, ">u2"), np.zeros(4, np.longdouble), np.zeros(2, complex), np.zeros(2, "M8[s]"), np.array(["a"])),
        *(np.array([None, 1]), np.zeros(3, [("a", "f4")]), np.ma.masked_array([1.0, 2.0], [0, 1])),
    ]


def wrong_arguments(good: Iterable[str], values: Callable[[], list[Any]] = bad_values) -> st.SearchStrategy[Any]:
    """Return a strategy of one or two arguments, each with a bad value."""
    bad = st.sampled_from(range(len(values()))).map(lambda at: values()[at])
    return st.dictionaries(st.sampled_from(list(good)), bad, min_size=1, max_size=2)


def check_call(call: Callable[..., object], good: Mapping[str, object], wrong: Mapping[str, object]) -> None:
    """Call with wrong arguments in place of good ones; an error must name one of them, and none may be written to."""
    given = {**good, **wrong}
    before = {name: _state(value) for name, value in given.items()}
    started, said = time.process_time(), None
    try:
        call(**given)
    except OSError:  # it names the path
        pass
    except (TypeError, ValueError, RuntimeError) as error:
        said = str(error)
    assert time.process_time() - started < SECONDS
    assert {name: _state(value) for name, value in given.items()} == before
    # What is wrong only beside another argument may be told of that one: "lanes: got 4096, must be at most the 32 ...".
    begins = said is None or any(re.match(rf"(\w+, )*{name}\b", said) for name in given)
    assert begins or any(name in said for name in wrong if len(name) > 1), said


def _state(value: object) -> object:
    """Return what a function that writes to its argument changes."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    # PyTorch counts what is written to a tensor.
    return getattr(value, "_version", None) if not isinstance(value, list | dict | set) else repr(value)


def callables_of(module: Any) -> set[str]:
    """Return the public names of a module that can be called."""
    return {name for name in module.__all__ if callable(getattr(module, name)) and not name.startswith("__")}
