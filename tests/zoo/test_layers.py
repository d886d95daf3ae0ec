"""Every layer of the catalogue has exact products alone; what is exact or refused is in the catalogue."""

from __future__ import annotations

import pytest
import torch

import golden.torch as cstorch
from golden.torch.guarding import interception
from tests.zoo.judge import watched
from tests.zoo.layers import LAYERS, Layer, results
from tests.zoo.refusals import REFUSED, refusal


@pytest.mark.parametrize("name", LAYERS)
def test_layer_in_precision_has_exact_products_alone(name: str) -> None:
    with cstorch.precision("cbfloat16", 1):
        seen = watched(lambda: results(LAYERS[name], "cpu"))
    assert seen.exact > 0
    assert not seen.unseen


def reached(layers: dict[str, Layer], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Run layers, and return the names of the exact functions that PyTorch was asked for."""
    seen: set[str] = set()

    def noting(name: str, function: interception.Function) -> interception.Function:
        def run(*given: object, **named: object) -> object:
            seen.add(name)
            return function(*given, **named)

        return run

    names = {function: name for name in interception._EXACT_BY_NAME for function in interception._functions(name)}
    for function, exact in list(interception.EXACT.items()):
        name = names.get(function) or function.__name__  # einsum and tensordot are in the table by themselves
        monkeypatch.setitem(interception.EXACT, function, noting(name, exact))
    with cstorch.precision("cbfloat16", 1):
        for layer in layers.values():
            results(layer, "cpu")
    return seen


EVERY = {*interception._EXACT_BY_NAME, "einsum", "tensordot"}


def test_every_exact_function_is_in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reached(LAYERS, monkeypatch) == EVERY


def test_exact_function_that_the_catalogue_forgets_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: layer for name, layer in LAYERS.items() if name in ("linear", "LSTM")}
    assert reached(some, monkeypatch) == {"linear", "lstm"}


def test_every_refused_function_is_in_the_catalogue() -> None:
    assert set(interception._PRODUCTS_WITHOUT_EXACT_PATH.split()) <= set(REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_call_is_refused(name: str) -> None:
    kind, message = refusal(name, torch.device("cpu"))
    assert kind in (NotImplementedError, TypeError, ValueError)
    assert ": got " in message or "has no exact path" in message
