"""The environment of a call: the caller's floating-point state, threads, forks, environment variables."""

import ctypes
import os
import platform
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, accumulators, dot, encode, kernels, matmul, quantize
from golden.arrays import by_numpy, conversion, other_machines
from golden.formats import HALF_FORMATS
from golden.kernels import library

from ..judges import assert_same_bits
from .operands import COMPILED, codes

FLUSH_TO_ZERO, SUBNORMALS_ARE_ZERO, ROUND_UP, ROUND_TO_ZERO = 0x8000, 0x0040, 0x4000, 0x6000
MASKED = 0x1F80
X86 = platform.machine() in ("x86_64", "AMD64")

# fegetenv and fesetenv of the C library: on x86-64 the last word of fenv_t is MXCSR.
LIBM = ctypes.CDLL("libm.so.6") if X86 and sys.platform == "linux" else None


class ControlWord:
    """MXCSR of this thread, set for a while."""

    def __init__(self, word):
        self.word = word

    @staticmethod
    def read():
        environment = (ctypes.c_uint32 * 8)()
        LIBM.fegetenv(environment)
        return environment[7]

    @staticmethod
    def write(word):
        environment = (ctypes.c_uint32 * 8)()
        LIBM.fegetenv(environment)
        environment[7] = word
        LIBM.fesetenv(environment)

    def __enter__(self):
        self.before = self.read()
        self.write(self.word)

    def __exit__(self, *_):
        self.write(self.before)


@pytest.mark.skipif(LIBM is None, reason="reads the control word of x86-64 through glibc")
@COMPILED
@pytest.mark.parametrize(
    "word",
    [
        MASKED | FLUSH_TO_ZERO | SUBNORMALS_ARE_ZERO,
        MASKED | SUBNORMALS_ARE_ZERO,
        MASKED | FLUSH_TO_ZERO,
        MASKED | ROUND_UP,
        MASKED | ROUND_TO_ZERO,
    ],
    ids=hex,
)
def test_results_do_not_depend_on_the_callers_environment_which_is_restored(path, word):
    rng = np.random.default_rng(120)
    for fmt in HALF_FORMATS:
        a, b = codes("edges", fmt, (6, 40), rng), codes("special", fmt, (40, 20), rng)
        patterns = rng.integers(0, 2**32, 1000, dtype=np.uint32).view(np.float32)
        subnormal = (rng.integers(0, 2**23, 1000, dtype=np.uint32)).view(np.float32)
        for threads in (1, 2):
            with kernels.use(path, threads):
                wanted = [matmul(a, b, operand=fmt, level=level) for level in (0, 1, 2)]
                wanted += [encode(values, fmt) for values in (patterns, subnormal)]
                wanted += [quantize(subnormal, fmt).view(np.uint32)]
                with ControlWord(word):
                    got = [matmul(a, b, operand=fmt, level=level) for level in (0, 1, 2)]
                    got += [encode(values, fmt) for values in (patterns, subnormal)]
                    got += [quantize(subnormal, fmt).view(np.uint32)]
                    assert ControlWord.read() & 0xFFC0 == word  # except for the exception flags
            for each, same in zip(got, wanted, strict=True):
                assert_same_bits(each, same)


@COMPILED
def test_calls_from_several_python_threads_at_once_do_not_meet(path):
    rng = np.random.default_rng(121)
    problems = [(codes("normal", BF16, (70, 90), rng), codes("normal", BF16, (90, 80 + n), rng)) for n in range(6)]
    with kernels.use(path, 2):
        wanted = [matmul(a, b, operand=BF16) for a, b in problems]
        got = [[] for _ in problems]

        def work(index):
            for _ in range(10):
                got[index].append(matmul(*problems[index], operand=BF16))

        workers = [threading.Thread(target=work, args=(index,)) for index in range(len(problems))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    for results, result in zip(got, wanted, strict=True):
        assert len(results) == 10
        for each in results:
            assert_same_bits(each, result)


FORKING = """
import os, sys
import numpy as np
from golden import CBFLOAT16, encode, kernels, matmul

rng = np.random.default_rng(0)
a, b = encode(rng.normal(size=(200, 100)), CBFLOAT16), encode(rng.normal(size=(100, 200)), CBFLOAT16)
with kernels.use(sys.argv[1], 3):
    wanted = matmul(a, b, operand=CBFLOAT16)
    child = os.fork()
    same = (matmul(a, b, operand=CBFLOAT16) == wanted).all()
    if child == 0:
        os._exit(0 if same else 7)
    assert same
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("both agree")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@COMPILED
def test_a_forked_child_has_threads_of_its_own(path):
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, path]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == "both agree\n"


def info_of(**variables):
    code = "import golden; print(golden.kernel_info())"
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("path", kernels.paths())
def test_variables_choose_path_and_threads(path):
    said = info_of(CBFLOAT_KERNELS=path, CBFLOAT_THREADS="3").stdout
    assert said == f"{{'path': {path!r}, 'threads': {1 if path == 'numpy' else 3}}}\n"
    fastest = info_of(CBFLOAT_KERNELS="auto", CBFLOAT_THREADS="").stdout
    assert fastest.startswith(f"{{'path': {kernels.paths()[0]!r}")


@COMPILED
def test_threads_of_openmp_are_used_unless_there_are_own_ones(path):
    for of_openmp, own, wanted in (("1", "", 1), ("3,2", "", 3), ("1", "2", 2)):
        said = info_of(CBFLOAT_KERNELS=path, OMP_NUM_THREADS=of_openmp, CBFLOAT_THREADS=own).stdout
        assert said == f"{{'path': {path!r}, 'threads': {wanted}}}\n"
    of_machine = info_of(OMP_NUM_THREADS="", CBFLOAT_THREADS="").stdout
    assert info_of(OMP_NUM_THREADS="0", CBFLOAT_THREADS="").stdout == of_machine
    assert info_of(OMP_NUM_THREADS="many", CBFLOAT_THREADS="").stdout == of_machine


def test_variables_that_hold_nonsense_raise_naming_them():
    for variables, message in (
        ({"CBFLOAT_KERNELS": "sse"}, "CBFLOAT_KERNELS: got 'sse', must be auto, avx512fp16, avx512, avx2, portable or"),
        ({"CBFLOAT_THREADS": "many"}, "CBFLOAT_THREADS: got 'many', must be a number of threads from 1 to 1024"),
        ({"CBFLOAT_THREADS": "0"}, "CBFLOAT_THREADS: got 0, must be 1 to 1024"),
    ):
        failed = info_of(**variables)
        assert failed.returncode != 0
        assert message in failed.stderr


def test_use_of_what_is_not_there_raises_naming_it():
    def refused(error, message, **arguments):
        with pytest.raises(error, match=message), kernels.use(**arguments):
            raise AssertionError

    refused(ValueError, r"path: got 'sse', must be auto, avx512fp16, avx512, avx2, portable or numpy", path="sse")
    for path in (3, b"auto", ["auto"], np.array(["auto", "numpy"]), np.zeros(2)):
        refused(ValueError, r"path: got .*, must be auto, avx512fp16", path=path)
    refused(ValueError, r"threads: got 0, must be 1 to 1024", threads=0)
    refused(TypeError, r"threads: got 2.0, must be an int of at least 1", threads=2.0)
    for path in set(library.COMPILED_PATHS) - set(kernels.paths()):
        refused(ValueError, f"path: got '{path}', must be one that this machine runs: ", path=path)


def test_use_nests_and_is_undone_even_by_an_error():
    before = golden.kernel_info()
    with kernels.use("numpy"):
        assert golden.kernel_info() == {"path": "numpy", "threads": 1}
        with kernels.use(kernels.paths()[0], 2):
            assert golden.kernel_info()["path"] == kernels.paths()[0]
        assert golden.kernel_info()["path"] == "numpy"
    assert golden.kernel_info() == before
    with pytest.raises(TypeError), kernels.use("numpy"):
        matmul(None, None, operand=CBFLOAT16)
    assert golden.kernel_info() == before


def test_a_long_operation_without_compiled_kernels_says_so_once(monkeypatch):
    a = encode(np.ones((4, 40)), CBFLOAT16)
    monkeypatch.setattr(library, "_warned", False)
    monkeypatch.setattr(library, "_setting", library._Setting("numpy", 1, asked_for=False))
    monkeypatch.setattr(library, "_active", None)
    monkeypatch.setattr(library, "_SLOW_SECONDS", 1e-6)
    with pytest.warns(RuntimeWarning, match=r"golden runs on NumPy, .* Install a C\+\+ compiler and run pip install"):
        matmul(a, a.T, operand=CBFLOAT16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matmul(a, a.T, operand=CBFLOAT16)


ONES = encode(np.ones((40, 40)), BF16)


@pytest.mark.parametrize(
    ("module", "seconds", "operation"),
    [
        (conversion, 100 * conversion._SECONDS_PER_VALUE, lambda: encode(np.ones(100), CBFLOAT16)),
        (conversion, 100 * conversion._SECONDS_PER_VALUE, lambda: quantize(np.ones(100), CBFLOAT16)),
        (by_numpy, 40**3 * by_numpy._SECONDS_PER_STEP, lambda: matmul(ONES, ONES, operand=BF16)),
        (by_numpy, 40**3 * by_numpy._SECONDS_IN_MODE, lambda: matmul(ONES, ONES, operand=BF16, rounding="up")),
        (
            by_numpy,
            40**3 * by_numpy._SECONDS_OF_CHANCE,
            lambda: matmul(ONES, ONES, operand=BF16, rounding="stochastic", seed=1),
        ),
        (
            other_machines,
            40**3 * other_machines._SECONDS_PER_PRODUCT,
            lambda: matmul(ONES, ONES, operand=BF16, reduction=accumulators["nvidia_ampere"]),
        ),
    ],
    ids=["encode", "quantize", "matmul", "matmul in a mode", "matmul of random rounding", "accumulator"],
)
def test_operation_on_numpy_tells_how_long_it_takes(monkeypatch, module, seconds, operation):
    told = []
    monkeypatch.setattr(module, "warn_of_slowness", told.append)
    with kernels.use("numpy"):
        operation()
    assert sum(told) == pytest.approx(seconds)


def test_numpy_that_was_asked_for_or_gives_flags_is_not_complained_about(monkeypatch):
    monkeypatch.setattr(library, "_warned", False)
    monkeypatch.setattr(library, "_SLOW_SECONDS", 0.0)
    with kernels.use("numpy"):
        quantize(np.ones(100), CBFLOAT16)
    for path in kernels.paths()[:-1]:
        monkeypatch.setattr(library, "_setting", library._Setting(path, 1, asked_for=False))
        dot(encode(np.ones(9), CBFLOAT16), encode(np.ones(9), CBFLOAT16), operand=CBFLOAT16, return_flags=True)


def test_the_library_is_not_loaded_by_import():
    code = "import golden, golden.kernels.library as l; print(l._library.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout == "0\n"


@pytest.mark.skipif(len(kernels.paths()) == 1, reason="NumPy holds the interpreter's lock")
def test_other_python_threads_run_during_a_call():
    a = encode(np.ones((250, 250)), CBFLOAT16)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    with kernels.use("portable", 1):
        ticker.start()
        started = time.perf_counter()
        matmul(a, a, operand=CBFLOAT16)
        ended = time.perf_counter()
        stop.set()
        ticker.join()
    assert sum(started < moment < ended for moment in ticks) > 3
