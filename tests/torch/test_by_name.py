"""Classes by the names that a run file has: a module's own classes, and no imported ones."""

from types import ModuleType

import pytest
import torch

from golden.torch import optim
from golden.torch.training import divergence, loggers, saving
from golden.torch.training.by_name import find

LISTED, OPEN = ModuleType("listed"), ModuleType("open")
Own = type("Own", (), {"__module__": "open"})
Below = type("Below", (), {"__module__": "open.below"})
Beside = type("Beside", (), {"__module__": "opened"})
LISTED.__all__ = ["Own"]
for module in (LISTED, OPEN):
    vars(module).update(Own=Own, Below=Below, Beside=Beside, _Hidden=Own, number=3)


def test_find_class_that_a_module_lists_or_defines_is_found():
    assert find("Own", [LISTED, OPEN], "here") == [Own]
    assert find("Below", [LISTED, OPEN], "here") == [Below]
    assert find("Adam", [torch.optim, optim], "here") == [torch.optim.Adam, optim.Adam]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("Below", [LISTED]),
        ("Beside", [OPEN]),
        ("_Hidden", [OPEN]),
        ("number", [OPEN]),
        ("Path", [saving]),
        ("Callback", [divergence, saving]),
        ("SummaryWriter", [loggers]),
        ("Any", [optim.lr_scheduler]),
        ("Counter", [torch.optim.lr_scheduler]),
        ("Optimizer", [optim.lr_scheduler, optim.weight_decay_scheduler, torch.optim.lr_scheduler]),
    ],
)
def test_find_class_that_a_module_merely_imports_is_not_found(name, places):
    with pytest.raises(ValueError, match=rf"^here\.{name}: is not a known key"):
        find(name, places, "here")


def test_find_name_that_is_listed_by_no_module_names_the_nearest_that_is():
    with pytest.raises(ValueError, match=r"^here\.StepRL: is not a known key; did you mean StepLR\?"):
        find("StepRL", [torch.optim.lr_scheduler], "here")
