"""What the lab runs on a card, in small."""

import torch

from golden.torch.examples.python_gpt import Sizes
from golden.torch.gpu import devices
from lab.gpu import speed, whole
from tests.cuda.device.test_training import IN_MEMORY


def test_whole_comparison_of_a_right_card_finds_nothing(monkeypatch):
    monkeypatch.setattr(whole, "SHAPES", ((7, 33, 12),))
    monkeypatch.setattr(whole, "MODES", ("nearest_even",) if IN_MEMORY else whole.MODES)
    found = whole.compare(1500, visible=False)
    assert found.wrong == []
    assert found.outputs >= 1500


def test_whole_comparison_of_a_faulty_card_names_the_product(monkeypatch):
    card = devices.device_of(torch.device("cuda", 0))
    launch = card.launch

    def faulty(kernel, grid, block, shared_bytes, arguments):
        if len(arguments) > 400:  # a product: its destination has one fraction bit less
            fields = whole_fields(arguments)
            fields.destination.fraction_bits -= 1
            arguments = bytes(fields)
        launch(kernel, grid, block, shared_bytes, arguments)

    monkeypatch.setattr(card, "launch", faulty)
    monkeypatch.setattr(whole, "SHAPES", ((7, 33, 12),))
    found = whole.compare(10**6, visible=False)
    assert len(found.wrong) == 10
    assert "half='cbfloat16', level=0" in found.wrong[0]
    assert "and must be 0x" in found.wrong[0]


def whole_fields(arguments):
    from golden.cuda.structures import Product

    assert len(arguments) == len(bytes(Product()))
    return Product.from_buffer_copy(arguments)


def test_speeds_are_those_of_runs_that_end(monkeypatch):
    monkeypatch.setattr(torch.cuda, "synchronize", getattr(torch.cuda, "synchronize", None) if not IN_MEMORY else int)
    assert set(speed.products(8, 1)) == {"cuBLAS, fp32", *speed.CHAINS}
    assert all(seconds > 0 for seconds in speed.rounding(64, 3).values())
    sizes = Sizes(layers=1, width=8, heads=2, context=4, batch=1)
    assert set(speed.training(sizes, 10, 1)) == {"fp32", "cbfloat16, level 1"}
