"""The check of pinned versions fails where it should: with made-up packages, and without a network."""

import zipfile

import pytest

from tools import pins

PROJECT = """
[project]
name = "thing"
version = "1"
requires-python = ">=3.11"
[project.optional-dependencies]
a = ["upper"]
b = ["lower{limit}"]
"""


def wheel(folder, name, version, *needs, python=">=3.11"):
    """Write an empty package."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Requires-Python: {python}"]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{info}/METADATA", "\n".join([*lines, *(f"Requires-Dist: {each}" for each in needs), "", ""]))
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path, monkeypatch):
    """Return uv's arguments for an index of three packages; the project is in the folder above."""
    packages = tmp_path / "packages"
    packages.mkdir()
    wheel(packages, "upper", "2", "lower>=2", "odd")
    wheel(packages, "lower", "1")
    wheel(packages, "lower", "2")
    wheel(packages, "odd", "1")
    wheel(packages, "odd", "2", python=">=3.11.5")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(limit=""))
    monkeypatch.setattr(pins, "_HELD_BACK", ())
    monkeypatch.setattr(pins, "PYTHONS", ("3.11.2", "3.14"))
    monkeypatch.setattr(pins, "PLATFORMS", ("x86_64-manylinux_2_28", "aarch64-apple-darwin"))
    return "--no-index", "--find-links", str(packages)


def test_check_passes_what_renew_wrote_and_keeps_a_version_for_the_oldest_python(tmp_path, index):
    pins.renew(tmp_path, index=index)
    assert list(pins.check(tmp_path, index)) == []
    assert "odd==1" in (tmp_path / "constraints.txt").read_text()


def test_check_names_both_sides_of_a_contradiction_on_every_python_and_platform(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==1\nodd==1\n")
    failures = list(pins.check(tmp_path, index))
    assert len(failures) == len(pins.PYTHONS) * len(pins.PLATFORMS)
    assert all("lower>=2" in each and "lower==1" in each for each in failures)


def test_check_sees_a_version_that_the_oldest_python_does_not_take(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==2\nodd==2\n")
    failures = list(pins.check(tmp_path, index))
    assert {each.split(" on ")[0] for each in failures} == {"Python 3.11.2"}


def test_check_sees_a_package_without_a_pinned_version(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("upper==2\nlower==2\n")
    assert "Python 3.14 on aarch64-apple-darwin: constraints.txt lacks odd==2" in list(pins.check(tmp_path, index))


def test_check_ignores_wheels_and_indexes_that_this_machine_adds(tmp_path, index, monkeypatch):
    pins.renew(tmp_path, index=index)
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS"):
        monkeypatch.setenv(name, index[-1])
    assert any("lower" in each or "upper" in each for each in pins.check(tmp_path, ("--no-index",)))


def test_renew_leaves_the_file_where_requirements_contradict_each_other(tmp_path, index):
    (tmp_path / "constraints.txt").write_text("lower==1\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(limit="<2"))
    with pytest.raises(SystemExit, match="stays as it was"):
        pins.renew(tmp_path, index=index)
    assert (tmp_path / "constraints.txt").read_text() == "lower==1\n"
