# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page in a browser: plots are drawn, nothing is complained of, tables have their rows and are sorted by a click."""

import html.parser
import re
import shutil
import subprocess

import made_up
import merging
import pytest
from findings import findings
from metrics import TIME
from plots import all_plots
from summary import Comparison
from tables import all_tables
from webpage import content, document

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=60000",
    "--window-size=1300,900",
)
# At the end of the page, when all is drawn: every list is turned to each of its views, and a table is sorted in both directions.
_PROBE = """<script>(async () => {
  while (document.documentElement.dataset.drawn !== 'all') await new Promise(done => setTimeout(done, 50));
  for (const list of document.querySelectorAll('select')) {
    for (const option of [...list.options, list.options[0]]) {
      list.value = option.value; list.dispatchEvent(new Event('change')); await new Promise(done => setTimeout(done, 20));
    }
  }
  const first = () => document.querySelector('#table-overview tbody tr td').textContent;
  const head = document.querySelectorAll('#table-overview th button')[1];
  head.click(); document.documentElement.dataset.least = first();
  head.click(); document.documentElement.dataset.most = first();
  document.documentElement.dataset.probed = 'yes';
})();</script>"""


def _probe(table):
    return _PROBE.replace("overview", table)


class Elements(html.parser.HTMLParser):
    """Counts rows by table and drawn traces by plot."""

    def __init__(self):
        super().__init__()
        self.rows, self.drawn, self.root = {}, {}, {}
        self._table = self._plot = ""

    def handle_starttag(self, tag, attrs):
        found = {k: v or "" for k, v in attrs}
        classes = found.get("class", "").split()
        if tag == "html":
            self.root = found
        elif tag == "table":
            self._table = found.get("id", "")
            self.rows[self._table] = -1  # the head's
        elif tag == "tr":
            self.rows[self._table] += 1
        elif "plot" in classes and tag == "div":
            self._plot = found["id"]
            self.drawn[self._plot] = 0
        elif self._plot and {"trace", "hm"} & set(classes):
            self.drawn[self._plot] += 1


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return Comparison(made_up.stored(tmp_path_factory.mktemp("made_up") / "x.jsonl"))


@pytest.fixture(scope="module")
def plots(data):
    return {p.name: p for p in all_plots(data)}


@pytest.fixture(scope="module")
def page(data):
    return document(content(data, ["a < b", *findings(data)]))


def _dump(text, folder):
    (folder / "page.html").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", (folder / "page.html").as_uri()],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=240,
        check=False,
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_a_browser_draws_the_page(data, page, tmp_path):
    text, complaints = _dump(page.replace("</body>", _probe("overview") + "</body>"), tmp_path)
    assert not complaints
    elements = Elements()
    elements.feed(text)
    assert elements.root.get("data-probed") == "yes"
    assert (elements.root["data-least"], elements.root["data-most"]) == ("terrace", "right")
    assert set(elements.drawn) == {"time_memory", "heat", "ratios", "bars", "latency", "throughput"}
    for name, traces in elements.drawn.items():
        assert traces >= (1 if name == "heat" else len(made_up.FACTOR)), name
    assert elements.rows == {f"table-{t.name}": len(t.rows) for t in all_tables(data) if t.rows}


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_a_browser_draws_the_page_of_several_machines(tmp_path):
    head = made_up.header()
    head.machine |= {"processor": "another <b>", "cores": "2"}
    head.allocators.pop("right")
    paths = [tmp_path / "first.jsonl", made_up.stored(tmp_path / "second.jsonl", rounds=2, told=head).path]
    made_up.stored(paths[0], rounds=2)
    merging.report(paths, tmp_path)
    text, complaints = _dump((tmp_path / "merged.html").read_text().replace("</body>", _probe("means-seconds") + "</body>"), tmp_path)
    assert not complaints
    elements = Elements()
    elements.feed(text)
    assert elements.root.get("data-probed") == "yes"
    assert (elements.root["data-least"], elements.root["data-most"]) == ("terrace", "right")
    assert elements.drawn.keys() == {"means", "heat", "time_memory"}
    assert elements.drawn["means"] == elements.drawn["time_memory"] == len(made_up.FACTOR)
    assert elements.drawn["heat"] >= 1
    assert "another &lt;b&gt;, 2 cores" in text


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_a_complaint_of_a_page_is_seen(tmp_path):
    _, complaints = _dump("<body><script>throw new Error('seen')</script></body>", tmp_path)
    assert complaints


def test_the_page_needs_nothing_from_elsewhere_and_takes_no_text_for_markup(page):
    assert "a &lt; b" in page
    assert made_up.REASON not in page
    outside_scripts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", outside_scripts)
    assert "<script src" not in page and "<link" not in page


def test_every_plot_says_how_it_is_read_and_has_all_allocators(plots):
    assert all(p.help for p in plots.values())
    first = {name: next(iter(p.choices.values())) for name, p in plots.items()}
    assert [t.name for t in first["time_memory"].data] == list(made_up.FACTOR)
    assert list(first["heat"].data[0].x) == list(made_up.FACTOR)
    assert list(plots["bars"].choices) == list(made_up.WORKLOADS)
    assert list(plots["throughput"].choices) == ["churn", "ring", "sleepers"]
    assert list(first["throughput"].data[0].x) == [1, 2, 4, 8]
    marks = [t.marker.symbol for t in first["ratios"].data]
    assert len(set(marks)) == len(marks), "told apart by colour alone"


def test_the_point_of_an_allocator_is_its_mean(data, plots):
    point = next(t for t in next(iter(plots["time_memory"].choices.values())).data if t.name == "left")
    assert list(point.x) == [data.mean(TIME, "all", "left").middle]
