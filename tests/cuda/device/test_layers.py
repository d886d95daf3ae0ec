"""Every layer of the catalogue on a card, forward and backward, has the bits of the CPU, or is refused as there.

The CPU computes each exact operator again, and the bits are compared. Between these operators a real card computes
PyTorch's own functions, to its own last bits; on a card in memory the CPU computes them, so whole results are compared,
too.
"""

import pytest
import torch

import golden.torch as cstorch
from tests.cuda.device.card import IN_MEMORY, faulty
from tests.cuda.device.judge import Judge, differing
from tests.zoo.layers import LAYERS, results
from tests.zoo.refusals import REFUSED, refusal

HALVES = ("cbfloat16", "bfloat16", "float16", "cb16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
QUICK = ("cbfloat16", 1)
#: On a card every half type at every level; in memory, where that takes minutes, cbfloat16 alone at every level.
PRECISIONS = [
    pytest.param(half, level, marks=[] if (half, level) == QUICK else [pytest.mark.long])
    for number, half in enumerate(HALVES)
    for level in (0, 1, 2)
    if not IN_MEMORY or half == QUICK[0] or level == number % 3
]


def judged(name, half, level, *, specials):
    """Run a layer on the card; return its judge, and the places where results differ from the CPU's."""
    judge = Judge()
    with judge, cstorch.precision(half, level):
        found = results(LAYERS[name], "cuda", specials=specials)
    assert {each.device.type for each in found} == {"cuda"}
    with cstorch.precision(half, level):
        expected = results(LAYERS[name], "cpu", specials=specials)
    assert [(each.dtype, each.shape) for each in found] == [(each.dtype, each.shape) for each in expected]
    pairs = zip(found, expected, strict=True) if IN_MEMORY else ()
    return judge, [(number, told) for number, pair in enumerate(pairs) if (told := differing(*pair))]


@pytest.mark.parametrize(("half", "level"), PRECISIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_layer_on_a_card_has_the_bits_of_the_cpu(name, half, level):
    for specials in (False, True):
        judge, wrong = judged(name, half, level, specials=specials)
        assert judge.outputs > 0
        assert (judge.wrong, wrong) == ([], [])


@pytest.mark.parametrize("name", LAYERS)
def test_layer_on_a_faulty_card_is_found(name):
    with faulty():
        judge, wrong = judged(name, *QUICK, specials=False)
    assert judge.wrong
    assert wrong or not IN_MEMORY


def test_layers_of_the_catalogue_call_every_operator():
    judge = Judge()
    with judge, cstorch.precision(*QUICK):
        for layer in LAYERS.values():
            results(layer, "cuda")
    called = {f"cbfloat::{name.partition('.')[0]}" for name in judge.calls}
    known = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("cbfloat::")}
    assert called == known


@pytest.mark.parametrize("name", REFUSED)
def test_call_that_the_cpu_refuses_is_refused_on_a_card_in_the_same_words(name):
    on_card, on_cpu = (refusal(name, torch.device(kind)) for kind in ("cuda", "cpu"))
    assert on_card == on_cpu
