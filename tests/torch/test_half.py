"""The half type: names, dtypes, proxies, and what tells a cbfloat16 tensor."""

import base64
import pickle

import pytest
import torch

import golden.torch as cstorch
from golden.torch.settings.half_type import HalfType, half_named

from .oracle import normal


@pytest.mark.parametrize(
    ("value", "dtype", "name"),
    [
        ("float16", torch.float16, "float16"),
        (torch.float16, torch.float16, "float16"),
        ("bfloat16", torch.bfloat16, "bfloat16"),
        (torch.bfloat16, torch.bfloat16, "bfloat16"),
        ("cbfloat16", torch.float32, "cbfloat16"),
    ],
)
def test_set_half_dtype_returns_the_dtype_to_use(value, dtype, name):
    assert cstorch.set_half_dtype(value) == dtype
    assert cstorch.get_half_dtype() == dtype
    assert cstorch.get_half_dtype_str() == name


def test_half_dtype_is_float16_at_first_and_mixed_precision_off():
    assert cstorch.get_half_dtype_str() == "float16"
    assert not cstorch.mixed_precision()
    assert cstorch.get_floating_point_dtype() == torch.float32
    assert cstorch.get_floating_point_dtype_str() == "float32"


def test_set_half_dtype_asks_for_mixed_precision_and_turns_nothing_on():
    cstorch.set_half_dtype("cbfloat16", proxy=torch.float16)
    assert not cstorch.mixed_precision()
    assert cstorch.get_floating_point_dtype() == torch.float16
    assert cstorch.get_floating_point_dtype_str() == "cbfloat16"
    with cstorch.precision():
        assert cstorch.mixed_precision()
    assert not cstorch.enable_mixed_precision(False)
    assert cstorch.get_floating_point_dtype() == torch.float32
    assert cstorch.enable_mixed_precision()


def in_a_context(x):
    with cstorch.precision(level=0):
        return x @ x


def on_csx(x):
    cstorch.backend("CSX")
    return cstorch.compile(torch.nn.Linear(2, 2))(x)


@pytest.mark.parametrize(
    "way",
    [
        in_a_context,
        on_csx,
        lambda x: cstorch.amp.initialize(torch.nn.Linear(2, 2))(x),
        lambda x: cstorch.matmul(x, x),
    ],
)
def test_half_type_that_nobody_chose_is_said_once_when_products_run(caplog, way):
    with cstorch.precision(enabled=False), cstorch.precision("bfloat16"):
        torch.eye(2) @ torch.eye(2)
    cstorch.amp.initialize(torch.nn.Linear(2, 2), enabled=False)(torch.eye(2))
    assert caplog.messages == []
    for _ in range(2):
        way(torch.eye(2))
    (said,) = caplog.messages
    assert said.startswith("half type: none was chosen, so products run in float16; cstorch.amp.set_half_dtype(")


def test_half_type_that_was_chosen_runs_without_a_word(caplog):
    cstorch.set_half_dtype("float16")
    for way in (in_a_context, on_csx):
        way(torch.eye(2))
    assert caplog.messages == []


def test_set_half_dtype_is_what_products_outside_a_context_use():
    cstorch.set_half_dtype("cbfloat16")
    assert cstorch.matmul(torch.tensor([[1e9]]), torch.ones(1, 1)).item() == 954 * 2.0**20  # finite, nine fraction bits


def test_precision_sets_the_half_type_of_its_block():
    cstorch.set_half_dtype("bfloat16")
    with cstorch.precision("cbfloat16"):
        assert cstorch.get_half_dtype_str() == "cbfloat16"
        assert cstorch.mixed_precision()
        with cstorch.precision(enabled=False):
            assert cstorch.get_half_dtype_str() == "cbfloat16"
            assert not cstorch.mixed_precision()
    assert cstorch.get_half_dtype_str() == "bfloat16"


def test_is_cbfloat16_tensor_of_the_lossless_proxy_looks_at_the_values():
    x = normal(4, 5)
    cstorch.set_half_dtype("cbfloat16")
    assert not cstorch.is_cbfloat16_tensor(x)
    assert cstorch.is_cbfloat16_tensor(cstorch.matmul(x, x.T))
    assert cstorch.is_cbfloat16_tensor(torch.tensor([1.0, -0.0, torch.inf, torch.nan, 2.0**-39]))
    assert not cstorch.is_cbfloat16_tensor(torch.tensor([1.0, 2.0**-40]))
    assert cstorch.is_cbfloat16_tensor(torch.tensor(2.0))
    assert cstorch.is_cbfloat16_tensor(torch.empty(0))
    assert not cstorch.is_cbfloat16_tensor(torch.ones(2).bfloat16())
    cstorch.set_half_dtype("bfloat16")
    assert not cstorch.is_cbfloat16_tensor(torch.ones(2))


def test_is_cbfloat16_tensor_of_the_float16_proxy_looks_at_the_dtype():
    cstorch.set_half_dtype("cbfloat16", proxy=torch.float16)
    assert cstorch.is_cbfloat16_tensor(torch.ones(2).half())
    assert not cstorch.is_cbfloat16_tensor(torch.ones(2))
    cstorch.set_half_dtype("float16")
    assert not cstorch.is_cbfloat16_tensor(torch.ones(2).half())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("fp8",), ValueError, r"^value: got 'fp8', must be 'float16', 'bfloat16', 'cbfloat16'"),
        ((torch.float32,), ValueError, r"^value: got torch.float32, must be"),
        ((16,), TypeError, r"^value: got 16, must be a name or a torch dtype"),
        ((None,), TypeError, r"^value: got None"),
        (("cbfloat16", torch.bfloat16), ValueError, r"^proxy: got torch.bfloat16, must be torch.float32 \(lossless\)"),
        (("bfloat16", torch.float32), ValueError, r"^proxy: got torch.float32 for bfloat16, .* must be None"),
    ],
)
def test_set_half_dtype_of_a_bad_type_names_it_and_changes_nothing(arguments, error, message):
    with pytest.raises(error, match=message):
        cstorch.set_half_dtype(*arguments)
    assert cstorch.get_half_dtype_str() == "float16"
    assert not cstorch.mixed_precision()


def test_enable_mixed_precision_takes_a_bool_only():
    with pytest.raises(TypeError, match=r"^enable: got 1, must be True or False"):
        cstorch.enable_mixed_precision(1)


def test_half_named_passes_a_half_type_through():
    half = half_named("cbfloat16", torch.float16)
    assert half_named(half) is half
    assert not half.is_lossless_proxy


def test_half_type_of_an_older_pickle_is_found():
    # Models pickled before half types had their own module name it so.
    assert pickle.loads(b"cgolden.torch.settings.half\nHalfType\n.") is HalfType


#: ``half_named("float8_e4m3fn", inner="bfloat16")``, rounded stochastically with seed 7, in an older pickle.
OLDER = (
    r"fCQBr0ssI20001tA7^iDWMytHbZ>HFXfAVQbaZKMXLBxSVQgk!ba`-Pl#B>SVQgkpd2nTvlawielzo&aj0R?Ja&2LBl#C8%Z){{`"
    r"ZZ2kTa&2LBbCiq=Mr?0kbVhG-ZDDkjlawielzo&aj0A3BZDo{<2x4YzZ((#XHk6DFWq5FJZe?zCUt(!=bCgR6j16XTVPkY@Z*E^="
    r"X>@axO9zYuVrgM>luLh%2y<{{V`*V*bCiq(X=P<)l#B{(VR&C=X>MtBWt2^Se|2Jv1!Q!2aAlN?1$1w6V`!9&2x4YzZ((#XHk6Z;"
    r"j0kdXb#7#7ZfBH?4`**|WMytHa&L8RWNB_^l#CHlWn^_@bZKvHQg3x`WNB_^l#`Sxfs}oeC}<aG7>o!~Z*^{DX>Mnflaxyag_Kg1"
    r"j0|sebYF6Bb#7#7ZfBHe9!mg)lv0$81aoC&WRyz>j09t0Y;2TE0E`QAVQyq^ZC_$(baRwT5OrdV2XAm?a$#;{lxPSkfs}oeC}<0e"
    r"4Q6a_VRSfOWi)LwW^R;d4NC-Q4od@Q4@(DV5R3w5Zj_7(b7^O8Uu|J?Ym`fXXc9|)bz+PQVPj);ZFOv6bZ>H$PK*d*VPk7|VRB@Y"
    r"PK*R}Wq5Ryj5uOuY;R$7F*YDPAZBcDVRSfOWi)LwW^Owmb98TGXkl}7X=5O6Wnpq<b97&2c4clLHy|(|F*cNSVlD"
)


def test_half_type_of_an_older_pickle_with_modes_is_read():
    half = pickle.loads(base64.b85decode(OLDER))
    assert half == half_named("float8_e4m3fn", inner="bfloat16")
    assert (half.factors, half.text) == ("float8_e4m3fn", "bfloat16")
    assert vars(pickle.loads(pickle.dumps(half))) == vars(half)
