"""The house rules that hold the project together, checked on its source."""

import ast
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("golden", "hdl", "tools", "sim", "lab", "tests", "docs", ".ci", ".github")
#: The rooms that are not installed, the lowest first: each imports those before it only.
ROOMS = ("tools", "sim", "lab", "tests")
#: The rooms of golden.torch, likewise.
ROOMS_OF_TORCH = ("common", "settings", "products", "guard", "amp", "cerebras", "instruments", "training")
#: The room of the public names that lie beside the rooms.
BESIDE_THE_ROOMS = {
    **dict.fromkeys(("backend", "distributed", "metrics", "optim", "utils"), "cerebras"),
    **{"examples": "training", "mx": "products", "observing": "instruments"},
}
FORBIDDEN_IN_GOLDEN = {"hdl", "amaranth", "cocotb", "torch", *ROOMS}
SHARED_WITH_HDL = {"golden.formats", "golden.flags", "golden.nearest", "golden.reduction", "golden.rounding"}
#: Names of another module that are parameters, too.
NAMES_SHARED_WITH_HDL = {"golden.mx.recipes": {"NVFP4", "BlockFormat"}}
#: The arithmetic that the lowest room may import: none.
SHARED_WITH_TOOLS = {"golden.formats", "hdl.simulation", "hdl.verilog"}
#: The golden model's side of the self-test, and the command that brings both sides together.
EXPECTED_OF_BOARDS = ("lab/boards/expectation.py", "lab/boards/__main__.py")
# The field counts the first word in three ways, and IEEE 754 has replaced the second; spelt apart for this very test.
AVOIDED_WORDS = ("manti" + "ssa", "denor" + "mal")


@cache
def project_files() -> tuple[Path, ...]:
    """Return the project's own files, whether or not git tracks them yet."""
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    mine = (path for path in [*ROOT.iterdir(), *below] if not {"__pycache__", ".git"} & set(path.parts))
    return tuple(sorted(path for path in mine if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below some of the top-level folders, or all of them."""
    files = [path.relative_to(ROOT) for path in project_files() if path.suffix == ".py"]
    return [path for path in files if not folders or path.parts[0] in folders]


def offenders(paths: Iterable[Path], found_in: Callable[[Path], object]) -> dict[str, object]:
    """Return the faults of each file that has any."""
    found = {str(path): found_in(path) for path in paths}
    assert found, "no files"
    return {path: what for path, what in found.items() if what}


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


@cache
def imported_modules(path: Path) -> frozenset[str]:
    """Return the full name of every module that a file imports, at its top or in a function."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.parts[: len(path.parts) - node.level] if node.level else ()
            module = ".".join([*package, *([node.module] if node.module else [])])
            yield module
            # `from golden import reference` imports a module too.
            yield from (f"{module}.{alias.name}" for alias in node.names if is_module(f"{module}.{alias.name}"))


def is_module(name: str) -> bool:
    """Tell whether a dotted name is one of the project's modules."""
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def roots_of(modules: Iterable[str]) -> set[str]:
    """Return the top-level packages of modules."""
    return {module.split(".")[0] for module in modules}


def beyond(path: Path, roots: Collection[str], shared: Collection[str]) -> set[str]:
    """Return the modules of some packages that a file imports, though it shares only some of them."""
    return {module for module in imported_modules(path) if module.split(".")[0] in roots} - set(shared)


def test_golden_does_not_know_the_hardware_or_its_tools() -> None:
    def found_in(path: Path) -> set[str]:
        # golden.torch is the one place for torch.
        allowed = {"torch"} if path.parts[1].startswith("torch") else set()
        return roots_of(imported_modules(path)) & (FORBIDDEN_IN_GOLDEN - allowed)

    assert offenders(python_files("golden"), found_in) == {}


def test_modelzoo_only_hands_on_names_of_the_training_layer() -> None:
    def found_in(path: Path) -> list[str]:
        # The code behind a name is in golden.torch, in one place.
        others = {module for module in imported_modules(path) if module.split(".")[1] != "torch"}
        code = [node for node in parsed(path).body if not isinstance(node, (ast.Expr, ast.ImportFrom, ast.Assign))]
        return [*others, *map(ast.unparse, code)]

    assert offenders([each for each in python_files("golden") if each.parts[1] == "modelzoo"], found_in) == {}


def test_golden_does_not_know_its_training_layer() -> None:
    def found_in(path: Path) -> set[str]:
        return {module for module in imported_modules(path) if module.startswith(("golden.torch", "golden.modelzoo"))}

    below = [path for path in python_files("golden") if path.parts[1] not in ("torch", "modelzoo")]
    assert offenders(below, found_in) == {}


def height_of(module: str) -> int:
    """Return how high the room of a module of golden.torch lies; golden.torch itself is on top of all."""
    name = (*module.split("."), "", "")[2]
    room = BESIDE_THE_ROOMS.get(name, name)
    return ROOMS_OF_TORCH.index(room) if room in ROOMS_OF_TORCH else len(ROOMS_OF_TORCH)


def above(path: Path, imported: Iterable[str]) -> set[str]:
    """Return the modules of golden.torch that a file imports from rooms above its own."""
    height = height_of(".".join(path.with_suffix("").parts))
    return {name for name in imported if name.startswith("golden.torch") and height_of(name) > height}


def test_rooms_of_the_training_layer_import_only_those_below() -> None:
    # An example is a user's script. `from golden.torch import amp` is one of amp; names of golden.torch itself would
    # make a circle, which test_imports finds.
    files = [path for path in python_files("golden") if path.parts[1:3] != ("torch", "examples")]
    rooms = {path.parts[2] for path in files if path.parts[1] == "torch" and len(path.parts) > 3}
    assert rooms - BESIDE_THE_ROOMS.keys() == set(ROOMS_OF_TORCH)
    layer = [path for path in files if path.parts[1] == "torch"]
    assert offenders(layer, lambda path: above(path, imported_modules(path) - {"golden.torch"})) == {}


@pytest.mark.parametrize(
    ("path", "imported", "is_above"),
    [
        ("golden/torch/settings/half.py", "golden.torch.guard.guard", True),
        ("golden/torch/amp/precision.py", "golden.torch.optim", True),
        ("golden/torch/common/processes.py", "golden.torch", True),
        ("golden/torch/backend.py", "golden.torch.training.trainer", True),
        ("golden/torch/guard/guard.py", "golden.torch.settings.half", False),
        ("golden/torch/cerebras/data.py", "golden.torch.utils", False),
        ("golden/torch/__init__.py", "golden.torch.training.trainer", False),
    ],
)
def test_import_from_a_room_above_is_found(path: str, imported: str, is_above: bool) -> None:
    assert bool(above(Path(path), {imported, "golden.formats"})) is is_above


def folder_of(module: str) -> str:
    """Return the package that a module lies in, the module itself if it is a package."""
    return module if ROOT.joinpath(*module.split(".")).is_dir() else module.rpartition(".")[0]


def two_way(arrows: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return pairs of folders that import each other, apart from a package and its parts."""
    return {
        (one, other)
        for one, other in arrows
        if one < other and (other, one) in arrows and not other.startswith(f"{one}.")
    }


def test_folders_import_each_other_one_way() -> None:
    files = python_files("golden", "hdl", *ROOMS[:-1])
    arrows = {
        (".".join(path.parent.parts), folder_of(name))
        for path in files
        for name in imported_modules(path)
        if is_module(name)
    }
    assert two_way(arrows) == set()


def test_folders_that_import_each_other_are_found() -> None:
    arrows = {("a.b", "a.c"), ("a.c", "a.b"), ("a", "a.b"), ("a.b", "a"), ("a.c", "d")}
    assert two_way(arrows) == {("a.b", "a.c")}


def test_hdl_shares_only_parameters_with_golden() -> None:
    # Shared arithmetic could hide one mistake in both.
    shared = SHARED_WITH_HDL | set(NAMES_SHARED_WITH_HDL)
    assert offenders(python_files("hdl"), lambda path: beyond(path, ("golden",), shared)) == {}


def test_hdl_shares_only_formats_of_blocks_with_the_recipes_of_golden() -> None:
    def found_in(path: Path) -> set[str]:
        imports = (
            each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.ImportFrom)
        )
        return {
            alias.name
            for each in imports
            for alias in each.names
            if alias.name not in NAMES_SHARED_WITH_HDL.get(each.module or "", {alias.name})
        }

    assert offenders(python_files("hdl"), found_in) == {}


def test_hdl_does_not_need_the_testbench() -> None:
    testbench = {"cocotb", "numpy", *ROOMS}

    def found_in(path: Path) -> set[str]:
        allowed = {"numpy"} if path.parts[1] == "engine" else set()  # the driver takes arrays
        return roots_of(imported_modules(path)) & (testbench - allowed)

    assert offenders(python_files("hdl"), found_in) == {}


def test_litex_is_only_for_those_who_have_it() -> None:
    files = [path for path in python_files("hdl", *ROOMS) if "litex" in roots_of(imported_modules(path))]
    assert {path.as_posix() for path in files} == {"hdl/bridge/litex_engine.py", "lab/litex/soc.py"}
    importing = {"hdl.bridge.litex_engine", "lab.litex.soc"}
    allowed = {"lab/litex/__main__.py", "lab/litex/soc.py", "tests/lab/test_litex.py"}
    others = [path for path in python_files("hdl", *ROOMS) if path.as_posix() not in allowed]
    assert offenders(others, lambda path: imported_modules(path) & importing) == {}


def test_rooms_import_only_those_below() -> None:
    def found_in(path: Path) -> set[str]:
        above = ROOMS[ROOMS.index(path.parts[0]) + 1 :]
        return roots_of(imported_modules(path)) & set(above)

    assert offenders(python_files(*ROOMS), found_in) == {}


def test_tools_know_no_arithmetic() -> None:
    def found_in(path: Path) -> set[str]:
        found = beyond(path, ("golden", "hdl"), SHARED_WITH_TOOLS)
        return {module for module in found if not module.startswith("hdl.simulation.")}

    assert offenders(python_files("tools"), found_in) == {}


def test_hardware_of_the_self_test_shares_only_parameters_with_golden() -> None:
    def found_in(path: Path) -> set[str]:
        expected = imported_modules(path) & {"lab.boards.expectation"}
        return beyond(path, ("golden",), SHARED_WITH_HDL) | expected

    hardware = [path for path in python_files("lab") if path.parts[1] == "boards"]
    assert offenders([path for path in hardware if path.as_posix() not in EXPECTED_OF_BOARDS], found_in) == {}


@pytest.mark.parametrize("room", sorted(path.parent for path in python_files("lab") if path.name == "__main__.py"))
def test_room_of_the_laboratory_says_what_it_is_and_how_it_is_run(room: Path) -> None:
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    command = f"python -m {'.'.join(room.parts)}"
    assert len(said.partition("\n")[0]) <= 110
    assert command in " ".join(said.split()) or len(room.parts) > 2


def test_words_are_those_of_the_standard() -> None:
    found = []
    for path in project_files():
        try:
            text = f"{path.name}\n{path.read_text(encoding='utf-8')}".lower()
        except UnicodeDecodeError:  # a binary file
            continue
        found += [f"{path.relative_to(ROOT)}: {word}" for word in AVOIDED_WORDS if word in text]
    assert not found


def test_public_names_are_documented() -> None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

    def found_in(path: Path) -> list[str]:
        tree = parsed(path)
        public = [node for node in tree.body if isinstance(node, definitions) and not node.name.startswith("_")]
        implemented = [node for node in public if "overload" not in map(ast.unparse, node.decorator_list)]
        unsaid = [node.name for node in implemented if not ast.get_docstring(node)]
        return unsaid if ast.get_docstring(tree) or not tree.body else [*unsaid, "the module itself"]

    assert offenders(python_files("golden", "hdl", "tools"), found_in) == {}


def test_packages_of_the_distribution_exist() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = settings["tool"]["setuptools"]["packages"]["find"]
    for pattern in found["include"]:
        assert any((ROOT / folder / pattern.rstrip("*") / "__init__.py").is_file() for folder in found["where"]), (
            pattern
        )


@pytest.mark.parametrize("package", ["golden", "hdl", "tools/namespace/cbfloat"])
def test_every_folder_with_modules_is_a_package(package: str) -> None:
    # setuptools would leave a folder without __init__.py out of the wheel, and an editable install would hide that.
    for folder in {path.parent for path in python_files() if path.as_posix().startswith(f"{package}/")}:
        assert (ROOT / folder / "__init__.py").is_file(), folder


def test_every_dependency_is_pinned_exactly() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [re.split("[;#]", line)[0].strip() for line in text.splitlines()]
    assert [line for line in lines if line and line.count("==") != 1] == []
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {name_of(requirement) for requirement in wanted} - {project["name"]}
    assert names <= pinned


def name_of(requirement: str) -> str:
    """Return the distribution's name in a requirement such as ``amaranth[builtin-yosys]>=0.5.8``."""
    length = next((at for at, character in enumerate(requirement) if character in "[<>=!~; "), len(requirement))
    return requirement[:length].lower().replace("_", "-")
