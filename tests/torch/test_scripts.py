"""Scripts written for cerebras.pytorch train on exact products when one import changes, and nothing else."""

import logging
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import golden
import golden.torch as cstorch
from golden import FP32, Reduction
from golden.torch.cerebras import backends

SCRIPTS = Path(__file__).parent / "scripts"
THEIRS, OURS = "import cerebras.pytorch as cstorch", "import golden.torch as cstorch"
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "dot", "convolution", "convolution_backward", "linear", "matmul")


class Products(TorchDispatchMode):
    """Counts products by exact kernels and by PyTorch."""

    def __init__(self):
        super().__init__()
        self.exact, self.of_pytorch, self.halves, self.levels = 0, Counter(), set(), set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name == "cbfloat::matrix_product":
            self.exact += 1
            reduction = Reduction.parse(args[3])
            self.halves.add(str(reduction.operand))
            if args[0].shape[-2] > 1:  # the sum for a bias is a product by a row of ones, always at level 0
                self.levels.add(0 if reduction.inner == FP32 else 1 if reduction.outer == FP32 else 2)
        elif name.removeprefix("aten::") in PRODUCTS:
            self.of_pytorch[name] += 1
        return func(*args, **(kwargs or {}))


def run(name, **given):
    """Run a script with its import changed; return its variables and the products that it made."""
    text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    assert text.count(THEIRS) == 1
    scope = {"__name__": "script", **given}
    with Products() as products:
        exec(compile(text.replace(THEIRS, OURS), f"{name}.py", "exec"), scope)
    return scope, products


class Writer:
    """Keeps the values."""

    def __init__(self):
        self.scalars = []

    def add_scalar(self, name, value, step):
        self.scalars.append((name, value, step))


def test_custom_loop_trains_exactly_and_saves_on_checkpoint_steps(tmp_path):
    script, products = run("custom_loop", MODEL_DIR=str(tmp_path))
    # A step: two products forward, three backward (nobody wants the gradient of the inputs), two sums for the biases.
    assert (products.exact, products.of_pytorch) == (12 * 7, {})
    assert (products.halves, products.levels) == ({"cbfloat16"}, {2})
    assert [Path(path).name for path in script["saved"]] == [f"checkpoint_{step}.mdl" for step in (0, 5, 10, 12)]
    assert script["losses"][-1] < script["losses"][0] / 2
    assert len(script["rates"]) == 12
    assert script["rates"][:5] == pytest.approx([0.02, 0.03, 0.04, 0.05, 0.048477], rel=1e-4)
    assert script["grad_scaler"].get_scale() <= 2.0**31
    assert cstorch.use_cs()


def test_checkpoint_of_a_script_goes_on_with_the_same_bits(tmp_path):
    script, _ = run("custom_loop", MODEL_DIR=str(tmp_path))
    state = cstorch.load(tmp_path / "checkpoint_10.mdl")
    assert state["global_step"] == 10
    for name in ("model", "optimizer", "lr_scheduler", "grad_scaler"):
        script[name].load_state_dict(state[name])
    batches = [batch for _ in range(3) for batch in script["input_fn"](10)]
    losses = [script["training_step"](*batch).item() for batch in batches[10:12]]
    assert losses == script["losses"][10:]
    final = cstorch.load(tmp_path / "checkpoint_12.mdl")["model"]
    for name, tensor in script["model"].state_dict().items():
        assert torch.equal(tensor.view(torch.int32), final[name].view(torch.int32)), name


def test_older_loop_runs_at_the_level_of_its_configuration_and_writes_summaries(tmp_path):
    script, products = run("older_loop", MODEL_DIR=str(tmp_path), WRITER=(writer := Writer()))
    assert products.exact > 0
    assert products.of_pytorch == {}
    assert (products.halves, products.levels) == ({"cbfloat16"}, {0})
    assert len(script["losses"]) == 9
    assert script["losses"][-1] < script["losses"][0]
    assert writer.scalars == [("loss", loss, step) for step, loss in enumerate(script["losses"], start=1)]
    assert script["rates"][0] == pytest.approx(0.05 - 0.049 / 8)
    assert script["rates"][-1] == pytest.approx(0.001)


def test_evaluation_loads_a_checkpoint_and_measures(tmp_path):
    run("custom_loop", MODEL_DIR=str(tmp_path))
    backends._Process.backend = None  # as in another process
    script, products = run("evaluation", CHECKPOINT=str(tmp_path / "checkpoint_12.mdl"))
    assert (products.exact, products.of_pytorch) == (3 * 2, {})
    assert products.halves == {"bfloat16"}
    assert script["results"]["eval/accuracy"] > 0.6
    mean = sum(script["total"]) / 3
    assert script["results"]["eval/lm_perplexity"] == pytest.approx(torch.tensor(mean).exp().item())


def test_two_optimizers_with_schedules_train_exactly():
    script, products = run("two_optimizers")
    assert products.of_pytorch == {}
    # A step: two products forward, three backward and a sum for the bias in float16; Muon's fifteen in bfloat16.
    assert (products.exact, products.halves) == (8 * (6 + 15), {"float16", "bfloat16"})
    losses, rates = zip(*script["seen"], strict=True)
    assert losses[-1] < losses[0] * 0.7
    assert list(rates) == pytest.approx([0.1] * 3 + [0.05] * 5)
    assert [group["lr"] for group in script["others"].param_groups] == [pytest.approx(0.05), 0.1]
    assert float(script["matrices"].param_groups[0]["weight_decay"]) == 0


def test_what_only_a_wafer_understands_is_said_once(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="golden.torch"):
        run("custom_loop", MODEL_DIR=str(tmp_path))
    said = [record.getMessage() for record in caplog.records]
    assert sorted(text.split(":")[0] for text in said) == [
        "compile_dir",
        "mount_dirs",
        "num_csx",
        "num_workers_per_csx",
    ]


def test_script_without_a_half_type_says_that_its_products_are_fp32(caplog):
    cstorch.backend("CPU")
    model = cstorch.compile(torch.nn.Linear(3, 2))
    with caplog.at_level(logging.WARNING, logger="golden.torch"), Products() as products:
        model(torch.ones(2, 3))
        model(torch.ones(2, 3))
    assert (products.exact, products.of_pytorch) == (0, {"aten::addmm": 2})
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["mixed precision is off"]


def test_version_is_that_of_the_distribution():
    text = (Path(golden.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["project"]["version"] == golden.__version__ == cstorch.__version__


def test_loop_of_the_training_guide_trains_exactly():
    guide = (Path(golden.__file__).parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
    (text,) = [block for block in guide.split("```python\n")[1:] if block.startswith("cstorch.amp.set_half_dtype(")]
    inputs = torch.randn(8, 4)
    scope = {
        "cstorch": cstorch,
        "model": torch.nn.Linear(4, 3),
        "loss_fn": torch.nn.CrossEntropyLoss(),
        "make_loader": lambda: [(inputs, inputs[:, :3].argmax(1))],
    }
    with Products() as products:
        exec(text.split("```")[0].replace("num_steps=1000", "num_steps=3"), scope)
    # A step: a product forward, one backward, and the sum for the bias.
    assert (products.exact, products.of_pytorch, products.halves) == (9, {}, {"cbfloat16"})
