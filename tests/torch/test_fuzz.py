"""Every public function of `golden.torch` with bad arguments."""

import copy
import warnings
from contextlib import chdir

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import golden.torch as cstorch

from ..fuzz import bad_values, callables_of, check_call, wrong_arguments

X, IMAGE = torch.ones(2, 3), torch.ones(1, 2, 5, 5)
HEADS, BLOCKS = torch.ones(1, 2, 4, 8), torch.ones(2, 32)
MODEL = nn.Linear(3, 2)
CONVOLVED = {"x": IMAGE, "weight": torch.ones(2, 2, 3, 3), "bias": None, "stride": 1, "padding": 0, "groups": 1}
SCALED = {"min_loss_scale": 1.0, "max_loss_scale": 4.0, "max_gradient_norm": 1.0, "steps_per_increase": 3}
GOOD = {
    "CSConfig": {"precision_opt_level": 1},
    "MixedPrecision": {"fp16_type": "cbfloat16", "loss_scaling_factor": "dynamic", "initial_loss_scale": 2.0, **SCALED},
    "Trainer": {"model": MODEL, "precision": None},
    "add_debug_name": {"module": MODEL, "root_name": "a"},
    "advise": {"model": MODEL, "batches": [(X, X[:, :2])], "loss": nn.MSELoss(), "budget": 0.01, "levels": (0,)},
    "amp.GradScaler": {"loss_scale": "dynamic", "init_scale": 2.0, "overflow_tolerance": 0.0, **SCALED},
    "audit": {"target": lambda: None, "backward": False, "show": False},
    "backend": {"backend_type": "CPU"},
    "bmm": {"x": torch.ones(1, 2, 3), "y": torch.ones(1, 3, 2)},
    "checkpoint_closure": {"closure": print},
    "compile": {"model": MODEL, "backend": None, "levels": None},
    "compile_step": {"step_fn": print},
    "conv1d": {**CONVOLVED, "x": torch.ones(1, 2, 5), "weight": torch.ones(2, 2, 3)},
    "conv2d": {**CONVOLVED, "dilation": 1},
    "conv3d": {**CONVOLVED, "x": torch.ones(1, 2, 5, 5, 5), "weight": torch.ones(2, 2, 3, 3, 3)},
    "conv_transpose1d": {**CONVOLVED, "x": torch.ones(1, 2, 5), "weight": torch.ones(2, 2, 3)},
    "conv_transpose2d": {**CONVOLVED, "dilation": 1, "output_padding": 0},
    "conv_transpose3d": {**CONVOLVED, "x": torch.ones(1, 2, 5, 5, 5), "weight": torch.ones(2, 2, 3, 3, 3)},
    "device": {"backend_type": "CPU"},
    "enable_mixed_precision": {"enable": True},
    "from_numpy": {"array": np.ones(3)},
    "full": {"shape": (2,), "value": 1.0, "dtype": None},
    "full_like": {"other": X, "value": 1.0, "dtype": None},
    "get_debug_name": {"module": MODEL},
    "get_floating_point_dtype": {"default": torch.float32},
    "get_floating_point_dtype_str": {"default": "float32"},
    "grouped_mm": {
        "mat_a": torch.ones(1, 2, 3),
        "mat_b": torch.ones(1, 3, 2),
        "offs": None,
        "bias": None,
        "out_dtype": None,
    },
    "is_cbfloat16_tensor": {"tensor": X},
    "linear": {"x": X, "weight": X, "bias": torch.ones(2)},
    "load": {"ckpt_path": "state.pt"},
    "make_constant": {"tensor": X},
    "matmul": {"x": X, "y": X.T},
    "mx.fake_quantize": {"x": BLOCKS, "element": "float8_e4m3fn", "axis": -1, "block": 32},
    "mx.linear": {"x": BLOCKS, "weight": BLOCKS, "bias": None, "element": "float8_e4m3fn", "block": 32},
    "observe": {"model": MODEL, "every": 20, "rows": 16, "tensorboard": False},
    "ones": {"shape": (2,), "dtype": None},
    "ones_like": {"other": X, "dtype": None},
    "pol": {"level": 1, "fwd_level": None, "bwd_level": None, "enable_fwd": True, "enable_bwd": True, "levels": None},
    "precision": {"half": "cbfloat16", "level": 1, "chunk": 32, "proxy": None, "inner": None, "unseen": "error"},
    "save": {"state_dict": {"a": X}, "ckpt_path": "state.pt"},
    "save_summaries": {"writer": None, "step": 1},
    "scaled_dot_product_attention": {
        **{"query": HEADS, "key": HEADS, "value": HEADS, "attn_mask": None, "dropout_p": 0.0},
        **{"is_causal": False, "scale": None, "enable_gqa": False},
    },
    "set_debug_scope": {"name": None},
    "set_half_dtype": {"value": "cbfloat16", "proxy": None, "inner": None},
    "set_model_level": {"level": 1},
    "step_closure": {"closure": print},
    "summarize_scalar": {"name": "a", "value": 1.0},
    "summarize_tensor": {"name": "a", "value": X},
    "tensor": {"data": [1.0]},
    "to_numpy": {"tensor": X},
    "trace": {"step_fn": print},
    "zeros": {"shape": (2,), "dtype": None},
    "zeros_like": {"other": X, "dtype": None},
}
#: Records that functions return, functions without arguments, aliases, `precision_from_yaml`, which names places in a
#: file, and `einsum`, which has no names to give; what is declared of an operator stays for the tests that follow.
LEFT_OUT = {
    *("Advice", "Audit", "Levels", "RunStopped", "CsConfig", "declare_operator", "einsum", "name_scope"),
    *("current_backend", "current_executor", "current_pol", "current_torch_device", "get_half_dtype", "use_cs"),
    *("get_half_dtype_str", "mixed_precision", "precision_from_yaml"),
}
#: Arguments that are called: what goes wrong there is the caller's own.
CALLED, GIVEN_TO_THEM = {"model", "target"}, {"batches", "loss"}


def bad_and_tensors():
    return [
        *bad_values(),
        *(torch.ones(2, 3), torch.ones(()), torch.zeros(0, 3), torch.full((3, 3), torch.nan), torch.ones((1,) * 7)),
        *(torch.ones(2, 3, dtype=dtype) for dtype in (torch.int64, torch.bool, torch.complex64, torch.float64)),
        *(torch.ones(2, 3, device="meta"), torch.eye(3).to_sparse(), torch.float16, torch.int32, torch.device("cpu")),
    ]


def test_bad_arguments_are_tried_on_every_public_function():
    assert callables_of(cstorch) == {name for name in GOOD if "." not in name} | LEFT_OUT
    assert {f"mx.{name}" for name in callables_of(cstorch.mx)} <= set(GOOD)


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_function_with_a_bad_argument_names_it(name, data, tmp_path_factory):
    call = cstorch
    for part in name.split("."):
        call = getattr(call, part)
    wrong = data.draw(wrong_arguments(GOOD[name], bad_and_tensors))
    if GIVEN_TO_THEM & set(wrong) or any(callable(wrong.get(argument)) for argument in CALLED):
        return
    cstorch.backend("CPU")
    with chdir(tmp_path_factory.getbasetemp()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is odd, but goes on
        check_call(call, copy.copy(GOOD[name]), wrong)
