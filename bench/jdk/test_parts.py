# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the JVMs log and say is read rightly, the flags are those that the JVMs know, verdicts follow from the numbers, and what failed is
left out."""

import argparse
import dataclasses
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("common", "seeds")]

import jdk
import javac
import logs
import material
from cells import Cell, Experiment, Program, Site, command, jmh_values, known, measure, run_cell, without_failed
from interleave import AGAIN, Rounds, median, ratio
from jvms import CORE, ON, PATCHED, STOCK, Jvm, flags_of, heap, name_of, tlab
from material import Material, NotRun
from report import Report
from shown import at_least, at_most, foreign_percent, middle, over, per_operation, wasted_percent
from workload import Failed, Launched

# As the JVMs write it, long numbers shortened.
LOG = """[0.004s][info ][gc] Using Parallel
[1.000s][debug][gc,tlab] GC(0) TLAB totals: thrds: 8  refills: 50 max: 11 slow allocs: 0 max 0 waste: 6.7% gc: 1048576B max: 9B slow: 1048576B max: 4B
[1.001s][debug][gc,hab ] core: size 256K refills 100 refilled 25600K foreign 2 busy 1 neighbours 3 wasted 1024K
[1.002s][info ][gc     ] GC(0) Pause Young (Allocation Failure) 451M->41M(1125M) 74.500ms
[2.000s][debug][gc,tlab] GC(1) TLAB totals: thrds: 5  refills: 40 max: 22 slow allocs: 0 max 0 waste:  2.3% gc: 2097152B max: 4B slow: 0B max: 6B
[2.001s][debug][gc,hab ] core: size 256K refills 160 refilled 40960K foreign 6 busy 1 neighbours 13 wasted 2048K
[2.002s][info ][gc     ] GC(1) Pause Young (Allocation Failure) 100M->40M(1125M) 10.500ms
[2.500s][info ][gc     ] GC(2) Pause Remark 45M->45M(1125M) 1.500ms
[3.002s][info ][gc     ] GC(3) Pause Full (System.gc()) 50M->40M(1125M) 30.000ms
"""
FLAGS = """     bool UseTLAB                                  = true                                      {product} {default}
    ccstr HABLevels                                = core                                 {experimental} {default}
   size_t TLABSize                                 := 4096                                      {product} {command line}
openjdk version "25.0.3"
"""


class Log(unittest.TestCase):
    def test_the_lines_of_the_window_count(self) -> None:
        values = logs.parse(LOG, 1.5, 2.9)
        self.assertEqual((values["collections"], values["collected_mib"], values["tlab_refills"]), (1, 60, 40))

    def test_pauses_that_collect_nothing_are_pauses(self) -> None:
        values = logs.parse(LOG, 1.5, 2.9)
        self.assertEqual((values["pause_ms"], values["longest_ms"]), (12, 10.5))

    def test_full_collections_count(self) -> None:
        self.assertEqual(logs.parse(LOG)["collections"], 3)

    def test_the_buffers_counters_before_the_window_are_taken_off(self) -> None:
        values = logs.parse(LOG, 1.5, 2.9)
        self.assertEqual([values[f"core.{k}"] for k in logs.COUNTS], [60, 4, 0, 10, 1024])
        self.assertEqual(logs.parse(LOG)["core.refills"], 160)

    def test_waste_is_that_of_tlabs_and_buffers(self) -> None:
        self.assertEqual(logs.parse(LOG, 1.5, 2.9)["wasted_mib"], 3)
        self.assertEqual(logs.parse(LOG)["wasted_mib"], 6)

    def test_what_never_occurred_is_nothing(self) -> None:
        values = logs.parse("", 0, 1)
        self.assertEqual((values["collections"], values["pause_ms"], "core.refills" in values), (0, 0, False))

    def test_by_core_short_tlabs_waste_but_are_no_labs(self) -> None:
        text = LOG.replace("wasted 1024K", "wasted 1024K\n[1.001s][debug][gc,hab ] direct 1 (2K), by core")
        values = logs.parse(text)
        self.assertEqual([values[k] for k in ("by_thread", "by_core", "labs", "wasted_mib")], [1, 1, 50 + 160, 6])

    def test_labs_are_tlabs_and_buffers(self) -> None:
        self.assertEqual(logs.parse(LOG, 1.5, 2.9)["labs"], 100)


class Flags(unittest.TestCase):
    def jvm(self) -> Jvm:
        return Jvm(Path("jdk"), "", flags_of(FLAGS))

    def test_known_flags_are_read(self) -> None:
        self.assertEqual(self.jvm().flags, {"UseTLAB", "HABLevels", "TLABSize"})

    def test_unknown_flags_are_named(self) -> None:
        self.assertEqual(self.jvm().unknown(["-Xmx1g", "-XX:-UseTLAB", "-XX:HABLevels=llc", "-XX:HABAssociation=core"]), ["HABAssociation"])

    def test_names_of_flags(self) -> None:
        self.assertEqual([name_of(f) for f in ("-XX:+A", "-XX:-B", "-XX:C1=2", "-Xss1m")], ["A", "B", "C1", ""])

    def test_sizes_of_tlabs(self) -> None:
        self.assertEqual(tlab("none"), ("-XX:-UseTLAB",))
        self.assertEqual(tlab("growing"), ())
        self.assertIn("-XX:MinTLABSize=1k", tlab("1K"))
        self.assertEqual(tlab("16K"), ("-XX:-ResizeTLAB", "-XX:TLABSize=16k"))


ROUNDS: Rounds = {
    "stock": [{"rate": 100.0, "collections": 4.0}, {"rate": 110.0, "collections": 4.0}, {"rate": 90.0, "collections": 4.0}],
    "on": [{"rate": 120.0}, {}, {"rate": 126.0}],
    "dead": [{}, {}, {}],
}


def options(**more: object) -> argparse.Namespace:
    return argparse.Namespace(**({"out": Path("."), "smoke": True, "full": False, "rounds": 1, "build": Path("build")} | more))


class Ratios(unittest.TestCase):
    def test_rounds_in_which_either_failed_do_not_count(self) -> None:
        self.assertAlmostEqual(ratio(ROUNDS, "on", "rate", "stock").median, 1.3)
        self.assertEqual(median(ROUNDS, "on", "rate"), 123)

    def test_what_never_ran_has_no_ratio(self) -> None:
        self.assertIsNone(over(ROUNDS, "dead", "stock"))
        self.assertIsNone(over(ROUNDS, "unknown", "stock"))
        self.assertIsNone(middle(ROUNDS, "dead"))

    def test_what_never_ran_is_left_out(self) -> None:
        self.assertEqual(list(without_failed(ROUNDS)), ["stock", "on"])

    def test_runs_that_do_not_say_it_do_not_count(self) -> None:
        rounds: Rounds = {"a": [{"rate": 1.0}, {"rate": 2.0, "foreign": 4.0}, None]}
        self.assertEqual(middle(rounds, "a", "foreign"), 4.0)

    def test_for_a_million_operations(self) -> None:
        results: Rounds = {"a": [{"collections": 2.0, "operations": 5e5, "server.collections": 1.0, "server.operations": 1e6}]}
        self.assertEqual(per_operation(results, "a", "collections"), 4)
        self.assertEqual(per_operation(results, "a", "collections", prefix="server."), 1)

    def test_foreign_is_a_part_of_the_tlabs(self) -> None:
        taken = {"tlab_refills": 200.0, "core.foreign": 1.0, "core.neighbours": 3.0}
        self.assertEqual(foreign_percent({"a": [taken, taken, {}]}, "a", "core"), 2)
        self.assertIsNone(foreign_percent({"a": [taken | {"tlab_refills": 0.0}]}, "a", "core"))

    def test_waste_is_a_part_of_what_was_collected(self) -> None:
        self.assertEqual(wasted_percent({"a": [{"wasted_mib": 5.0, "collected_mib": 50.0}]}, "a"), 10)


class Verdicts(unittest.TestCase):
    def page(self, directory: str) -> Report:
        return Report("page", Path(directory), "Title", checks_first=True)

    def test_figures_reached_missed_and_not_measured(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            page = self.page(directory)
            page.say("what was found")
            at_least(page, "high enough", over(ROUNDS, "on", "stock"), 1.2)
            at_least(page, "too low", over(ROUNDS, "on", "stock"), 1.31)
            at_most(page, "too high", over(ROUNDS, "on", "stock"), 1.2)
            at_most(page, "left out", None, 1.2)
            page.close()
            text = (Path(directory) / "page.md").read_text()
            html = (Path(directory) / "page.html").read_text()
        rows = {row.split("|")[1].strip(): row.split("|")[4].strip() for row in text.splitlines() if row.count("|") == 5}
        expected = {"high enough": "yes", "too low": "NO", "too high": "NO", "left out": "-"}
        self.assertEqual({what: rows[what] for what in expected}, expected)
        for written in (text, html):
            self.assertLess(written.index("high enough"), written.index("what was found"))

    def test_quartiles_stand_beside(self) -> None:
        self.assertEqual(str(over(ROUNDS, "on", "stock")), "1.30 (1.25-1.35)")


def site(directory: Path, jvms: frozenset[str] = frozenset({"UseTLAB"})) -> Site:
    stock, patched = (Jvm(Path(name), "", jvms) for name in ("/stock", "/patched"))
    return Site(options(out=directory), {STOCK: stock, PATCHED: patched}, Material(Path("/classes"), Path("/archive"), Path("/library"), "/jmh"))


CHAT = Cell("chat", PATCHED, ("-XX:+UseTLAB",), Program(("Chat", "20", "JAVA"), 1))


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)
        self.site = site(self.path)

    def test_the_server_has_the_same_jvm_and_its_own_log(self) -> None:
        words = command(self.site, CHAT, self.path)
        self.assertEqual([w for w in words if w.endswith("/java")], ["/patched/bin/java"] * 2)
        self.assertEqual(words.count("-XX:+UseTLAB"), 2)
        self.assertEqual(len({w for w in words if w.startswith("-Xlog:")}), 2)

    def test_only_the_patched_jvm_logs_buffers(self) -> None:
        for jvm, logged in ((STOCK, False), (PATCHED, True)):
            log = next(w for w in command(self.site, dataclasses.replace(CHAT, jvm=jvm), self.path) if w.startswith("-Xlog:"))
            self.assertEqual("gc+hab" in log, logged)

    def test_jmh_forks_the_jvm_in_question(self) -> None:
        words = command(self.site, Cell("jmh", PATCHED, ("-XX:+UseTLAB",), Program(("JMH", "bench"), 1)), self.path)
        self.assertEqual((words[0], words[words.index("-jvm") + 1]), ("/stock/bin/java", "/patched/bin/java"))
        self.assertIn("-XX:+UseTLAB", words[words.index("-jvmArgs") + 1])

    def test_a_fork_that_died_is_a_failure(self) -> None:
        self.assertEqual(jmh_values([{"primaryMetric": {"score": 5}}]), {"rate": 5})
        with self.assertRaises(Failed):
            jmh_values([])

    def test_cells_with_unknown_flags_are_left_out_with_a_line(self) -> None:
        page = mock.Mock()
        cells = [CHAT, Cell("by core", PATCHED, CORE, CHAT.program)]
        self.assertEqual(known(self.site, cells, page), [CHAT])
        said = page.say.call_args.args[0]
        self.assertIn("HABAssociation", said)
        self.assertIn("by core", said)

    def test_what_a_run_gives(self) -> None:
        def launch(_build: Path, _subject: object, words: list[str], timeout: float) -> Launched:
            for word in words:
                if word.startswith("-Xlog:"):
                    Path(word.split("file=")[1].split(":")[0]).write_text(LOG)
            said = {"rate": 7.0, "from_uptime": 1.5, "to_uptime": 2.9, "server.rate": 7.0, "server.from_uptime": 0.5, "server.to_uptime": 2.9}
            return Launched({"peak_rss": 1.0}, "noise\n" + json.dumps(said) + "\n", "")

        with mock.patch("cells.launched", launch):
            values = run_cell(self.site, CHAT)
        self.assertEqual((values["rate"], values["peak_rss"], values["collections"], values["server.collections"]), (7, 1, 1, 2))

    def test_a_program_that_says_nothing_failed(self) -> None:
        with mock.patch("cells.launched", return_value=Launched({}, "", "")), self.assertRaises(Failed):
            run_cell(self.site, CHAT)

    def test_a_program_that_did_nothing_failed(self) -> None:
        said = '{"rate": 0.0, "from_uptime": 1.0, "to_uptime": 2.0}'
        with mock.patch("cells.launched", return_value=Launched({}, said, "")), self.assertRaisesRegex(Failed, "did nothing"):
            run_cell(self.site, CHAT)

    def test_a_cell_that_fails_is_an_error_line_and_the_rest_is_measured(self) -> None:
        def run(_site: Site, cell: Cell) -> dict[str, float]:
            if cell.name == "bad":
                raise Failed("out of memory")
            return {"rate": 1.0}

        page = mock.Mock()
        cells = [dataclasses.replace(CHAT, name=name) for name in ("good", "bad")]
        with mock.patch("cells.run_cell", run):
            results = measure(self.site, Experiment("some", lambda _: cells, mock.Mock()), page)
        self.assertEqual(set(results), {"good", AGAIN})
        self.assertEqual(page.say.call_args.args[0], "Error, left out: bad: out of memory")


class Experiments(unittest.TestCase):
    def test_every_experiment_reports_what_is_there_and_what_is_not(self) -> None:
        """A report of no results at all, and one of results in every cell."""
        for chosen in (["--quick"], [], ["--full"]):
            _, found = jdk.parse(chosen)
            for experiment in jdk.EXPERIMENTS.values():
                cells = experiment.cells(found)
                values = {"rate": 1.0, "processor_rate": 1.0, "operations": 2.0, "window_seconds": 1.0, "tlab_refills": 5.0, "peak_rss": 1.0} | logs.parse(LOG)
                values |= {f"server.{k}": v for k, v in values.items()}
                for results in ({}, {name: [dict(values)] for name in (*(c.name for c in cells), AGAIN)}):
                    with self.subTest(experiment.name, words=chosen, results=bool(results)):
                        page = mock.Mock()
                        experiment.report(found, page, results)
                        verdicts = {call.args[3] for call in page.check.call_args_list}
                        self.assertLessEqual(verdicts, {True, False} if results else {None})

    def test_the_reserve_stands_apart(self) -> None:
        """Whatever is by thread with the buffers on runs with C2's prefetch reserve kept, too, and this is not in the same column."""
        _, found = jdk.parse([])
        kept = "-XX:+HABKeepPrefetchReserve"
        for experiment in (e for e in jdk.EXPERIMENTS.values() if e.name != "chat"):  # which has stock alone by thread
            cells = experiment.cells(found)
            on = [set(c.flags) for c in cells if "-XX:+UseHierarchicalAllocBuffers" in c.flags]
            with_it = [flags - {kept} for flags in on if kept in flags]
            self.assertTrue(with_it, experiment.name)
            self.assertTrue(all(flags in on for flags in with_it), experiment.name)

    def test_what_a_run_does_not_tell_has_no_ratio(self) -> None:
        results: Rounds = {"a": [{"rate": 2.0}], "b": [{"rate": 1.0}]}
        self.assertIsNone(over(results, "a", "b", "processor_rate"))

    def test_names_are_unique(self) -> None:
        for chosen in (["--quick"], [], ["--full"]):
            _, found = jdk.parse(chosen)
            for experiment in jdk.EXPERIMENTS.values():
                names = [c.name for c in experiment.cells(found)]
                self.assertEqual(len(names), len(set(names)))

    def test_the_whole_takes_an_hour_and_a_quick_run_four_minutes(self) -> None:
        for words, most in (([], 62), (["--quick"], 4.5)):
            chosen, found = jdk.parse(words)
            self.assertLessEqual(sum(jdk.EXPERIMENTS[name].minutes(found) for name in chosen), most)

    def test_off_has_no_flag_of_ours(self) -> None:
        _, found = jdk.parse([])
        off = [c for c in jdk.EXPERIMENTS["overall"].cells(found) if c.name.endswith(", off")]
        self.assertTrue(off)
        for cell in off:
            self.assertEqual(cell.jvm, PATCHED)
            self.assertFalse([f for f in cell.flags if "HAB" in f or "Hierarchical" in f])

    def test_stock_has_no_flag_of_ours(self) -> None:
        _, found = jdk.parse(["--full"])
        for cell in (c for e in jdk.EXPERIMENTS.values() for c in e.cells(found) if c.jvm == STOCK):
            self.assertFalse([f for f in cell.flags if "HAB" in f or "Hierarchical" in f], cell.name)

    def test_words_are_experiments_and_options(self) -> None:
        chosen, found = jdk.parse(["chat", "--quick", "--rounds", "7", "--patched", "/jdk", "javac"])
        self.assertEqual((chosen, found.smoke, found.rounds, found.patched), (["chat", "javac"], True, 1, Path("/jdk")))

    def test_the_papers_tables_have_their_sizes(self) -> None:
        self.assertTrue(all(len(row) == len(javac.PLABS) for row in javac.TABLE_1.values()))
        self.assertTrue(all(len(row) == len(javac.CLABS) for row in javac.TABLE_2.values()))


class Fetching(unittest.TestCase):
    def test_another_file_is_removed(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "archive.jar"
            path.write_text("something else")
            with self.assertRaises(NotRun):
                material.checked(path, material.SHA256)
            self.assertFalse(path.exists())

    def test_no_maven_is_said(self) -> None:
        with tempfile.TemporaryDirectory() as directory, mock.patch("shutil.which", return_value=None), self.assertRaisesRegex(NotRun, "no mvn"):
            material.fetch(Path(directory))


class Heaps(unittest.TestCase):
    def test_the_young_space_is_fixed(self) -> None:
        self.assertIn("-Xmn4m", heap("4m", "64m"))
        self.assertIn("-XX:-UseAdaptiveSizePolicy", heap("4m", "64m"))
        self.assertNotIn("-XX:-UseAdaptiveSizePolicy", heap("4m", "64m", "G1"))

    def test_on_unlocks_first(self) -> None:
        self.assertLess(ON.index("-XX:+UnlockExperimentalVMOptions"), ON.index("-XX:+UseHierarchicalAllocBuffers"))


if __name__ == "__main__":
    unittest.main()
