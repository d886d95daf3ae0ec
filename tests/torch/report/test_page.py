"""The page: it holds all parts, needs nothing else, escapes the text of the file, and stays small."""

import html
import re
from html.parser import HTMLParser

import pytest

from golden.torch.instruments.report.page import names_of, page, write_report
from golden.torch.instruments.report.reading import read_run
from golden.torch.instruments.report.records import Run
from golden.torch.instruments.report.timeline import timeline
from golden.torch.training.commands.line import main
from tests.torch.report.big import write_big
from tests.torch.report.made_up import WRONG, events, gpt, histogram, product, run_of, settings, step, write

EVIL = "a.<script>alert(1)</script>&\"'"
LARGEST = 3_000_000  # bytes of a page about 200 layers


class Tags(HTMLParser):
    """Gathers the tags of a page and its text; checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "wbr", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        # HTML lets these end where the next one begins.
        while self.open and self.open[-1] != tag and self.open[-1] in ("td", "th", "tr"):
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def said(self):
        return " ".join(" ".join(self.text).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write(folder / "level2", gpt(level=2, wrong=WRONG))
    write(folder / "level1", gpt(seed=2, scale=2.0**27))
    return [read_run(folder / name, name) for name in ("level2", "level1")]


def test_page_of_one_run_has_every_part_in_its_order(two):
    tags = Tags(page(two[:1]))
    assert tags.open == []
    headings = re.findall(r"<h[123][^>]*>([^<]*)<", page(two[:1]))
    assert [html.unescape(each) for each in headings] == [
        "level2", "At a glance", "What to change", "Timeline", "Worst layers first", "Heat map: layer × pass × event",
        "Loss scale", "Exponents against the formats' ranges", "How this page judges", "Rules of the advice",
    ]  # fmt: skip
    said = tags.said()
    assert "Totals overflow at level 2, while the sum of each chunk fits." in said
    assert "blocks.3.mlp.out: {fwd: 1}" in said
    assert "4 places went bad, the earliest first" in said


def test_page_rounds_its_figures(tmp_path):
    long = 0.16340034282076682
    evidence = {"operation": "linear", "steps": 270336, "relative distance": long}
    bad = {"kind": "first_bad", "step": 1, "module": "a", "pass": "forward", "cause": "swamped", "evidence": evidence}
    said = Tags(page([run_of(tmp_path, [product(1), bad, step(1, loss=long)])])).said()
    assert "operation linear, steps 270,336, relative distance 0.163" in said
    assert re.findall(r"\d\.\d{6,}", said.partition("How this page judges")[0]) == []


def test_limit_is_drawn_through_bars_and_never_through_a_word(two):
    panels = {panel.label: panel for panel in timeline([two[0]]).panels}
    assert panels["swamped"].limit
    assert [panel.label for panel in panels.values() if panel.limit and panel.empty] == []
    quiet = {panel.label: panel for panel in timeline([Run("quiet", two[0].settings, two[0].steps)]).panels}
    assert (quiet["swamped"].empty, quiet["swamped"].limit) == ("none", None)


def test_page_names_both_limits_of_the_timeline(two):
    said = Tags(page(two[:1])).said()
    assert "The limit is that of a layer's share in the whole run." in said
    assert "A mark ▼, first bad, has limits of its own, for one step:" in said
    assert "more than 25 % of the addends are swamped and the results more than 10 % from fp32" in said


def test_results_that_are_all_lost_have_no_distance_in_ulp(tmp_path):
    lost = histogram("cbfloat16", 0.0, total=0, zero=4096)
    tensors = {"left": histogram("cbfloat16", 0.0), "right": histogram("cbfloat16", 0.0), "output": lost}
    distance = {"relative": 1.0, "ulp_mean": 0.07, "ulp_max": 0.5}
    line = product(1, "a", "gradient_of_weight", tensors=tensors, distance=distance)
    said = Tags(page([run_of(tmp_path, [line, step(1)])])).said()
    assert "every result is 0 , and in fp32 not" in said
    assert "0.07 ulp" not in said
    assert "distance all zero" in said
    kept = page([run_of(tmp_path, [product(1, "a", distance=distance, products=events(100, swamped=0.5)), step(1)])])
    assert "100 % from fp32, 0.07 ulp on average, 0.5 at most" in Tags(kept).said()


def test_every_link_and_drawing_of_the_page_leads_to_a_place_in_it(two):
    tags = Tags(page(two)).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for _, attributes in tags if "href" in attributes]
    assert links
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)


def test_page_needs_no_network_and_no_other_file(two):
    text = page(two)
    assert [attributes for _, attributes in Tags(text).tags if "src" in attributes] == []
    assert re.findall(r"https?://|@import|url\((?!#)", text) == []
    assert "default-src 'none'" in text.replace("&#39;", "'")


def test_same_runs_give_the_same_page(two):
    assert page(two) == page(two)


def test_names_of_the_file_are_escaped_wherever_they_stand(tmp_path):
    lines = [
        product(1, EVIL, operation=EVIL, products=events(1000, swamped=0.5)),
        {"kind": "first_bad", "step": 1, "module": EVIL, "pass": "forward", "cause": EVIL, "evidence": {EVIL: EVIL}},
        step(1),
        {"kind": EVIL},
    ]
    changes = {"model": EVIL, "started": EVIL, "torch": EVIL, "rounding": EVIL, "cbfloat": EVIL}
    runs = [run_of(tmp_path / name, lines, EVIL + name, **changes) for name in ("one", "two")]
    tags = Tags(page(runs))
    assert [tag for tag, _ in tags.tags].count("script") == 1
    assert tags.open == []
    assert tags.said().count("alert(1)") > 20
    assert [name for _, attributes in tags.tags for name in attributes if name.startswith("on")] == []


def test_comparison_shows_what_differs_and_the_layers_that_differ_most(two):
    text = page(two)
    said = Tags(text).said()
    assert "Comparison" in said
    assert re.findall(r'<tr class="differs"><th scope="row">(.*?)</th>', text)[:2] == ["level", "last loss"]
    table = text.partition("Layers that differ most")[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">(.*?)</th>', table)[0].replace("<wbr>", "") == "blocks.3.mlp.out"
    assert "Comparison" not in Tags(page(two[:1])).said()


def test_equal_runs_do_not_differ(two):
    assert "No layer differs by a fifth" in page([two[1], two[1]])


def test_runs_of_different_models_are_said_to_have_no_layer_in_common(tmp_path):
    runs = [run_of(tmp_path / name, [product(1, name), step(1)], name) for name in ("a", "b")]
    assert "The runs have no layer in common." in page(runs)


def test_quiet_run_is_told_to_change_nothing(tmp_path):
    lines = [line for number in range(1, 31) for line in (product(number), step(number))]
    assert "None of the 18 rules speaks" in Tags(page([run_of(tmp_path, lines)])).said()


@pytest.mark.parametrize(
    "lines",
    [
        [step(1, observed=False)],
        [step(1, loss=None, loss_scale=None), product(1, distance=None)],
        [product(1)],
        [step(1, loss=float("nan")), product(1, "", largest_exponent=None)],
        [product(1, tensors={name: {"format": "my own", "total": 0, "zero": 0, "subnormal": 0, "infinite": 0, "nan": 0,
                                    "exponents": {}} for name in ("left", "right", "output")}), step(1)],
        [step(n, loss=10.0**-n, loss_scale=2.0**-n) for n in range(1, 9)],
    ],
)  # fmt: skip
def test_run_with_little_in_it_has_a_page_all_the_same(tmp_path, lines):
    assert Tags(page([run_of(tmp_path, lines)])).open == []


def test_names_of_runs_are_those_of_their_folders_unless_two_are_alike(tmp_path):
    places = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "other"]
    for place in places:
        write(place, [settings()])
    assert names_of([places[0], places[2]]) == ["run", "other"]
    assert names_of(places) == [str(places[0]), str(places[1]), "other"]
    assert names_of([places[2], places[2]]) == [str(places[2]), f"{places[2]} (2)"]
    assert names_of([places[2] / "observations.jsonl"]) == ["other"]


def test_page_of_many_layers_stays_small(tmp_path):
    # More observed steps make no larger page.
    folder = write_big(tmp_path, layers=200, observed=2)
    write_report([folder], tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < LARGEST


def test_command_writes_the_page_beside_the_run_or_where_it_is_told(tmp_path, capsys):
    one = write(tmp_path / "one", [settings(), product(1), step(1)])
    two = write(tmp_path / "two", [settings(level=2), product(1), step(1)])
    assert main(["report", str(one)]) == 0
    assert capsys.readouterr().out == f"{one / 'report.html'}\n"
    assert "<h1>one</h1>" in (one / "report.html").read_text()
    assert main(["report", str(one), str(two), "-o", str(tmp_path / "new" / "both.html")]) == 0
    assert "<h1>one and two</h1>" in (tmp_path / "new" / "both.html").read_text()


def test_page_of_three_runs_lists_their_names_in_its_heading(tmp_path):
    folders = [write(tmp_path / name, [settings(), product(1), step(1)]) for name in ("one", "two", "three")]
    write_report(folders, tmp_path / "page.html")
    assert "<h1>one, two and three</h1>" in (tmp_path / "page.html").read_text()


def test_command_without_a_run_says_what_is_wrong_and_writes_nothing(tmp_path, capsys):
    for place, said in (("nowhere", "which is not there"), ("", "has no observations.jsonl; train with Trainer")):
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(tmp_path / place)])
        assert stopped.value.code == 2
        assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path, capsys):
    run = write(tmp_path / "run", [settings(), product(1), step(1)])
    (tmp_path / "folder").mkdir()
    for output in (tmp_path / "folder", run / "observations.jsonl" / "below.html"):
        with pytest.raises(SystemExit):
            main(["report", str(run), "-o", str(output)])
        assert f" --output: got {output}, which cannot be written: " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "observations.jsonl", "run"]
