"""The library as Python declares it, its errors, and the threads that it may use; without a process."""

import os
import re
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from golden import BF16, Reduction, accumulators, encode, kernel_info, kernels, matmul, matmul_values
from golden.arrays.value_products import indexed_values
from golden.kernels import accumulators as accumulator_calls
from golden.kernels import library, products, windows
from golden.kernels.products import Indexed, call_of

ONES = encode(np.ones((2, 3, 3)), BF16)
HEADER = (library._FOLDER / "source" / "kernels.h").read_text()
#: Parameters of each function, as the header has them.
PARAMETERS = {
    name: len(parameters.split(",")) for name, parameters in re.findall(r"API \w+ (cbfloat_\w+)\(([^)]+)\);", HEADER)
}


def test_every_path_has_the_number_of_the_c_interface():
    (paths,) = re.findall(r"enum cbfloat_path \{(.*?)\};", HEADER, re.DOTALL)
    numbers = {name.lower(): int(number) for name, number in re.findall(r"CBFLOAT_(\w+) = (\d+)", paths)}
    assert {path: library._path_number(path) for path in library.COMPILED_PATHS} == numbers


def library_of(version=library._VERSION, without=(), names_found=library.NAMES):
    """A library that answers with its version and names, and has all functions but some."""
    names = [name for name in PARAMETERS if name not in without]
    functions = {name: SimpleNamespace() for name in names} | {"cbfloat_kernels_version": lambda: version}
    if "cbfloat_names" not in without:
        functions["cbfloat_names"] = Mock(return_value=names_found.encode())
    return SimpleNamespace(_name="native.so", **functions)


@pytest.fixture
def without_memory(monkeypatch):
    class Failing:
        def __getattr__(self, name):
            return lambda *_: 1

    served = library.Active(Failing(), 0, 1)
    for module in (products, accumulator_calls, windows):
        monkeypatch.setattr(module, "active", lambda: served)


def test_every_function_of_a_call_is_declared_with_the_parameters_of_the_header():
    declared = library.declared(library_of())
    called = set(PARAMETERS) - {"cbfloat_kernels_version", "cbfloat_path_available"}
    assert len(called) == 12
    for name in called:
        assert len(getattr(declared, name).argtypes) == PARAMETERS[name], name


@pytest.mark.parametrize("given", [{"version": 1}, {"without": ("cbfloat_names",)}])
def test_library_of_another_build_is_refused_with_what_to_do(given):
    version = given.get("version", library._VERSION)
    wanted = (
        f"native.so: got version {version}, must be {library._VERSION} with cbfloat_names; "
        "build it again with pip install -e ."
    )
    with pytest.raises(ImportError, match=re.escape(wanted)):
        library.declared(library_of(**given))


def test_library_with_other_modes_or_events_is_refused():
    for names in (library.NAMES.replace("down up", "up down"), library.NAMES + "cancelled "):
        with pytest.raises(ImportError, match=re.escape(f"got modes and events {names!r}, must be {library.NAMES!r}")):
            library.declared(library_of(names_found=names))


@pytest.mark.parametrize("options", [{}, {"counts": "sum"}, {"reduction": accumulators["nvidia_hopper"]}], ids=str)
def test_product_without_memory_raises_naming_the_shapes(without_memory, options):
    with pytest.raises(MemoryError, match=r"no memory for the product of shapes \(2, 3, 3\) and \(2, 3, 3\)"):
        matmul(ONES, ONES, operand=BF16, **options)


@pytest.mark.parametrize("call", [windows.slide, windows.overlap, windows.correlate])
def test_windows_without_memory_raise_naming_them(without_memory, call):
    given = (ONES, ONES, None) if call is windows.slide else (ONES, ONES)
    place = windows.Windows((2,), (1,), (1,), (0,))
    with pytest.raises(MemoryError, match=r"no memory for windows of \(2,\) over planes of shape \(2, 3, 3\)"):
        call(*given, np.empty((2, 3, 2), np.float32), place, (BF16, BF16))


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_indexed_product_without_memory_raises_naming_its_size(without_memory, rounding):
    table = np.arange(3)
    operand = Indexed(np.ones(9, np.float32), np.zeros(2, np.int64), table, table)
    with pytest.raises(MemoryError, match="no memory for 2 products of 3 by 3 results"):
        indexed_values(operand, operand, operand=BF16, rounding=rounding)


@pytest.mark.skipif(len(kernels.paths()) == 1, reason="the library is what answers")
def test_indexed_product_is_the_librarys():
    table, result = np.arange(3), np.zeros((2, 3, 3), np.uint16)
    operand = Indexed(ONES.ravel(), np.zeros(2, np.int64), table, table)
    call = call_of(replace(Reduction.for_level(1, BF16), operand=BF16, out=BF16))
    assert products.matmul_indexed(operand, operand, None, result, call)
    assert (result == 0x4040).all()  # 3


@pytest.mark.parametrize("initial", [np.float32(0.5), np.float32([0.5, 1, 2]), np.full((2, 2, 3), 0.25, np.float32)])
@pytest.mark.parametrize("path", kernels.paths())
def test_one_matrix_for_a_batch_takes_initial_values_of_every_shape(path, initial):
    rows, columns = np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), np.float32([[1, 0, 2], [0, 1, 1]])
    with kernels.use(path):
        got = matmul_values(rows, columns, operand=BF16, level=0, initial=initial)
    assert got.tolist() == (rows @ columns + initial).tolist()


def test_path_that_is_left_to_the_library_is_the_fastest():
    with kernels.use("numpy"), kernels.use("auto", 3):
        assert kernel_info() == {"path": kernels.paths()[0], "threads": 3 if len(kernels.paths()) > 1 else 1}


def test_processors_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {1, 4, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert library._processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert library._processors() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert library._processors() == 1


@pytest.mark.parametrize("given", ["many", "-1", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_threads_of_the_environment_that_are_no_number_are_refused(monkeypatch, given):
    monkeypatch.setenv("CBFLOAT_THREADS", given)
    with pytest.raises(ValueError, match=f"CBFLOAT_THREADS: got '{given}', must be a number of threads from 1 to 1024"):
        library._threads_of_environment()


def test_threads_of_the_environment_are_taken_or_those_of_the_machine(monkeypatch):
    monkeypatch.setenv("CBFLOAT_THREADS", "1024")
    assert library._threads_of_environment() == 1024
    monkeypatch.setenv("CBFLOAT_THREADS", "1025")
    with pytest.raises(ValueError, match="CBFLOAT_THREADS: got 1025, must be 1 to 1024"):
        library._threads_of_environment()
    monkeypatch.delenv("CBFLOAT_THREADS")
    monkeypatch.setattr(library, "_processors", lambda: 3000)
    assert library._threads_of_environment() == 1024
