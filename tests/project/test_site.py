"""Faults in a page stop the build of the documentation site; `make docs` builds all of it and runs its tutorials."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
GOOD = "{py:obj}`golden.convert` and [elsewhere](other.md), as NUMERICS section 3 says."


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory):
    """Return a function that builds a site of two pages, one with a given text, with the site's settings."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("examples", "static"):  # the tutorials do not run here
        shutil.copytree(ROOT / "docs" / name, folder / "docs" / name)
    (folder / "docs" / "other.md").write_text("# Other\n\n```{eval-rst}\n.. surface:: golden\n```\n")

    def build(text: str) -> tuple[subprocess.CompletedProcess[str], str]:
        (folder / "docs" / "index.md").write_text(f"# Site\n\n{text}\n\n```{{toctree}}\nother\ntutorials/index\n```\n")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "generated_pages=0"),
                *("-D", "plot_gallery=0"),
                *("-c", ROOT / "docs", "-d", folder / "cache", folder / "docs", folder / "site"),
            ],
            cwd=ROOT, env=os.environ | {"AMARANTH_USE_YOSYS": "builtin"}, capture_output=True, text=True,
        )  # fmt: skip
        return done, (folder / "site" / "index.html").read_text(encoding="utf-8")

    return build


def test_page_without_fault_is_built_with_its_links(build) -> None:
    done, page = build(GOOD)
    assert done.returncode == 0, done.stderr
    assert 'href="other.html#golden.convert"' in page
    assert 'href="numerics.html#3-conversion"' in page
    assert re.findall(r"<(?:script|link|img)[^>]+https?://[^>]*>", page) == []  # it is read without a network, too


def test_page_that_names_what_is_not_there_stops_the_build(build) -> None:
    names = ("golden.no_such_name", "golden.FloatFormat.no_such_member")
    links = ("[nowhere](no-such-page.md)", "![no picture](figures/none.svg)")
    done, _ = build(", ".join([*(f"{{py:obj}}`{name}`" for name in names), *links]))
    assert done.returncode != 0
    for missing in (*names, "no-such-page.md", "figures/none.svg"):
        assert missing in done.stderr
