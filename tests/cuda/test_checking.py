"""The checks of a card at first use: right kernels pass, and a fault is reported with its operands."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import golden
from golden.reduction import Reduction
from golden.torch.products.gpu import checking, checking_counts, devices
from golden.torch.products.gpu.elementwise import exponentials
from lab.mutants.table import seen_by
from tests.cuda.host import HostDevice

CPU = torch.device("cpu")
CBFLOAT16 = Reduction(golden.CBFLOAT16, 32, golden.FP32, operand=golden.CBFLOAT16, out=golden.CBFLOAT16)
HOPPER = Reduction(operand=golden.FLOAT8_E4M3FN, accumulator=golden.accumulators["nvidia_hopper_fp8"])


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(checking, "_ROWS", 48)


def test_checks_pass_on_right_kernels_and_run_once(host_device):
    checking.check_product(host_device, CPU, CBFLOAT16)
    for mode in golden.Rounding:
        checking.check_arrays(host_device, CPU, golden.CBFLOAT16, mode=mode)
    checking.check_arrays(host_device, CPU, golden.CBFLOAT16, softmax=exponentials(golden.CBFLOAT16))
    checking.check_product(host_device, CPU, HOPPER)
    for block in (5, 32, 100):
        checking.check_blocks(host_device, CPU, golden.FLOAT8_E4M3FN, block)

    card, runs = SimpleNamespace(checked=set()), []
    for _ in range(2):
        checking.once(card, "product", lambda: runs.append(1))
    assert runs == [1]
    with pytest.raises(ZeroDivisionError):
        checking.once(card, "other", lambda: 1 / 0)
    assert card.checked == {"product"}


def test_what_waits_for_the_card_is_refused_while_a_graph_is_captured_and_had_before(monkeypatch):
    card, early, late = SimpleNamespace(checked=set()), ("of test_checking", 1), ("of test_checking", 2)
    ready = devices.constant(CPU, early, lambda: np.zeros(3))
    checking.once(card, "early", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert devices.constant(CPU, early, lambda: 1 / 0) is ready
    checking.once(card, "early", lambda: 1 / 0)
    asked = " while a CUDA graph is captured, must be before; run the step once before the capture, with the same "
    with pytest.raises(RuntimeError, match="^device: a table would be copied to the card" + asked):
        devices.constant(CPU, late, lambda: np.zeros(3))
    with pytest.raises(RuntimeError, match="^device: the card would be compared with the CPU" + asked):
        checking.once(card, "late", lambda: None)
    assert card.checked == {"early"}


@pytest.fixture(params=[torch.float64, torch.bfloat16], ids=str)
def other_default(request):
    """Another default dtype of PyTorch for new tensors: many programs set one while they load a model."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield
    torch.set_default_dtype(usual)


def test_checks_pass_whatever_dtype_pytorch_makes_tensors_of(host_device, other_default, monkeypatch):
    monkeypatch.setattr(checking_counts, "_ROWS", 48)
    checking.check_product(host_device, CPU, CBFLOAT16)
    checking.check_arrays(host_device, CPU, golden.CBFLOAT16)
    checking.check_product(host_device, CPU, HOPPER)
    checking.check_blocks(host_device, CPU, golden.FLOAT8_E4M3FN, 32)
    checking_counts.check_counts(host_device, CPU, CBFLOAT16)


CHECKS = {
    "product": lambda card: checking.check_product(card, CPU, CBFLOAT16),
    "arrays": lambda card: checking.check_arrays(card, CPU, golden.CBFLOAT16),
    "stochastic": lambda card: checking.check_arrays(card, CPU, golden.CBFLOAT16, mode=golden.Rounding.STOCHASTIC),
    "accumulation": lambda card: checking.check_product(card, CPU, HOPPER),
    "blocks": lambda card: checking.check_blocks(card, CPU, golden.FLOAT8_E4M3FN, 32),
    "softmax": lambda card: checking.check_arrays(card, CPU, golden.CBFLOAT16, softmax=exponentials(golden.CBFLOAT16)),
}


@pytest.mark.turns
@pytest.mark.parametrize("fault", seen_by(__file__).values(), ids=lambda fault: fault.name)
def test_check_names_operands_and_codes_of_a_wrong_output(tmp_path, host_device, fault):
    card = HostDevice(tmp_path, fault, plain=host_device)
    with pytest.raises(RuntimeError, match=r"^device: cpu, a host, computes other bits than the CPU: ") as error:
        CHECKS[fault.by](card)
    assert re.search(r"gives 0x[0-9a-f]{8} and must give 0x[0-9a-f]{8} for .*[0-9a-f]{8}", str(error.value))
