"""Small names of the original, and the table that says what happens to each of its statements."""

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.utils.tensorboard import SummaryWriter

ROOT = Path(__file__).parents[2]
TABLES = (ROOT / "docs" / "cerebras-statements.md").read_text(encoding="utf-8")
ROWS = [line for line in TABLES.splitlines() if line.startswith("| ") and not line.startswith("| in the documents")]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def functions_in(path):
    """Return the names of the test functions in a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_table_names_tests_that_exist():
    assert len(ROWS) > 60
    for row in ROWS:
        cells = row.strip("| ").split(" | ")
        assert len(cells) == 3, row
        named = NAMED.findall(cells[2])
        assert named, row
        assert NAMED.sub("", cells[2]).strip(", ") == "", row
        for path, name in named:
            assert name.startswith("test_"), row
            assert name in functions_in(path), f"{path} has no {name}"


def test_table_that_names_a_missing_test_is_noticed():
    with pytest.raises(AssertionError):
        assert "test_that_is_not_there" in functions_in("torch/test_cerebras_names.py")


def test_training_guide_leads_to_the_table():
    assert "(cerebras.md)" in (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert "(cerebras-statements.md)" in (ROOT / "docs" / "cerebras.md").read_text(encoding="utf-8")


def test_init_turns_mixed_precision_on():
    seen = []
    step = cstorch.trace(lambda: seen.append((cstorch.mixed_precision(), cstorch.get_half_dtype_str())))
    cstorch.amp.init(enabled=False)
    step()
    cstorch.amp.init()
    step()
    assert seen == [(False, "float16"), (True, "float16")]
    with pytest.raises(TypeError, match=r"^enabled: got 1, must be True or False"):
        cstorch.amp.init(1)


def test_autocast_takes_the_half_type_under_either_name():
    for context in (cstorch.amp.autocast("bfloat16"), cstorch.amp.autocast(dtype=torch.bfloat16, level=2)):
        with context:
            assert cstorch.get_half_dtype_str() == "bfloat16"
    with pytest.raises(ValueError, match=r"^dtype: another name of half"):
        cstorch.amp.autocast("bfloat16", dtype=torch.bfloat16)


def test_run_of_a_backend_that_compiles_only_is_one_step(caplog):
    cstorch.backend("CSX", compile_only=True)
    executor = cstorch.utils.data.DataExecutor(cstorch.utils.data.DataLoader(lambda: [torch.ones(1)] * 5), num_steps=5)
    assert len(list(executor)) == 1
    assert "a run is one step" in caplog.text


def test_traced_step_may_change_its_graph():
    cstorch.amp.set_half_dtype("bfloat16")
    cstorch.backend("CSX")
    layer, calls = nn.Linear(2, 2), []

    @cstorch.trace
    def step(times):
        calls.append(times)
        x = torch.ones(1, 2)
        for _ in range(times):
            x = layer(x)
        return x

    assert not torch.equal(step(1), step(2))
    assert calls == [1, 2]


def test_tensors_are_those_of_pytorch():
    assert cstorch.zeros((2,)).tolist() == [0, 0]
    assert cstorch.ones((1, 2), dtype=torch.int64).tolist() == [[1, 1]]
    assert cstorch.full((2,), 3.0).tolist() == cstorch.full_like(torch.zeros(2), 3.0).tolist() == [3, 3]
    assert cstorch.zeros_like(torch.ones(1)).tolist() == [0]
    assert cstorch.ones_like(torch.zeros(1), dtype=torch.bool).tolist() == [True]
    assert cstorch.tensor([1, 2]).tolist() == [1, 2]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    assert cstorch.from_numpy(frozen).tolist() == [0, 1, 2]
    assert cstorch.to_numpy(torch.ones(1, dtype=torch.bfloat16)).dtype == np.float32
    same = torch.ones(1)
    assert cstorch.make_constant(same) is cstorch.from_numpy(same) is cstorch.tensor(same) is same


def test_names_of_parts_are_their_paths():
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    assert cstorch.get_debug_name(model[0]) == "Linear"
    cstorch.add_debug_name(model, "net")
    assert (cstorch.get_debug_name(model[1][0]), cstorch.get_debug_name(model)) == ("net.1.0", "net")
    with cstorch.name_scope("part"):
        cstorch.set_debug_scope("part")


def test_summaries_without_a_writer_say_so_once(caplog):
    cstorch.backend("CPU")
    batches = cstorch.utils.data.DataLoader(lambda: [torch.ones(1)])
    for _ in cstorch.utils.data.DataExecutor(batches, num_steps=2):
        cstorch.summarize_scalar("x", 1.0)
        cstorch.summarize_tensor("x", torch.ones(1))
    assert caplog.text.count("has no writer") == 2


def test_packages_say_that_they_are_typed():
    for package in ("golden", "hdl"):
        assert (ROOT / package / "py.typed").is_file()


def test_summary_writer_passes_numbers_and_tensors_on(monkeypatch):
    calls = []

    class Writer:
        def __init__(self, folder):
            self.folder = folder

        def add_scalar(self, *given):
            calls.append(given)

        def flush(self):
            calls.append("flushed")

        def add_histogram(self, tag, values, step):
            calls.append((tag, values.tolist(), step))

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    writer = SummaryWriter("runs", base_step=1)
    assert writer.folder == "runs"
    cstorch.backend("CPU")
    batches = cstorch.utils.data.DataLoader(lambda: [torch.ones(1)])
    for _ in cstorch.utils.data.DataExecutor(batches, num_steps=1, writer=writer):
        cstorch.summarize_scalar("loss", torch.tensor(2.0))
        cstorch.summarize_tensor("weight", torch.ones(1, dtype=torch.bfloat16))
        cstorch.save_summaries(writer, 1)
    assert calls == ["flushed", ("loss", 2.0, 1), ("weight", [1.0], 1)]


def test_summary_writer_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"^SummaryWriter: .*pip install 'cbfloat\[tensorboard\]'"):
        SummaryWriter("runs")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cstorch.device(None), "^backend_type: got None"),
        (lambda: cstorch.from_numpy([1]), "^array: got"),
        (lambda: cstorch.to_numpy(3), "^tensor: got 3"),
        (lambda: cstorch.add_debug_name(3), "^module: got 3"),
    ],
)
def test_wrong_argument_of_a_small_function_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()
