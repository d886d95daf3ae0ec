"""The kernels under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, driven through the C interface.

`driver.cpp` calls every path with arrays of exactly their size, odd strides and several threads. Each sanitizer is
shown to see a fault of its kind.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.mutants.table import Edit, seen_by

from ...shared import shared_folder
from .build import HEADER, SOURCE, UNITS, compiled, compiler, objects_in, precompiled

DRIVER = Path(__file__).with_name("driver.cpp")
MEMORY = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
#: The files in which threads meet; the others give a sanitizer of threads nothing to find.
SHARED = ("arrays.cpp", "pool.cpp", "portable.cpp", "product.cpp", "windows.cpp")
OPTIMISATION = ("-O0",)
#: The faults, each with the sanitizer's message.
FAULTS = seen_by(__file__)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(platform.system() != "Linux", reason="the sanitizers of GCC on Linux"),
]


class Sanitized:
    """The driver built with a sanitizer; a change compiles the changed unit again, and nothing else.

    All processes share what `compile_all` has filled; units without the sanitizer come from `plain`.
    """

    def __init__(self, shared, folder, flags, units, plain):
        self.folder, self.flags, self.header = folder, flags, shared / HEADER
        self.objects = plain | objects_in(shared, [*units, DRIVER.name])

    @staticmethod
    def compile_all(folder, flags, units):
        """Fill a folder with the objects of units and of the driver, and with the header that makes others quick."""
        options = [*OPTIMISATION, *flags]
        header = precompiled(folder, options)
        compiled(SOURCE, units, folder, options, header)
        compiled(DRIVER.parent, [DRIVER.name], folder, [*options, "-I", str(SOURCE)], header)

    def run(self, part, unit=None, *changes):
        """Return exit status and output of the driver, with changes of one unit."""
        objects = dict(self.objects)
        if unit is not None:
            changed = self.folder / f"changed{len(list(self.folder.iterdir()))}"
            shutil.copytree(SOURCE, changed / "source")
            for change in changes:
                change.apply(changed / "source")
            objects |= compiled(changed / "source", [unit], changed, [*OPTIMISATION, *self.flags], self.header)
        program = self.folder / "program"
        link = [compiler(), *self.flags, "-pthread", "-o", str(program), *map(str, objects.values())]
        subprocess.run(link, check=True, timeout=300)
        # GCC 12's ThreadSanitizer knows no more than 28 random bits of an address; a container may forbid to have none.
        fixed = ["setarch", "-R"]
        is_allowed = shutil.which("setarch") and subprocess.run([*fixed, "true"], capture_output=True).returncode == 0
        alone = fixed if self.flags == THREADS and is_allowed else []
        # The first race ends the program: what goes on after it may never end.
        told = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}
        done = subprocess.run([*alone, str(program), *part], capture_output=True, text=True, timeout=300, env=told)
        return done.returncode, done.stdout + done.stderr


def sanitized(tmp_path_factory, name, flags, units, plain):
    shared = shared_folder(tmp_path_factory, name, lambda folder: Sanitized.compile_all(folder, flags, units))
    return Sanitized(shared, tmp_path_factory.mktemp(name), flags, units, plain)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    return sanitized(tmp_path_factory, "memory_sanitizers", MEMORY, UNITS, {})


@pytest.fixture(scope="module")
def threads(tmp_path_factory, builder):
    return sanitized(tmp_path_factory, "thread_sanitizer", THREADS, SHARED, builder.plain)


def test_kernels_under_address_and_undefined_behaviour_sanitizers_are_clean(memory):
    assert memory.run(["products", "arrays", "threads"]) == (0, "done\n")


@pytest.mark.parametrize(
    ("name", "unit"), [("read_past_the_operand", "product.cpp"), ("shift_past_the_sign", "portable.cpp")]
)
def test_memory_sanitizers_see_a_fault(memory, name, unit):
    status, text = memory.run(["products"], unit, FAULTS[name])
    assert status != 0
    assert FAULTS[name].by in text


# A helper looks for work only when no call is running, and begins only when one is, for which that call has time. A
# helper that comes in when no call is running ends the program: whether ThreadSanitizer still remembers the memory of
# the call that is over depends on luck.
LATE = (
    Edit(
        "pool.cpp",
        "class Pool {",
        """std::atomic<int> running{0};

void wait_until(bool one_is) {
    for (int i = 0; i < 500 && (running > 0) != one_is; i++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

class Pool {""",
    ),
    Edit(
        "pool.cpp", "#include <atomic>", "#include <atomic>\n#include <chrono>\n#include <cstdio>\n#include <cstdlib>"
    ),
    Edit(
        "pool.cpp",
        "            wake_.wait(lock, [this] { return places_ > 0; });",
        "lock.unlock(); wait_until(false); lock.lock(); wake_.wait(lock, [this] { return places_ > 0; });"
        'if (running == 0) { std::puts("a helper came in when no call was running"); std::exit(7); }',
    ),
    Edit("pool.cpp", "lock.unlock();\n            take_pieces", "lock.unlock(); wait_until(true); take_pieces"),
    Edit("pool.cpp", "places_ = helpers;", "places_ = helpers; running++;"),
    Edit(
        "pool.cpp",
        "        wake_.notify_all();",
        "wake_.notify_all(); std::this_thread::sleep_for(std::chrono::milliseconds(250));",
    ),
    Edit(
        "pool.cpp",
        "        done_.wait(lock, [this] { return inside_ == 0; });",
        "done_.wait(lock, [this] { return inside_ == 0; }); running--;",
    ),
)


def test_kernels_under_thread_sanitizer_are_clean_however_late_helpers_are(threads):
    assert threads.run(["threads"]) == (0, "done\n")
    assert threads.run(["late"], "pool.cpp", *LATE) == (0, "done\n")


@pytest.mark.parametrize(
    ("name", "part", "scaffold"),
    [
        ("helper_that_enters_after_the_call", "late", LATE),
        ("count_that_two_threads_change", "threads", ()),
        ("two_callers_in_one_pool", "threads", ()),
    ],
)
def test_faulty_pool_of_threads_is_seen(threads, name, part, scaffold):
    status, text = threads.run([part], "pool.cpp", *scaffold, FAULTS[name])
    assert status != 0
    assert FAULTS[name].by in text
