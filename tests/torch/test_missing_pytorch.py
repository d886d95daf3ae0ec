"""What `golden.torch` says without PyTorch, and its program's exit status; without a process of its own."""

import builtins
import importlib.util
import re
import sys

import pytest

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


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--halp", 2)])
def test_imported_program_ends_with_the_status_of_the_command(monkeypatch, capsys, argument, status):
    monkeypatch.setattr(sys, "argv", ["golden.torch", argument])
    monkeypatch.delitem(sys.modules, "golden.torch.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("golden.torch.__main__")
    assert ended.value.code == status
    assert ("usage: " in capsys.readouterr().out) == (status == 0)
