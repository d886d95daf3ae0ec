"""Results of the kernels for cards: registers, spills, instructions, and the table of the GPT-2 example."""

from fractions import Fraction

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden import Rounding
from golden.cuda.compiling import Resources
from golden.cuda.scales import Steps
from golden.torch.examples.python_gpt import Outcome
from golden.torch.observing import NAME
from lab.gpu import example, kernels
from lab.gpu.example import Losses, losses, table
from lab.gpu.kernels import COUNTED, count, disassembler, in_listing
from tools import results

LISTING = """
.text.probe:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   FFMA.RM R16, R17, R24, R25 ;
        /*0020*/                   LOP3.LUT P1, RZ, R16, 0x1, RZ, 0xc0, !PT ;
        /*0030*/              @!P1 FFMA.RP R16, R17.reuse, R24, R25 ;
                              @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
                                   EXIT ;
.L_1:
                                   BRA `(.L_1);
                                   NOP;
"""
SCALED = Steps(Rounding.NEAREST_EVEN, "scaled", "single")
TAKEN = {
    (None, 75): {"pack": Resources(32, 0, 0, 17536)},
    (SCALED, 75): {"multiply_128": Resources(185, 0, 0, 32768), "multiply_64": Resources(80, 36, 8, 16384)},
    (SCALED, 90): {"multiply_128": Resources(168, 0, 0, 32768), "multiply_64": Resources(80, 0, 0, 16384)},
}


def test_instructions_of_a_listing_are_counted_with_and_without_predicates():
    assert in_listing(LISTING) == {"MOV": 1, "FFMA": 2, "LOP3": 1, "UIADD3": 1}


def test_table_of_resources_has_spilled_bytes_in_brackets_and_gaps_where_nothing_was_compiled():
    table = kernels.resources(TAKEN)
    assert table.columns == ("variant", "kernels", "bytes shared", "sm_75", "sm_90")
    assert list(table.rows) == [
        ("`common`", "`pack`", "17536", "32", ""),
        (
            "`nearest_even-scaled-single`",
            "`multiply_128`, `multiply_64`",
            "32768 · 16384",
            "185 · 80 (36)",
            "168 · 80",
        ),
    ]


def test_conclusion_names_the_kernels_that_spill():
    assert kernels.conclusion(TAKEN) == (
        "5 kernels in 3 cubins; 1 of them keep registers in memory: multiply_64 of nearest_even-scaled-single for "
        "sm_75 (36 bytes)."
    )
    assert kernels.conclusion({(None, 75): TAKEN[None, 75]}).endswith("none of them keep registers in memory.")


def test_table_of_instructions_has_their_sum_and_the_names_on_the_last_architecture():
    counts = {
        75: {step: {"FFMA": Fraction(2)} for step in COUNTED},
        90: {step: {"LOP3": Fraction(3, 2)} for step in COUNTED},
    }
    table = kernels.instructions(counts)
    assert table.rows[0] == ("nearest_even", "single", "Plain", "2", "3/2", "3/2 LOP3")


def test_scaled_step_takes_seven_instructions():
    tool = disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on the path or with Triton")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'cbfloat[cuda]'")
    assert sum(count("nearest_even", "scaled", "Plain", 80, tool).values()) == 7


def test_command_line_without_a_process_says_so(capsys):
    with pytest.raises(SystemExit):
        kernels.main(["--processes", "0"])
    assert "--processes: got 0, must be at least 1" in capsys.readouterr().err


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


def test_example_on_a_card_says_what_is_missing_where_there_is_none(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(example.card.torch.cuda, "is_available", lambda: False)
    assert example.main(["--card", "--folder", str(tmp_path / "runs")]) == 0
    assert "the example: skipped, for this machine lacks" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


def test_example_on_a_card_keeps_its_table_with_the_steps(monkeypatch, tmp_path):
    outcome = Outcome(bits=4.5, unseen=4.75, scale=2.0**31, skipped=1, seconds=60.0)
    made = []
    monkeypatch.setattr(example.card, "skipped", lambda what: False)
    monkeypatch.setattr(example, "compare", lambda *given: made.append(given) or {"cbfloat16 level 1": outcome})
    monkeypatch.setattr(example, "losses", lambda file: Losses(0.01, 0.02, 0.03))
    given = ["--card", "--steps", "80", "--observe", "40", "--folder", str(tmp_path / "runs"), "--into", str(tmp_path)]
    assert example.main(given) == 0
    ((_, _, sizes, device, _),) = made
    assert (sizes.layers, sizes.steps, sizes.observe, device) == (12, 80, 40, "GPU")
    kept = results.read("python-gpt-card", tmp_path)
    assert kept.data["seconds"] == {"cbfloat16 level 1": 60.0}
    assert "80 steps of each run." in kept.note
    assert "4.7500" in kept.markdown()


def test_example_on_the_processor_takes_steps_and_intervals_too(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(example, "compare", lambda *given: made.append(given) or {})
    assert example.main(["--steps", "80", "--folder", str(tmp_path / "runs")]) == 0
    ((_, _, sizes, device, _),) = made
    assert (sizes.layers, sizes.steps, sizes.observe, device) == (2, 80, 40, "CPU")


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (["--into", "results"], "--into: only a card's result has a folder of its own; add --card"),
        (["--card", "--update-docs"], "--update-docs: a card's result is kept at once; leave"),
    ],
)
def test_example_refuses_what_it_would_ignore(given, refused, tmp_path, capsys):
    with pytest.raises(SystemExit):
        example.main([*given, "--folder", str(tmp_path / "runs")])
    assert refused in capsys.readouterr().err
