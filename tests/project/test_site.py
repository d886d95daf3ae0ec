"""The documentation site builds without a warning, and a page that names what does not exist stops it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the pages, so that the tutorials, which do not run here, leave nothing in the tree."""
    copy = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", copy / "docs", ignore=shutil.ignore_patterns("tutorials", "units"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "hdl", copy / "hdl", ignore=lambda folder, names: [n for n in names if n.endswith(".py")])
    return copy


def build(pages: Path) -> subprocess.CompletedProcess[str]:
    """Build the site without running its tutorials."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"),
            *("-c", ROOT / "docs", "-d", pages / "cache", pages / "docs", pages / "site"),
        ],
        cwd=ROOT, env=os.environ | {"AMARANTH_USE_YOSYS": "builtin"}, capture_output=True, text=True,
    )  # fmt: skip


def test_site_builds_without_a_warning(pages: Path) -> None:
    built = build(pages)
    assert built.returncode == 0, built.stderr
    assert (pages / "site" / "index.html").is_file()


def test_site_with_a_name_and_a_link_that_lead_nowhere_is_refused(pages: Path) -> None:
    stray = pages / "docs" / "stray.md"
    stray.write_text(
        "---\norphan: true\n---\n# Stray\n\n{py:obj}`golden.no_such_name` and [nowhere](no-such-page.md)\n"
    )
    try:
        refused = build(pages)
    finally:
        stray.unlink()
    assert refused.returncode != 0
    assert "golden.no_such_name" in refused.stderr
    assert "no-such-page.md" in refused.stderr
