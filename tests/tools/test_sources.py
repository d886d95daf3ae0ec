"""Results of measurements: the files that a program's imports reach, and the provenance of every figure."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tools import results
from tools.results import Result, Table, keep, kept, measured, read
from tools.sources import MEASURED, code_of, files_of, hash_of, unit_source, unparsed

#: A project in which `lab.speed` times products, `lab.train` trains, and `sim` judges the RTL.
PROJECT = {
    "golden/__init__.py": """
from golden import formats
from golden.page import show
from golden.products import matmul
__version__ = "1"
__all__ = ["formats", "matmul", "show"]
""",
    "golden/formats.py": "WIDTH = 16\n",
    "golden/products.py": """
from .kernels import run
def matmul():
    from golden.late import threads as number
    return run(number)
def dot():
    from golden.single import one as number
    return run(number)
""",
    "golden/late.py": "threads = 1\n",
    "golden/single.py": "one = 1\n",
    "golden/page.py": "def show(): pass\n",
    "golden/kernels/__init__.py": "def run(threads): pass\n",
    "golden/kernels/source/plan.cpp": '#include "plan.h"\nint plan = 1;\n',
    "golden/kernels/source/plan.h": "int rows = 1;\n",
    "golden/torch/__init__.py": """
from golden.torch import patches
from golden.torch.page import write
from golden.torch.trainer import Trainer
LIMIT = 3
__all__ = ["Trainer", "write"]
""",
    "golden/torch/patches.py": "PATCHED = True\n",
    "golden/torch/trainer.py": "import golden\nclass Trainer:\n    product = golden.matmul\n",
    "golden/torch/page/__init__.py": "def write(): pass\n",
    "golden/torch/page/template/page.html.jinja": "<p>\n",
    "hdl/__init__.py": "from hdl.converter import Convert\nUNIT = 1\n",
    "hdl/converter.py": "from hdl.cores.words import width\nfrom hdl.pipeline import rank\nclass Convert: pass\n",
    "hdl/cores/__init__.py": "",
    "hdl/cores/words.py": "from golden.formats import WIDTH as width\n",
    "hdl/pipeline.py": "rank = 1\n",
    "hdl/verilog.py": "from hdl import UNIT\n",
    "hdl/released.json": '{"mac": "0"}\n',
    "lab/__init__.py": "",
    "lab/speed/__init__.py": "",
    "lab/speed/__main__.py": "from lab.speed.timing import seconds\n",
    "lab/speed/timing.py": "import golden as model\ndef seconds():\n    return model.matmul()\n",
    "lab/train.py": "import golden.torch as cstorch\ntrainer = cstorch.Trainer()\n",
    "lab/exhaustive.py": "from hdl import Convert\nfrom hdl.verilog import UNIT\nprint(Convert)\n",
    "lab/every.py": "import golden\nfound = [getattr(golden, name) for name in golden.__all__]\n",
    "lab/about.py": "from golden import __version__\nimport golden\nprint(__version__, golden.formats)\n",
    "sim/__main__.py": "from hdl import UNIT\nfrom golden.formats import WIDTH\n",
}
_MORE = {".py": "MORE = 1\n", ".cpp": "int more;\n", ".h": "int more;\n", ".json": "1\n", ".jinja": "<b>\n"}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def ages(program: str, changed: dict[str, str], folder: Path) -> bool:
    """Return whether new texts of files change the hash of a program's sources."""
    before, after = written(folder / "before", PROJECT), written(folder / "after", PROJECT | changed)
    assert hash_of(program, before)
    return hash_of(program, before) != hash_of(program, after)


@pytest.mark.parametrize(
    ("program", "inside"),
    [
        ("lab.speed", ("products", "late", "single", "kernels/__init__", "kernels/source/plan.cpp",
                       "kernels/source/plan.h")),
        ("lab.train", ("torch/trainer", "torch/patches", "torch/__init__", "products", "late", "single",
                       "kernels/__init__", "kernels/source/plan.cpp", "kernels/source/plan.h")),
        ("lab.every", ("formats", "page", "products", "late", "single", "kernels/__init__",
                       "kernels/source/plan.cpp", "kernels/source/plan.h")),
        ("lab.about", ("formats",)),  # not all that the package hands on, for a version's sake
        ("sim", ("formats", "hdl/released.json")),
        ("lab.exhaustive", ("formats", "hdl/converter.py", "hdl/cores/words.py")),
        ("golden.torch.page.*", ("torch/page/__init__", "torch/page/template/page.html.jinja", "torch/patches",
                                 "torch/__init__")),
    ],
)  # fmt: skip
def test_change_of_a_file_ages_exactly_the_results_of_programs_that_reach_it(
    program: str, inside: tuple[str, ...], tmp_path: Path
) -> None:
    paths = {name if "." in name else f"{name}.py" for name in inside}
    paths = {name if name.startswith("hdl") else f"golden/{name}" for name in paths}
    aged = {
        name
        for at, (name, text) in enumerate(PROJECT.items())
        if ages(program, {name: text + _MORE[Path(name).suffix]}, tmp_path / str(at))
    }
    # Statements of a package itself run for everyone.
    assert aged == paths | {"golden/__init__.py"}


@pytest.mark.parametrize(
    ("changed", "is_aged"),
    [
        ({"golden/__init__.py": PROJECT["golden/__init__.py"].replace('"1"', '"2"')}, False),
        ({"golden/__init__.py": PROJECT["golden/__init__.py"].replace("show", "display")}, False),
        ({"golden/__init__.py": PROJECT["golden/__init__.py"] + "import golden.fast\n", "golden/fast.py": ""}, True),
        ({"golden/__init__.py": PROJECT["golden/__init__.py"].replace("products", "late")}, True),
        ({"golden/products.py": '"""Say."""\n' + PROJECT["golden/products.py"] + "# more\n"}, False),
        ({"golden/kernels/source/fast.h": "int fast;\n"}, True),
        ({"golden/kernels/native.so": "machine code"}, False),
    ],
)
def test_hash_follows_names_that_a_package_hands_on(changed: dict[str, str], is_aged: bool, tmp_path: Path) -> None:
    assert ages("lab.speed", changed, tmp_path) == is_aged


def test_speed_of_products_does_not_depend_on_the_layer_for_pytorch() -> None:
    files = files_of("lab.speed")
    assert {"golden/arrays/products.py", "golden/kernels/source/product.cpp"} <= set(files)
    assert not [name for name in files if name.startswith(("golden/torch", "golden/cuda", "hdl", "lab"))]
    trained = set(files_of("lab.speed.observing"))
    assert "golden/torch/instruments/observe/observer.py" in trained
    assert not [name for name in trained if name.startswith("golden/torch/training/commands/")]


def test_regression_depends_on_the_verilog_and_not_on_the_python_that_generates_it() -> None:
    assert [name for name in files_of("sim") if name.startswith("hdl")] == ["hdl/released.json"]


def test_exhaustive_runs_of_converters_do_not_depend_on_the_multiply_accumulate_units() -> None:
    files = {name for name in files_of("lab.exhaustive.converters") if name.startswith("hdl")}
    assert {"hdl/converter.py", "hdl/cores/conversion.py", "hdl/float_shape.py"} <= files
    assert not files & {"hdl/released.json", "hdl/cores/fused_step.py", "hdl/mac/multiply_accumulate.py"}


@pytest.mark.parametrize("source", ["lab.nothing", "nothing.*", "lab.release.trial", unit_source("no_such_unit")])
def test_hash_of_what_is_not_there_or_measures_nothing_is_empty(source: str) -> None:
    assert MEASURED.is_file()
    assert hash_of(source) == ""


def test_statement_with_a_formatted_text_is_hashed_alike_by_every_python() -> None:
    statement = ast.parse("""raise AttributeError(f"got {name!r}, must be one of {', '.join(NAMES)}")""").body[0]
    assert unparsed(statement) == "raise AttributeError(f'got {name!r}, must be one of {', '.join(NAMES)}')"


def test_code_of_python_has_no_comments_and_docstrings() -> None:
    text = '"""Say."""\n\nX = "# no comment"  # one\n\n\ndef f():\n    """Say.\n\n    More.\n    """\n'
    text += '    return """text"""\n'
    assert code_of("a.py", text) == 'X = "# no comment"\ndef f():\n    return """text"""'


def test_code_of_cpp_has_no_comments() -> None:
    assert code_of("a.h", "int a; // one\n/* two\n lines */\nint b;\n") == "int a;\nint b;"


TABLE = Table(("unit", "MHz"), (("`mac`", "170"), ("`vector`", "131")))
FOUND = {"conclusion": "170 MHz", "note": "Three seeds.", "tables": (TABLE,), "data": {"units": [1, 2]}}


@pytest.mark.parametrize("unit", ["matrix_engine", "mac", "matrix_mac_no_flags"])
def test_hash_of_a_unit_that_is_released_or_measured_has_sixteen_digits(unit: str) -> None:
    assert len(hash_of(unit_source(unit))) == 16


def test_result_written_then_read_is_the_same(tmp_path: Path) -> None:
    result = measured("fpga", ["hdl"], "make fpga", **FOUND)
    assert keep(result, tmp_path) == tmp_path / "fpga.json"
    again = read("fpga", tmp_path)
    assert again.markdown() == result.markdown()
    assert (again.sources, again.data) == (result.sources, result.data)
    assert list(kept(tmp_path)) == ["fpga"]


@pytest.mark.parametrize("name", ["tool", "command", "date", "commit", "machine", "sources"])
def test_result_without_provenance_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: got"):
        replace(measured("fpga", ["hdl"]), **{name: {} if name == "sources" else ""})


def test_result_of_the_tree_as_it_is_hides_nothing() -> None:
    result = measured("fpga", ["hdl", "sim"], "make fpga", **FOUND)
    assert result.changed == []
    assert "older" not in result.markdown()
    assert "`make fpga`" in result.provenance
    assert "| `mac` | 170 |\n" in result.markdown()


def test_result_of_an_older_source_says_so_and_names_it() -> None:
    now = measured("fpga", ["hdl", "sim"], "make fpga")
    older: Result = replace(now, sources={**now.sources, "sim": "0" * 16})
    assert older.changed == ["sim"]
    assert older.markdown().count("**Measured on an older source: the code that `sim` runs has changed since.**") == 1


def test_result_of_units_of_an_older_verilog_names_them() -> None:
    known = dict.fromkeys((unit_source("mac"), unit_source("vector_mac")), "0" * 16)
    older = replace(measured("fpga", ["hdl"], "make fpga"), sources=known)
    assert older.age == "Measured on an older source: the Verilog of `mac`, `vector_mac` has changed since."


def test_result_of_a_released_unit_that_is_not_measured_is_as_old_as_its_verilog() -> None:
    now = measured("engine", [unit_source("matrix_engine")], "python -m lab.engine")
    assert now.changed == []
    older = replace(now, sources={unit_source("matrix_engine"): "0" * 16})
    assert older.age == "Measured on an older source: the Verilog of `matrix_engine` has changed since."


def test_result_of_many_units_of_an_older_verilog_counts_most_of_them() -> None:
    names = ["mac", *(f"mac_cbfloat16_stages_{stages}" for stages in range(1, 14))]
    older = replace(measured("fpga", ["hdl"], "make fpga"), sources={unit_source(name): "0" * 16 for name in names})
    assert "`mac`, `mac_cbfloat16_stages_1`, " in older.age
    assert "stages_6" not in older.age
    assert " and 8 more units (" in older.age
    assert len(older.changed) == 14


def test_result_of_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^sources: got lab.nothing, must be modules that run code of golden or hdl"):
        measured("nothing", ["sim", "lab.nothing"])


def test_result_says_how_long_the_run_took(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results.time, "monotonic", lambda: results._STARTED + 90.4)
    assert measured("fpga", ["hdl"]).seconds == 90
    assert measured("fpga", ["hdl"], seconds=5).seconds == 5


def test_command_line_names_no_path_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = ["--folder", str(results.ROOT / "build" / "formal"), str(tmp_path / "mine.lib"), "--jobs", "1", "docs/a.md"]
    monkeypatch.setattr("sys.argv", ["prog", *given])
    assert results.command_line().endswith(" --folder build/formal mine.lib --jobs 1 docs/a.md")
