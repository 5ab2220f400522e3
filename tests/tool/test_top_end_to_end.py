# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace top` of real processes: its tables, its numbers for scripts, and each of its keys."""

import asyncio
import json

import pytest

for module in ("numpy", "scipy", "elftools", "rich"):
    pytest.importorskip(module)

# ruff: noqa: E402 - what follows needs these
from terrace.cli import main

from debugged import LIBRARY, compiled, running, terrace
from sites import KEPT, MIB, SAMPLED

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/release is not built")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("program"), "-O2", name="sites")


def once(capsys, *words: object, seconds: str = "0.2") -> str:
    assert main(["top", "--once", "--seconds", seconds, *map(str, words)]) == 0
    return capsys.readouterr().out


def test_classes_by_live_bytes_and_levels(program, capsys) -> None:
    with running(program) as process:
        text = once(capsys, process.pid)
    assert f"process {process.pid} (sites): live 56" in text and "mallocs/s" in text
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert names.index("256") < names.index("512")
    assert "processor" in text


def test_numbers_for_scripts(program, capsys) -> None:
    with running(program, "churn") as process:
        found = json.loads(once(capsys, process.pid, "--json", seconds="1"))
        process.kill()
        process.returncode = 0
    assert found["pid"] == process.pid and found["library"] == str(LIBRARY.resolve())
    assert sum(KEPT.values()) <= found["live_bytes"] < sum(KEPT.values()) + 2 * MIB
    by_name = {c["name"]: c for c in found["classes"]}
    assert by_name["256"]["in_use"] >= 65536 and by_name["512"]["in_use"] >= 16384
    # Two kinds of blocks, which are freed at once, in turn.
    rates = sorted(c["allocations_per_second"] for c in found["classes"])
    assert rates[-1] > 0 and rates[-1] == pytest.approx(rates[-2], rel=0.5)
    assert {level["name"] for level in found["levels"]} >= {"core", "processor", "slabs"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["1"], "this is no terminal; --once prints tables"),
        (["1", "--json"], "--json is for --once"),
        (["1", "--once", "--seconds", "0"], "more than 0"),
        (["4194303", "--once"], "there is no process 4194303"),
    ],
)
def test_what_can_not_be_done_is_one_line(words, line) -> None:
    done = terrace("top", *words, stdin=-3)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert done.stderr.count("\n") == 1 and line in done.stderr


def on_the_screen(pid: int, steps, seconds: float = 0.2):
    """Of 80 columns; `steps` presses keys and looks."""
    pytest.importorskip("textual")
    from terrace.top.looks import process
    from terrace.top.screen import TopScreen

    async def session():
        app = TopScreen(process(str(pid)), seconds)
        async with app.run_test(size=(80, 30)) as pilot:
            await pilot.pause()
            return await steps(app, pilot)

    return asyncio.run(session())


def first_cells(app) -> list[str]:
    from textual.widgets import DataTable

    table = app.query_one(DataTable)
    return [str(table.get_row_at(i)[0]) for i in range(table.row_count)]


async def report(app, pilot, key: str) -> str:
    from textual.widgets import Static

    await pilot.press(key)
    await app.workers.wait_for_complete()
    await pilot.pause()
    text = str(app.screen.query_one("#report", Static).content)
    await pilot.press("escape")
    await pilot.pause()
    return text


def test_keys_sort_and_filter(program) -> None:
    async def steps(app, pilot):
        found = [first_cells(app)]
        for keys in (["r"], ["r", "s"], ["slash", "5", "1", "2", "enter"]):
            await pilot.press(*keys)
            await pilot.pause()
            found.append(first_cells(app))
        return found

    with running(program) as process:
        by_live, reverse, by_number, filtered = on_the_screen(process.pid, steps)
    assert by_live[:3] == ["large", "256", "512"] and reverse == by_live[::-1]
    assert by_number[0] == "256"  # 65,536 of them
    assert filtered and all("512" in name for name in filtered)


def test_keys_show_reports(program, monkeypatch) -> None:
    from terrace.debug.sampled.symbolizer import has_unwinder

    async def steps(app, pilot):
        found = {key: await report(app, pilot, key) for key in ("l", "o")}
        if has_unwinder():
            found["p"] = await report(app, pilot, "p")
        assert len(app.screen_stack) == 1
        return found

    with running(program, "churn", **SAMPLED) as process:
        from terrace.top import screen

        monkeypatch.setattr(screen, "_PROFILE_SECONDS", 3.0)
        found = on_the_screen(process.pid, steps)
        process.kill()
        process.returncode = 0
    assert "16,384 blocks leaked, 8,388,608 bytes" in found["l"]
    assert "200 of " in found["o"] or "blocks in use" in found["o"]
    assert "often" in found.get("p", "often")


def test_it_ends_with_the_process(program) -> None:
    with running(program) as process:

        async def steps(app, pilot):
            process.communicate()
            for _ in range(600):
                if not app.is_running:
                    break
                await pilot.pause(0.1)
            return app.return_value

        assert on_the_screen(process.pid, steps) == 0


def test_a_tick_while_it_is_taken_down_is_nothing(program) -> None:
    async def steps(app, pilot):
        for widget in list(app.screen.children):
            await widget.remove()
        app._again()
        return True

    with running(program) as process:
        assert on_the_screen(process.pid, steps)
