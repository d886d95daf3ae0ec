"""NVIDIA's own bindings, between our launches and a driver of paper: calls arrive there as they were meant."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.kernels.build import compiler
from tests.shared import shared_folder

SOURCE = Path(__file__).parent / "driver" / "driver.cpp"
ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="libcuda.so.1 is the driver of Linux"),
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed"),
]


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    def build(folder):
        command = [
            compiler(),
            "-std=c++17",
            "-shared",
            "-fPIC",
            str(SOURCE),
            "-o",
            str(folder / "libcuda.so.1"),
            "-ldl",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    return shared_folder(tmp_path_factory, "paper_driver", build)


def told(driver, code):
    """Run code in a process that has this driver; return the lines that it and the driver print."""
    surroundings = {**os.environ, "LD_LIBRARY_PATH": str(driver)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_card_of_paper_is_found_by_name_and_capability(driver):
    lines = told(driver, "import golden.cuda as cuda; print(cuda.available(), *cuda.info()[1:3])")
    assert lines == ["True 12.9 (Card(name='a card of paper', capability=(9, 0), architecture=90),)"]


LAUNCHES = """
import contextlib, threading
from golden.cuda import launching

class Runtime:
    def on(self, index): return contextlib.nullcontext()
    def stream(self, index): return 0xBEE0
    def is_capturing(self): return False

launching.cubin = lambda variant, architecture: b"of sm_%d" % architecture
card = launching.CudaDevice(0, "a card", (9, 0), 132, Runtime())

def launch():
    for blocks in (7, 8):
        card.launch(card.kernel(None, "pack"), blocks, 256, 16, bytes((1, 2, 3, 4, 5)))

launch()
other = threading.Thread(target=launch)
other.start()
other.join()
"""


def test_launches_arrive_at_the_driver_as_they_were_meant_in_every_thread(driver):
    launches = [f"launch 1 ({blocks} 1 1) (256 1 1) 16 0xbee0 0x4030201 (nil)" for blocks in (7, 8)]
    assert told(driver, LAUNCHES) == ["retain", "load of sm_9", "function pack 1", *launches, "retain", *launches]


def test_launch_without_a_context_is_refused_by_this_driver_too(driver):
    without = LAUNCHES.replace("def launch():", "card._have_context = lambda: None\ndef launch():", 1)
    told_so = without.replace(
        "\nlaunch()\n", "\ntry:\n    launch()\nexcept RuntimeError as e:\n    print(e)\nraise SystemExit\n"
    )
    (line,) = told(driver, told_so)
    assert line == "device: cuModuleLoadData failed on cuda:0, a card: invalid device context"
