"""Every layer of the catalogue has exact products alone; every exact or refused function is in the catalogue."""

from __future__ import annotations

import pytest
import torch

import golden.torch as cstorch
from golden.torch.guard import interception
from tests.zoo.judge import watched
from tests.zoo.layers import LAYERS, Layer, results
from tests.zoo.refusals import REFUSED, refusal


@pytest.mark.parametrize("name", LAYERS)
def test_layer_in_precision_has_exact_products_alone(name: str) -> None:
    with cstorch.precision("cbfloat16", 1):
        seen = watched(lambda: results(LAYERS[name], "cpu"))
    assert seen.exact > 0
    assert not seen.unseen


def reached(layers: dict[str, Layer], monkeypatch: pytest.MonkeyPatch) -> set[interception.Function]:
    """Run layers, and return the exact functions that have replaced PyTorch's."""
    seen: set[interception.Function] = set()

    def noting(exact: interception.Function) -> interception.Function:
        def run(*given: object, **named: object) -> object:
            seen.add(exact)
            return exact(*given, **named)

        return run

    for function, exact in list(interception.EXACT.items()):
        monkeypatch.setitem(interception.EXACT, function, noting(exact))
    with cstorch.precision("cbfloat16", 1):
        for layer in layers.values():
            results(layer, "cpu")
    monkeypatch.undo()
    return seen


def test_every_exact_function_is_in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(interception.EXACT.values()) - reached(LAYERS, monkeypatch) == set()


def test_exact_function_that_the_catalogue_forgets_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: layer for name, layer in LAYERS.items() if "addbmm" not in name}
    names = {"addbmm", "addbmm_", "baddbmm", "baddbmm_"}
    forgotten = {interception._EXACT_BY_NAME[name] for name in names}
    assert set(interception.EXACT.values()) - reached(some, monkeypatch) == forgotten


def test_every_refused_function_is_in_the_catalogue() -> None:
    assert set(interception._PRODUCTS_WITHOUT_EXACT_PATH.split()) <= set(REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_call_is_refused(name: str) -> None:
    kind, message = refusal(name, torch.device("cpu"))
    assert kind in (NotImplementedError, TypeError, ValueError)
    assert ": got " in message or "has no exact path" in message
