# SPDX-License-Identifier: MIT OR Apache-2.0
"""The harness of `terrace bench users`: steps, records, parsers, loads, with made-up programs; nothing is built or measured."""

import hashlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in ("common", "users"):
    sys.path.insert(0, str(ROOT / "bench" / folder))

import memcached
import openzfs
import origin
import records
import sources
import users
import varnish
from program import DEBUGGED, WITH, WITHOUT
from steps import Step
from workload import Failed

from terrace.errors import TerraceError
from terrace.download import Download, download


def test_every_source_is_pinned_to_a_version_a_size_and_a_checksum():
    found = sources.read((sources.INTEGRATION / "sources.txt").read_text())
    assert set(found) == set(users.PROGRAMS)
    for source in found.values():
        assert re.fullmatch(r"[0-9a-f]{64}", source.sha256) and source.bytes > 0
        assert source.version in source.archive and source.archive.startswith("pool/")


def test_another_file_than_the_pinned_one_is_refused_and_not_kept(tmp_path):
    (tmp_path / "served").write_bytes(b"other")
    wanted = Download("a.tar", (tmp_path / "served").as_uri(), 5, hashlib.sha256(b"right").hexdigest(), "")
    with pytest.raises(TerraceError, match="is not the file"):
        download(tmp_path / "kept", wanted)
    assert list((tmp_path / "kept").iterdir()) == []


def counted(folder, word="x", files=()):
    return Step("count", folder, [["sh", "-c", f"echo {word} >> done"]], files)


def test_a_step_is_done_once_and_again_when_its_words_or_files_differ(tmp_path):
    header = tmp_path / "header"
    header.write_text("1")
    assert counted(tmp_path / "b", files=[header]).do()
    assert not counted(tmp_path / "b", files=[header]).do()
    assert counted(tmp_path / "b", "y", [header]).do()
    header.write_text("2")
    assert counted(tmp_path / "b", "y", [header]).do()
    assert (tmp_path / "b" / "done").read_text() == "x\ny\ny\n"


def test_a_step_that_fails_says_what_was_printed_and_is_done_again(tmp_path):
    step = Step("fail", tmp_path, [["sh", "-c", "echo because; test -e allowed"]])
    with pytest.raises(Failed, match=r"(?s)fail: sh ended with 1.*because"):
        step.do()
    (tmp_path / "allowed").touch()
    assert step.do()


def test_a_step_without_its_program_is_one_line(tmp_path):
    with pytest.raises(Failed, match=r"^none: /no/such: No such file"):
        Step("none", tmp_path, [["/no/such"]]).do()


def test_what_was_found_is_there_again_until_the_library_changes(tmp_path):
    record = records.opened(tmp_path / "r.json", "lib1")
    record.put_check(WITH, {"a": "passed"}, ["a"])
    record.put_round(WITH, {"rate": 2.0, "rss": 1.0})
    again = records.opened(tmp_path / "r.json", "lib1")
    assert again.checks == {WITH.name: {"a": "passed"}}
    assert again.again == {WITH.name: ["a"]}
    assert again.has_round(WITH, 0) and not again.has_round(WITH, 1) and not again.has_round(WITHOUT, 0)
    assert records.opened(tmp_path / "r.json", "lib2").rounds == {}
    (tmp_path / "r.json").write_text("{")
    assert records.opened(tmp_path / "r.json", "lib1").checks == {}


def test_worse_is_what_passed_on_malloc_and_did_not_on_libumem():
    base = {"a": "passed", "b": "passed", "c": "failed", "d": "skipped", "e": "passed"}
    assert records.worse(base, {"a": "passed", "b": "failed", "c": "failed", "d": "failed"}) == ["b", "e"]


def test_ratios_are_of_the_same_round(tmp_path):
    record = records.Record(tmp_path / "r.json", "lib")
    for base, ours in ((10.0, 20.0), (100.0, 300.0), (1.0, 4.0)):
        record.put_round(WITHOUT, {"rate": base, "rss": 0})
        record.put_round(WITH, {"rate": ours, "rss": 0})
    record.put_round(WITH, {"rate": 1e9, "rss": 0})  # a round that has only begun
    assert records.ratios(record, WITH, WITHOUT).median == 3.0
    assert records.ratios(record, DEBUGGED, WITHOUT) is None


class MadeUp:
    name, gib, minutes, counts = "madeup", 0.1, 1, "calls"
    settings = (WITHOUT, WITH)

    def __init__(self):
        self.calls = []

    def check(self, _library, setting):
        self.calls.append(("check", setting.name))
        failed = "passed" if setting == WITHOUT else "failed"
        return {"a": "passed", "b": failed, "c": failed}

    def check_again(self, _library, setting, tests):
        self.calls.append(("check again", setting.name, *tests))
        return {test: "passed" if test == "c" else "failed" for test in tests}

    def measure(self, _library, setting):
        self.calls.append(("measure", setting.name))
        return {"rate": 100.0 if setting == WITHOUT else 150.0, "rss": 1 << 20}


def test_settings_take_turns_and_a_run_that_was_ended_goes_on(tmp_path, capsys):
    program = MadeUp()
    record = records.opened(tmp_path / "r.json", "lib")
    record.put_round(WITHOUT, {"rate": 1.0, "rss": 0.0})
    users.load(program, None, record, 2)
    assert program.calls == [("measure", n) for n in (WITH.name, WITH.name, WITHOUT.name)]
    users.load(program, None, record, 2)
    users.check(program, None, record)
    users.check(program, None, record)
    assert len(program.calls) == 7
    assert "madeup, libumem: its tests ..." in capsys.readouterr().out


def test_the_table_names_what_is_worse(tmp_path, capsys):
    program = MadeUp()
    record = records.opened(tmp_path / "r.json", "lib")
    users.check(program, None, record)
    users.load(program, None, record, 1)
    assert users.row(program, record, WITH) == ["libumem", "150", record_ratio(record), "1", 2, 1, 0, 1]
    assert users.show([program], {"madeup": record}, users.Report("users", tmp_path)) == 1
    shown = capsys.readouterr().out
    assert "worse, libumem: b" in shown
    assert "passed when they ran once more, libumem: c\n" in shown
    assert ("check again", "libumem", "b", "c") in program.calls


def record_ratio(record):
    return records.ratios(record, WITH, WITHOUT)


def test_disk_and_time_are_said_first(monkeypatch, capsys):
    text = users.announcement(list(users.PROGRAMS.values()), 3, 7.4)
    assert re.match(r"openzfs, varnish, memcached: up to [\d.]+ GiB of disk below .* \(7 GiB are free\) and \d+ minutes", text)
    with pytest.raises(SystemExit):
        users.arguments(["nonsense"])
    assert "there is no nonsense; there are: openzfs varnish memcached" in capsys.readouterr().err


ZTEST = """
Pass   1, Complete,   0 ENOSPC, 10.1% of  239M used,  20% done,     24s to go

Workload summary:

  Calls      Time   Function
  -----      ----   --------
    123       12s   ztest_dmu_read_write
      4    0h05m   ztest_scrub

Pass   2,  SIGKILL,   0 ENOSPC, 10.1% of  239M used, 100% done,      0s to go
  Calls      Time   Function
     10       ~0s   ztest_dmu_read_write
5.84M completed (   3MB/s) estimated time remaining: 0hr 00min 02sec        1 killed, 1 completed, 50% kill rate
"""


def test_ztest_is_read():
    assert openzfs.calls_in(ZTEST) == 137
    assert openzfs.calls_in("child died with signal 6") == 0
    assert openzfs.outcome(ZTEST, 0) == "passed"
    assert openzfs.outcome(ZTEST, 1) == openzfs.outcome("child died with signal 6", 0) == "failed"
    assert openzfs.is_own_fault("...\nztest: attach (/p/ztest.37a 263716864, /p/ztest.spares.0 330825728, 1) returned 95, expected 0\n")
    assert not openzfs.is_own_fault("umem: heap corruption detected\nchild died with signal 6")
    waits = "#5 vdev_autotrim_stop_wait (tvd=1)\n#1 metaslab_group_disabled_increment (mg=1)\n"
    assert openzfs.is_own_fault(openzfs.STACKS + waits) and not openzfs.is_own_fault(waits)
    assert not openzfs.is_own_fault(openzfs.STACKS + waits + "#2 lock () from /lib/libumem.so.1\n")
    assert openzfs.edited("a b a", "a", "c") == "c b c"
    with pytest.raises(Failed, match="has no 'x'"):
        openzfs.edited("a", "x", "y")


def test_a_process_that_does_not_end_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    with (tmp_path / "log").open("wb") as log:
        status, usage = openzfs.wait(process, 0, log)
    assert status == -9 and usage.ru_maxrss > 0
    if shutil.which("gdb"):
        assert openzfs.STACKS in (tmp_path / "log").read_text()


def test_varnishtest_wrk_and_varnishstat_are_read():
    output = "#    top  TEST /x/s00001.vtc passed (3.792)\n#    top  TEST b00002.vtc FAILED (1.0) exit=2\n# top TEST c1.vtc skipped\n"
    assert varnish.of_varnishtest(output) == {"s00001.vtc": "passed", "b00002.vtc": "failed", "c1.vtc": "skipped"}
    assert varnish.rate_of("Requests/sec:   5910.20\n") == 5910.2
    for bad in ("Requests/sec: 5.0\n  Non-2xx or 3xx responses: 4\n", "  Socket errors: connect 0, read 1\nRequests/sec: 1\n", "?"):
        with pytest.raises(Failed):
            varnish.rate_of(bad)
    moved = varnish.counters_of("SMU.s0.c_req   339037   17844.05 Allocator requests\nSMU.s0.c_freed  5  . x\nSMU.s0.g_bytes  7  . x\n")
    assert moved["SMU.s0.c_req"] == 339037
    varnish.refuse_idle(moved)
    with pytest.raises(Failed, match="c_freed is 0"):
        varnish.refuse_idle(moved | {"SMU.s0.c_freed": 0})


def test_the_origin_serves_the_text_of_a_number():
    assert {origin.size_of(n) // 1024 > 63 for n in range(2000)} == {True, False}
    assert all(origin.SMALLEST <= origin.size_of(n) <= origin.LARGEST for n in range(2000))
    with subprocess.Popen([sys.executable, origin.__file__], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = f"http://127.0.0.1:{int(server.stdout.readline())}"
            for number in (1, 77):
                with urllib.request.urlopen(f"{address}/{number}", timeout=60) as answer:
                    assert answer.read() == origin.body_of(number)
                    assert answer.headers["Cache-Control"] == "max-age=3600"
        finally:
            server.terminate()


def serve_memcached(listener, connections, spoil):
    """Knows set and get, and answers as memcached does; `spoil` changes what it says."""
    store = {}
    for _ in range(connections):
        with listener.accept()[0] as one, one.makefile("rb") as lines:
            said = b""
            for line in lines:
                words = line.split()
                if words[0] == b"set":
                    store[words[1]] = lines.read(int(words[4]) + 2)[:-2]
                    said += b"STORED\r\n"
                else:
                    value = store[words[1]]
                    said += b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (words[1], len(value), value)
                if len(said) >= spoil["size"]:
                    one.sendall(spoil["change"](said))
                    break


@pytest.mark.parametrize("right", [True, False])
def test_memcacheds_answers_are_compared(tmp_path, right):
    talks = [memcached.talk(1, values=5)]
    assert talks == [memcached.talk(1, values=5)] and talks != [memcached.talk(2, values=5)]
    spoil = {"size": len(talks[0].heard), "change": bytes if right else lambda b: b[:-7] + b"?" + b[-6:]}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=serve_memcached, args=(listener, 1, spoil), daemon=True)
        thread.start()
        if right:
            memcached.wave(str(tmp_path / "s"), talks)
        else:
            with pytest.raises(Failed, match="wrong answers"):
                memcached.wave(str(tmp_path / "s"), talks)
        thread.join(60)
        assert not thread.is_alive()
