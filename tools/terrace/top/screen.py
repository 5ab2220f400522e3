# SPDX-License-Identifier: MIT OR Apache-2.0
"""The screen, by Textual: tables, history, keys, and reports in front of them."""

import argparse
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.app import App, ComposeResult
from textual.containers import Horizontal, ScrollableContainer
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Label, Sparkline, Static

from terrace.debug import reports
from terrace.debug.live import LiveTarget
from terrace.errors import TerraceError
from terrace.top import contents
from terrace.top.looks import COLUMNS, Look, Looker, levels

_HISTORY = 120  # looks
_PROFILE_SECONDS = 10.0


class ReportScreen(ModalScreen[None]):
    """Of another command, until a key closes it."""

    BINDINGS: ClassVar = [("escape,q", "dismiss", "close")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self._heading = title

    def compose(self) -> ComposeResult:
        yield Label(f"{self._heading} (Escape closes)")
        with ScrollableContainer():
            yield Static(Text("working ..."), id="report")

    def show(self, text: str) -> None:
        """What it says; by then it may be closed."""
        for static in self.query("#report").results(Static):
            static.update(Text(text, no_wrap=True))


def _profile(target: LiveTarget, width: int) -> str:
    from terrace.profile.command import of_target
    from terrace.profile.text import print_sites

    options = argparse.Namespace(seconds=_PROFILE_SECONDS, allocated=True, peak=False)
    profile = of_target(str(target.pid), options)
    console = Console(highlight=False, width=width)
    with console.capture() as written:
        print_sites(profile, console)
    return written.get()


class TopScreen(App[int]):
    """Until `q`, or the process's end."""

    CSS = """
    #title { height: auto; text-style: bold; }
    .history { height: 3; }
    .history Label { width: 12; }
    DataTable { height: 1fr; }
    #levels { height: auto; }
    ReportScreen Label { width: 100%; background: $panel; }
    #report { width: auto; }
    #filter { display: none; }
    #filter.shown { display: block; }
    """
    BINDINGS: ClassVar = [
        ("s", "sort", "sort"), ("r", "reverse", "reverse"), ("slash", "filter", "filter"),
        ("l", "leaks", "findleaks"), ("p", "profile", "profile"),
        ("o", "objects", "objects"), ("q", "quit", "quit"),
    ]  # fmt: skip
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, target: LiveTarget, seconds: float) -> None:
        super().__init__()
        self._target, self._seconds = target, seconds
        self._looker = Looker(target)
        self._look = self._looker.look()
        self._column, self._ascending, self._wanted = 1, False, ""
        self._live: deque[float] = deque(maxlen=_HISTORY)
        self._rates: deque[float] = deque(maxlen=_HISTORY)

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Horizontal(classes="history"):
            yield Label("live bytes")
            yield Sparkline(id="live")
        with Horizontal(classes="history"):
            yield Label("mallocs/s")
            yield Sparkline(id="rate")
        yield Input(placeholder="part of a name or size; Enter", id="filter")
        yield DataTable(cursor_type="row", id="classes")
        yield Static(id="levels")
        yield Footer()

    def on_mount(self) -> None:
        self._fill(self._look)
        self.query_one(DataTable).focus()
        self.set_interval(self._seconds, self._again)

    def _again(self) -> None:
        if not self.query("#title"):
            return  # it is being taken down, and the clock still ticks
        try:
            self._look = self._looker.look()
        except TerraceError as error:
            self.exit(0, message=f"terrace: {error}")
            return
        self._live.append(self._look.snapshot.live_bytes)
        self._rates.append(self._look.rate)
        self._fill(self._look)

    def _fill(self, look: Look) -> None:
        self.query_one("#title", Static).update(Text(look.title(self._target.title)))
        self.query_one("#live", Sparkline).data = list(self._live)
        self.query_one("#rate", Sparkline).data = list(self._rates)
        self.query_one("#levels", Static).update(levels(look.snapshot))
        table = self.query_one(DataTable)
        chosen, at = self._chosen(), table.cursor_row
        table.clear(columns=True)
        arrow = "▲" if self._ascending else "▼"
        for i, name in enumerate(COLUMNS):
            table.add_column(Text(f"{name}{arrow if i == self._column else ''}", justify="right"))
        rows = look.sorted(self._column, self._ascending, self._wanted)
        for row in rows:
            cells = (Text(cell, justify="right") for cell in row.cells())
            table.add_row(*cells, key=str(row.size_class))
        keys = [str(row.size_class) for row in rows]
        table.move_cursor(row=keys.index(chosen) if chosen in keys else at, animate=False)

    def _chosen(self) -> str | None:
        table = self.query_one(DataTable)
        if not table.row_count:
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def action_sort(self) -> None:
        self._column = (self._column + 1) % len(COLUMNS)
        self._fill(self._look)

    def action_reverse(self) -> None:
        self._ascending = not self._ascending
        self._fill(self._look)

    def action_filter(self) -> None:
        words = self.query_one(Input)
        words.add_class("shown")
        words.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._wanted = event.value
        self._fill(self._look)

    def on_input_submitted(self) -> None:
        self.query_one(Input).set_class(bool(self._wanted), "shown")
        self.query_one(DataTable).focus()

    def action_leaks(self) -> None:
        self._report("findleaks", lambda: "\n".join(reports.findleaks(self._target, False)))

    def action_profile(self) -> None:
        width = self.size.width
        title = f"profile: what is allocated in {_PROFILE_SECONDS:g} s"
        self._report(title, lambda: _profile(self._target, width))

    def action_objects(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        name = next(row.name for row in self._look.rows if str(row.size_class) == chosen)

        def text() -> str:
            return "\n".join(contents.lines(self._target, int(chosen)))

        self._report(f"objects of {name}", text)

    def _report(self, title: str, text: Callable[[], str]) -> None:
        screen = ReportScreen(title)
        self.push_screen(screen)
        # Beside the screen: a process is stopped and read by one thread.
        self.run_worker(lambda: self._write(screen, text), thread=True, exclusive=True)

    def _write(self, screen: ReportScreen, text: Callable[[], str]) -> None:
        try:
            found = text()
        except (ImportError, TerraceError) as error:
            found = str(error)
        self.call_from_thread(screen.show, found)
