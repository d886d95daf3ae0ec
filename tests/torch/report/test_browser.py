"""The page in a real browser: its layout, colours, keyboard and script. Without Chromium these tests are skipped."""

import html
import json
import re
import shutil
import subprocess

import pytest

from golden.torch.instruments.report.page import page
from golden.torch.instruments.report.reading import read_run
from tests.torch.report.made_up import WRONG, gpt, write

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

#: Contrast of every text with its ground, by the formula of WCAG 2; the smallest, and where it is.
CONTRAST = """
const parts = (colour) => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
const light = (rgb) => rgb.slice(0, 3).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
const ground = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
const worst = {ratio: 99};
for (const e of document.body.querySelectorAll("*")) {
  if (["SCRIPT", "STYLE"].includes(e.tagName)) continue;
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const style = getComputedStyle(e), ink = parts(e.closest("svg") ? style.fill : style.color);
  const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < worst.ratio) Object.assign(worst, {ratio, what: e.outerHTML.slice(0, 120)});
}
return [worst, light(ground(document.body)) > .5];
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "level2", gpt(level=2, wrong=WRONG))
    write(folder / "level1", gpt(seed=2, scale=2.0**27))
    return [read_run(folder / name, name) for name in ("level2", "level1")]


@pytest.fixture(scope="module")
def text(runs):
    return page(runs[:1])


def chromium(folder, text, *options):
    """Open a page; return the browser's output."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--virtual-time-budget=2000", f"--user-data-dir={folder / 'profile'}", *options,
        f"file://{folder / 'page.html'}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(folder, text, script, *options):
    """Return a script's answer in the page, once everything in it has run."""
    script = f"<script>document.body.dataset.answer = JSON.stringify((() => {{ {script} }})())</script></body>"
    shown = chromium(folder, text.replace("</body>", script), "--dump-dom", *options)
    return json.loads(html.unescape(re.search(r'data-answer="([^"]*)"', shown)[1]))


@pytest.mark.parametrize(("scheme", "is_light"), [(0, False), (1, True)], ids=["dark", "light"])
def test_page_follows_the_scheme_and_every_text_has_contrast(tmp_path, text, scheme, is_light):
    worst, found = asked(tmp_path, text, CONTRAST, f"--blink-settings=preferredColorScheme={scheme}")
    assert found is is_light
    assert worst["ratio"] >= 4.5, worst


def test_contrast_that_is_too_small_is_found(tmp_path, text):
    worst, _ = asked(tmp_path, text.replace("--muted: #56606b", "--muted: #a0a8b0"), CONTRAST)
    assert worst["ratio"] < 4.5


def in_window(folder, text, width, script):
    """Return a script's answer about the `view` of a page in a window of some width."""
    inner = html.escape(text, quote=True)
    frame = f'<body><iframe style="width:{width}px;height:900px;border:0" srcdoc="{inner}"></iframe></body>'
    script = f'const view = document.querySelector("iframe").contentDocument.documentElement; {script}'
    answer = (
        f"<script>onload = () => {{ document.body.dataset.answer = JSON.stringify((() => {{ {script} }})()) }}</script>"
    )
    shown = chromium(folder, frame.replace("</body>", f"{answer}</body>"), "--dump-dom", "--window-size=1400,1000")
    return json.loads(html.unescape(re.search(r'data-answer="([^"]*)"', shown)[1]))


def widths(folder, text, width):
    """Return the width of a page's content, and of the window that it is shown in."""
    return in_window(folder, text, width, "return [view.scrollWidth, view.clientWidth];")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_of_the_page(tmp_path, runs, width):
    assert widths(tmp_path, page(runs), width) == [width, width]


def test_part_that_sticks_out_is_found(tmp_path, text):
    content, shown = widths(tmp_path, text.replace(".scroll { overflow-x: auto;", ".scroll {"), 360)
    assert content > shown


@pytest.mark.parametrize(("width", "hints"), [(420, True), (1280, False)])
def test_part_wider_than_the_window_scrolls_within_and_says_so(tmp_path, text, width, hints):
    script = """
    const parts = [...view.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1);
    return parts.map((e) => [e.getAttribute("aria-label"), getComputedStyle(e).overflowX,
      e.parentElement.innerText.includes("scroll it sideways")]);
    """
    found = in_window(tmp_path, text, width, script)
    names = {"Timeline", "First bad steps", "Worst layers", "Heat map", "Window of loss scales"}
    assert {name for name, _, _ in found} == (names if hints else set())
    assert all(each[1:] == ["auto", True] for each in found)
    shown = in_window(tmp_path, text, width, "return view.innerText.match(/scroll it sideways/g)?.length ?? 0")
    assert shown == len(found)


def test_button_in_a_heading_sorts_by_its_column(tmp_path, text):
    script = """
    const table = document.querySelector("table.sortable"), head = [...table.tHead.rows[0].cells];
    const at = head.findIndex((cell) => cell.textContent === "distance");
    const column = () => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[at].dataset.value));
    const seen = [];
    for (let click = 0; click < 2; click++) {
      head[at].querySelector("button").click();
      seen.push([head[at].getAttribute("aria-sort"), column()]);
    }
    return seen;
    """
    (down, falling), (up, rising) = asked(tmp_path, text, script)
    assert (down, up) == ("descending", "ascending")
    assert falling == sorted(falling, reverse=True) == rising[::-1]
    assert len(set(falling)) > 2


def test_filter_keeps_the_layers_whose_name_has_the_text(tmp_path, text):
    script = """
    const input = document.querySelector(".filter input"), rows = [...document.querySelectorAll(".heat tbody tr")];
    input.value = "Scores";
    input.dispatchEvent(new Event("input"));
    const shown = rows.filter((row) => !row.hidden);
    return [shown.map((row) => row.cells[0].textContent), document.querySelector("output").value];
    """
    names, said = asked(tmp_path, text, script)
    assert [name.split()[0] for name in names] == [f"blocks.{block}.attn.scores" for block in range(4)]
    assert said == "4 of 21"


def test_all_that_scrolls_or_acts_is_reached_by_the_keyboard(tmp_path, text):
    script = """
    const scrolls = [...document.querySelectorAll("*")].filter((e) => {
      const style = getComputedStyle(e);
      return e.scrollWidth > e.clientWidth + 1 && ["auto", "scroll"].includes(style.overflowX);
    });
    const acts = [...document.querySelectorAll("a, button, input, summary")];
    const unreached = scrolls.filter((e) => e.tabIndex < 0).map((e) => e.className);
    return [unreached, acts.every((e) => e.tabIndex >= 0), acts.length];
    """
    unreached, is_reached, many = asked(tmp_path, text, script, "--window-size=500,900")
    assert unreached == []
    assert is_reached
    assert many > 30


def test_page_without_its_script_shows_the_same_words(tmp_path, text):
    bare = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    script = "return document.querySelector('main').innerText.replace(/\\s+/g, ' ')"
    with_script, without = (asked(tmp_path, each, script) for each in (text, bare))
    assert without == with_script.replace("Filter layers ", "")


def test_drawings_are_drawn_within_their_frames(tmp_path, text):
    # A histogram's background comes from a symbol; one that is not found has no size.
    script = """
    const shown = [...document.querySelectorAll(".histogram")].filter((e) => !e.closest("details:not([open])"));
    return shown.map((e) => {
      const [use, bars] = ["use", ".bars"].map((part) => e.querySelector(part).getBoundingClientRect());
      return use.width > 100 && bars.height > 5 && bars.right <= use.right + 1 && bars.left >= use.left - 1;
    });
    """
    drawn = asked(tmp_path, text, script)
    assert len(drawn) == 13
    assert all(drawn)


def test_page_is_printed_light_and_without_what_a_reader_cannot_use(tmp_path, text):
    chromium(
        tmp_path, text, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'page.pdf'}",
        "--blink-settings=preferredColorScheme=0",
    )  # fmt: skip
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "page.pdf").read_bytes()))
    assert 4 <= pages <= 7
