"""Back ends: all give the same bits, one is chosen in one place, and one that is forced serves or says who could."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    CBFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Reduction,
    accumulators,
    dot,
    kernels,
    matmul,
)
from golden.arrays import backends
from golden.arrays.requests import Answer, Request
from golden.arrays.value_products import indexed_values
from golden.kernels.products import Indexed

from .kernels.operands import codes

WHOLE = {
    "level 0": Reduction(operand=CBFLOAT16),
    "level 1": Reduction(CBFLOAT16, 3, FP32, operand=CBFLOAT16, out=FLOAT8_E4M3FN),
    "narrow": Reduction(CBFLOAT16, 3, BF16, operand=FLOAT8_E5M2, out=FP16, out_rounding="up"),
    "random": Reduction(BF16, 2, FP32, CBFLOAT16, FP16, "stochastic", "stochastic", golden.Randomness(11, 2**40, 3)),
    "machine": Reduction(operand=FP16, out=BF16, accumulator=accumulators["nvidia_hopper"]),
}
NAMES = golden.backends()


def operands(reduction, *shapes, seed=1):
    rng = np.random.default_rng(seed)
    return [codes("special", reduction.factors, shape, rng) for shape in shapes]


def numbers(counts):
    return None if counts is None else str(counts)


@pytest.mark.parametrize("name", WHOLE)
def test_backends_give_the_same_codes_values_flags_and_counts(name):
    whole = WHOLE[name]
    a, b = operands(whole, (2, 3, 5), (5, 4))
    start = operands(Reduction(operand=whole.outer), (3, 1))[0]
    x, y = golden.decode(a, whole.factors), golden.decode(b, whole.factors)
    table = np.arange(3)
    tables = Indexed(x.ravel()[:20], np.zeros(2, np.int64), 5 * table, np.arange(5))
    for backend in NAMES:
        options = {"reduction": whole, "backend": backend}
        with kernels.use("numpy"):
            expected = matmul(a, b, reduction=whole, initial=start, backend="numpy")
        assert (matmul(a, b, initial=start, **options) == expected).all(), backend
        values = golden.matmul_values(x, y, initial=golden.decode(start, whole.outer), **options)
        assert (values.view(np.uint32) == golden.decode(expected, whole.result).view(np.uint32)).all(), backend
        dots = [dot(a[0], b.T[:3], reduction=whole, backend=each) for each in (backend, "numpy")]
        assert (dots[0] == dots[1]).all(), backend
        with golden.backend(backend):
            indexed = indexed_values(tables, tables._replace(rows=tables.columns, columns=5 * table), reduction=whole)
        with golden.backend("numpy"):
            wanted = indexed_values(tables, tables._replace(rows=tables.columns, columns=5 * table), reduction=whole)
        assert (indexed.view(np.uint32) == wanted.view(np.uint32)).all(), backend
        if whole.accumulator is None:
            for form in (True, "rows", "sum"):
                some = {"counts": form, "counted_rows": [2, 0], "initial": start}
                found = matmul(a, b, **some, **options)
                assert (found[0] == expected).all()
                assert numbers(found[1]) == numbers(matmul(a, b, **some, reduction=whole, backend="numpy")[1]), backend


def test_backends_with_flags_give_the_same():
    whole = WHOLE["random"]
    a, b = operands(whole, (7, 5), (7, 5))
    results = [dot(a, b, reduction=whole, return_flags=True, counts=True, backend=each) for each in ("numpy", "exact")]
    assert (results[0][0] == results[1][0]).all()
    assert (results[0][1] == results[1][1]).all()
    assert numbers(results[0][2]) == numbers(results[1][2])


@pytest.mark.skipif("kernels" not in NAMES, reason="no compiled library")
def test_kernels_that_are_forced_say_what_they_lack_and_who_serves_it():
    a = np.uint16([[0x3E00]])
    with pytest.raises(ValueError, match="backend: got 'kernels', but the kernels compute no flags; numpy and exact"):
        dot(a, a, operand=CBFLOAT16, return_flags=True, backend="kernels")
    with golden.backend("kernels"), pytest.raises(ValueError, match="no room for so many random bits; numpy and exact"):
        matmul(a, a, operand=CBFLOAT16, rounding="stochastic", random_bits=29)
    signalling = np.uint16([[CBFLOAT16.inf + 1]])
    with pytest.raises(ValueError, match="signalling NaNs"):
        dot(signalling, a, operand=CBFLOAT16, counts=True, backend="kernels")
    assert dot([], [], operand=CBFLOAT16, backend="kernels") == 0
    with kernels.use("numpy"), pytest.raises(ValueError, match="there is no compiled library, or CBFLOAT_KERNELS"):
        matmul(a, a, operand=CBFLOAT16, backend="kernels")
    with kernels.use("numpy"), golden.backend("kernels"):
        assert matmul(a, a, operand=CBFLOAT16).shape == (1, 1)


@pytest.mark.skipif("kernels" not in NAMES, reason="no compiled library")
def test_kernels_have_random_bits_for_two_to_the_32_results():
    a, whole = np.uint16([[0x3E00]]), WHOLE["random"]
    request = Request(whole, a, a, None, (1, 2**16, 2**16))
    assert backends.as_backend("kernels").obstacle(request) is None
    more = request._replace(shape=(1, 2**16, 2**16 + 1))
    assert backends.as_backend("kernels").obstacle(more) == "the kernels have no room for so many random bits"
    nearest = more._replace(reduction=WHOLE["narrow"])
    assert backends.as_backend("kernels").obstacle(nearest) is None


def test_backend_in_force_ends_with_its_block():
    before = golden.kernel_info()
    with golden.backend("exact"):
        assert backends.forced().name == "exact"
        assert golden.kernel_info()["path"] == "numpy"
        with golden.backend("numpy"):
            assert backends.forced().name == "numpy"
        assert backends.forced().name == "exact"
    assert backends.forced() is None
    assert golden.kernel_info() == before


class Engine:
    """A back end from outside, such as a board: products of cbfloat16 at level 1 without initial values."""

    name = "engine"

    def __init__(self):
        self.calls = 0

    def obstacle(self, request: Request) -> str | None:
        return "the engine has no initial values" if request.initial is not None else None

    def compute(self, request: Request) -> Answer:
        self.calls += 1
        assert request.as_values is False
        return Answer(golden.matmul(request.a, request.b, reduction=request.reduction, backend="exact"))


def test_backend_from_outside_serves_by_argument_and_in_a_block():
    engine, a = Engine(), operands(WHOLE["level 1"], (4, 4))[0]
    wanted = matmul(a, a, reduction=WHOLE["level 1"])
    assert (matmul(a, a, reduction=WHOLE["level 1"], backend=engine) == wanted).all()
    with golden.backend(engine):
        assert (matmul(a, a, reduction=WHOLE["level 1"]) == wanted).all()
    assert engine.calls == 2
    with pytest.raises(ValueError, match="backend: got 'engine', but the engine has no initial values; "):
        matmul(a, a, reduction=WHOLE["level 1"], initial=0, backend=engine)


def a_class():
    return Engine


def no_backend():
    return {}


@pytest.mark.parametrize(("brought", "is_one"), [("Engine", True), ("a_class", False), ("no_backend", False)])
def test_backend_of_an_entry_point_serves_by_its_name_if_it_is_one(monkeypatch, brought, is_one):
    entry = metadata.EntryPoint("brought", f"{__name__}:{brought}", "cbfloat.backends")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry])
    monkeypatch.setattr(backends, "_loaded", {})
    a, whole = operands(WHOLE["level 1"], (4, 4))[0], WHOLE["level 1"]
    if is_one:
        assert (matmul(a, a, reduction=whole, backend="brought") == matmul(a, a, reduction=whole)).all()
        assert isinstance(backends._loaded["brought"], Engine)
    else:
        with pytest.raises(TypeError, match=r"backend: got 'brought', but the entry point .* must have name, obstacle"):
            matmul(a, a, reduction=whole, backend="brought")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("kernel", ValueError, "backend: got 'kernel', must be one of .*numpy, exact"),
        (3, TypeError, "backend: got 3, must be one of .*or an object with name, obstacle and compute"),
        (Engine, TypeError, "backend: got <class"),
    ],
)
def test_backend_that_is_none_raises_saying_which_there_are(given, error, message):
    with pytest.raises(error, match=message):
        matmul([[0]], [[0]], operand=CBFLOAT16, backend=given)


def test_variable_forces_a_backend_and_a_wrong_name_is_an_error():
    code = (
        "import golden; from golden.arrays import backends; golden.dot([0], [0], operand='cbfloat16'); "
        "print(backends.forced().name, golden.kernel_info()['path'])"
    )

    def run(name):
        environment = {**os.environ, "CBFLOAT_BACKEND": name}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    assert run("exact").stdout.split() == ["exact", "numpy"]
    assert "CBFLOAT_BACKEND: got 'exacter', must be one of" in run("exacter").stderr


def test_one_function_chooses_among_backends(monkeypatch):
    """Each public product asks `serve`, which asks the kernels before NumPy."""
    asked = []

    class Refusing(Engine):
        name = "kernels"

        def obstacle(self, request: Request) -> str | None:
            asked.append(request.is_dot)
            return "today not"

    monkeypatch.setattr(backends, "_kernels", Refusing())
    a = np.uint16([[0x3E00]])
    for call in (dot, matmul):
        call(a, a, operand=CBFLOAT16)
    golden.matmul_values(np.ones((1, 1), np.float32), np.ones((1, 1), np.float32), operand=CBFLOAT16)
    assert asked == [True, False, False]
