"""The tests of `tests.cuda.device` on a card in memory, without a real one: its kernels are built for this machine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.cuda import memory_card
from tests.cuda.device.ranks import train_on_two_ranks
from tests.shared import shared_folder
from tests.torch.processes import run_on_two_ranks
from tests.zoo.layers import LAYERS as LAYERS_OF_THE_ZOO
from tests.zoo.refusals import REFUSED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def card(tmp_path_factory):
    name = "card.so"
    return shared_folder(tmp_path_factory, "memory_card", lambda folder: memory_card.build(folder / name)) / name


def on_the_card(card, folder, *arguments, code=None):
    """Run the tests, or code, in a process that has the card."""
    command = ["-m", "tests.cuda.memory_card", str(card), str(folder), *arguments] if code is None else ["-c", code]
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    surroundings |= {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=1500
    )


without_a_card = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card: tests/cuda/device runs on it")
LAYERS, MODELS = "test_layers.py", "test_models.py"


def assert_passes(done, least):
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= least


@pytest.mark.turns
@without_a_card
def test_memory_card_runs_every_layer_as_the_cpu_and_refuses_what_it_refuses(card, host_kernels):
    least = 2 * len(LAYERS_OF_THE_ZOO) + len(REFUSED)
    assert_passes(on_the_card(card, host_kernels, "-k", LAYERS, "-m", "not long"), least)


@pytest.mark.long
@without_a_card
def test_memory_card_runs_every_layer_in_every_half_type_and_at_every_level(card, host_kernels):
    assert_passes(on_the_card(card, host_kernels, "-k", LAYERS, "-m", "long"), 8 * len(LAYERS_OF_THE_ZOO))


@pytest.mark.long
@without_a_card
def test_memory_card_runs_every_model_of_the_zoo(card, host_kernels):
    from tests.zoo.catalogue import MODELS as MODELS_OF_THE_ZOO  # imports the libraries

    assert_passes(on_the_card(card, host_kernels, "-k", MODELS), 4 * len(MODELS_OF_THE_ZOO))


@pytest.mark.long
@without_a_card
def test_memory_card_passes_every_other_test_of_a_card(card, host_kernels):
    assert_passes(on_the_card(card, host_kernels, "-k", f"not {LAYERS} and not {MODELS}"), 100)


IN_THE_CARD = """
import sys
from pathlib import Path
from tests.cuda import memory_card
memory_card.insert(Path({card!r}))
import torch
import golden.torch as cstorch
from golden.torch.products.gpu import devices
from tests.cuda.host import HostDevice
devices.cards[0] = HostDevice(Path({folder!r}))
"""


@pytest.mark.long
def test_memory_card_refuses_two_devices_and_counts_what_waits(card, host_kernels):
    code = IN_THE_CARD.format(card=str(card), folder=str(host_kernels)) + (
        "x = torch.ones(2, 2, device='cuda')\n"
        "try:\n    x + torch.ones(2, 2)\n"
        "except RuntimeError as error:\n    assert 'same device' in str(error)\n"
        "else:\n    raise AssertionError('two devices are one')\n"
        "before = torch.ops.card.waits()\n"
        "x.sum().item(), x.cpu(), x[x > 0]\n"
        "assert torch.ops.card.waits() - before == 3, torch.ops.card.waits() - before\n"
        "try:\n    x.numpy()\n"
        "except TypeError:\n    pass\n"
        "else:\n    raise AssertionError('the memory of a card is read')\n"
    )
    done = on_the_card(card, host_kernels, code=code)
    assert done.returncode == 0, done.stderr


#: Numbers of few bits, that no step changes: sums of their products are exact in fp32, in any order.
OBSERVED = """
import copy, json

from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))
for each in model.parameters():
    each.data = (each.data * 64).round() / 64
x = torch.randint(-8, 9, (3, 2, 4, 4)) / 8

def run(device):
    mine, waits = copy.deepcopy(model).to(device), []
    optimizer, scaler = torch.optim.SGD(mine.parameters(), 0.0), cstorch.amp.GradScaler(8.0)
    with cstorch.observe(mine, every=2) as report, cstorch.precision("cbfloat16", level=2):
        for _ in range(3):
            optimizer.zero_grad()
            loss = mine(x.to(device)).float().sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            before = torch.ops.card.waits()
            scaler.update()
            waits.append(torch.ops.card.waits() - before)
    return [json.dumps(row.model_dump(exclude={"started"})) for row in report.rows], waits

(here, none), (there, waits) = run("cpu"), run("cuda")
assert none == [0, 0, 0]
assert waits == [1, 0, 1], waits
for mine, its in zip(here, there, strict=True):
    assert its == mine, (its, mine)
assert len(there) > 12
"""


@pytest.mark.turns
def test_observation_on_a_card_writes_what_it_writes_on_the_cpu_and_waits_once_a_step(card, host_kernels):
    code = IN_THE_CARD.format(card=str(card), folder=str(host_kernels)) + OBSERVED
    done = on_the_card(card, host_kernels, code=code)
    assert done.returncode == 0, done.stderr


def test_two_ranks_have_the_weights_of_one_process():
    run_on_two_ranks(train_on_two_ranks, "cpu")
