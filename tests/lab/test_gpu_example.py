"""The table of the GPT-2 example: what the sums of each precision lost."""

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.examples.python_gpt import Outcome
from golden.torch.observing import NAME
from lab.gpu import example
from lab.gpu.example import Losses, losses, table


def test_losses_of_a_run_are_shares_of_its_counted_steps(tmp_path):
    # In each of three sums of 4 + 4 * 2^-12, the last four products change nothing: 12 addends are lost.
    model = nn.Linear(8, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([1.0] * 4 + [2.0**-12] * 4))
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), cstorch.amp.GradScaler(1.0)
    with cstorch.observe(model, every=1, folder=tmp_path) as report, cstorch.precision("cbfloat16", level=2):
        scaler.scale(model(torch.ones(3, 8)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    forward, backward = report.rows
    steps = sum(each.steps for row in (forward, backward) for each in (row.products, row.promotions))
    found = losses(tmp_path / NAME)
    assert (forward.products.swamped, found.swamped, found.underflow) == (12, 12 / steps, 0)
    # The gradient is exact; the mean is half of the forward distance.
    assert found.distance == pytest.approx(2.0**-10 / (4 + 2.0**-10) / 2)


def test_table_has_a_row_for_each_run():
    outcomes = {"float16 level 1": Outcome(3.08671, 3.26, 2.0**15, 2, 9.0)}
    found = table(outcomes, {"float16 level 1": Losses(0.0128, 0.00978, 0.000577)})
    assert found.rows == [("float16 level 1", "3.0867", "3.2600", "2^15", "2", "1.28 %", "0.98 %", "0.06 %")]
    assert len(found.columns) == len(found.rows[0])


def test_folder_that_exists_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        example.main(["--folder", str(tmp_path)])
    assert f"--folder: {tmp_path} exists" in capsys.readouterr().err
