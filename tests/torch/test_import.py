"""Imports of golden.torch: its public names, and its errors where PyTorch is missing or too old."""

import builtins
import importlib.util
import re
import subprocess
import sys
import tomllib

import pytest

import golden.torch as cstorch
from golden.torch.common.pytorch import OLDEST, refuse_older
from tools.paths import ROOT

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
try:
    import golden.torch
except ModuleNotFoundError as error:
    print(error.name, error)
"""


def test_import_without_pytorch_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ("torch golden.torch needs PyTorch, which is not installed: pip install 'cbfloat[train]'\n")


def test_import_leaves_the_compiler_of_pytorch_alone():
    program = "import sys, golden.torch; print('torch._dynamo' in sys.modules, 'torch._inductor' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False False\n"


def test_public_names_exist():
    names = """pol current_pol matmul linear bmm conv1d conv2d scaled_dot_product_attention precision
    is_cbfloat16_tensor precision_from_yaml Trainer MixedPrecision RunStopped
    get_half_dtype get_half_dtype_str set_half_dtype mixed_precision"""
    for name in names.split():
        assert callable(getattr(cstorch, name)), name
        assert name in cstorch.__all__
    assert list(cstorch.__all__) == sorted(cstorch.__all__)


NEEDED = "golden.torch needs PyTorch, which is not installed: pip install 'cbfloat[train]'"


@pytest.mark.parametrize(
    ("missing", "message"), [("torch", NEEDED), ("sympy", "PyTorch needs sympy")], ids=["itself", "another"]
)
def test_import_without_pytorch_names_the_package_that_is_missing(monkeypatch, missing, message):
    spec, real = importlib.util.find_spec("golden.torch"), builtins.__import__

    def imported(name, *rest):
        if name == "torch":
            raise ModuleNotFoundError(f"PyTorch needs {missing}", name=missing)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", imported)
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$") as told:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert told.value.name == missing


@pytest.mark.parametrize("version", ["2.11.0", "2.11.1+cu130", "1.13.1"])
def test_older_pytorch_is_refused_unless_the_environment_allows_it(monkeypatch, version):
    # In 2.11 a compiled function called inside a precision gave 0xc4436540 instead of 0xc4440000, without a message.
    with pytest.raises(
        ImportError, match=rf"needs PyTorch 2\.12 or later, and this is {re.escape(version)}, .* unseen"
    ) as told:
        refuse_older(version)
    assert told.value.name == "torch"
    monkeypatch.setenv("CBFLOAT_OLDER_PYTORCH", "1")
    refuse_older(version)


@pytest.mark.parametrize("version", ["2.12.0", "2.13.0+cpu", "3.0.0a0+git1234", "unknown"])
def test_pytorch_that_is_new_enough_or_says_no_number_is_taken(version):
    refuse_older(version)


def test_oldest_pytorch_is_that_of_the_project_file():
    train = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["train"]
    assert any(each.startswith(f"torch>={OLDEST[0]}.{OLDEST[1]},") for each in train)


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--halp", 2)])
def test_imported_program_ends_with_the_status_of_the_command(monkeypatch, capsys, argument, status):
    monkeypatch.setattr(sys, "argv", ["golden.torch", argument])
    monkeypatch.delitem(sys.modules, "golden.torch.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("golden.torch.__main__")
    assert ended.value.code == status
    assert ("usage: " in capsys.readouterr().out) == (status == 0)
