# SPDX-License-Identifier: MIT OR Apache-2.0
"""Inputs of the programs: written once per scratch directory, the same on every machine."""

import json
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "tests" / "preload"))

from program_inputs import NODE, PERL, SQL, fresh_history, write_history, write_sources

__all__ = ["FILE_SQL", "NODE", "PERL", "SQL", "fresh_history", "write_documents", "write_history", "write_image", "write_lines",
           "write_pages", "write_problems", "write_sources"]

# A database in a file: many small transactions, then queries that sort and group more than the page cache holds.
FILE_SQL = """
pragma synchronous = off;
pragma cache_size = 500;
create table item(id integer primary key, name text, place integer, note text);
create index by_name on item(name);
create index by_place on item(place, name);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 60000)
  insert into item select x, 'name' || (x * 7919 % 60013), x % 500, substr(hex(x * 104729), 1, 4 + x % 9) from c;
update item set note = note || name where place % 3 = 0;
delete from item where id % 7 = 0;
select count(*), sum(length(note)), max(name) from item;
select place, count(*), group_concat(name) from item where place < 60 group by place order by 2 desc, 1;
select json_group_array(json_object('n', name, 'p', place)) from (select * from item order by note, id limit 5000);
select count(*) from item a join item b on a.place = b.place and a.name < b.name where a.place < 40;
pragma integrity_check;
"""


def write_lines(folder: Path, count: int) -> None:
    """Text with words of a small vocabulary, as logs have it."""
    rng = random.Random(11)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(2, 11))) for _ in range(4000)]
    lines = (f"{rng.randrange(10**9)} {' '.join(rng.choices(words, k=rng.randrange(2, 10)))}\n" for _ in range(count))
    (folder / "lines.txt").write_text("".join(lines))


def write_documents(folder: Path) -> None:
    rng = random.Random(12)
    documents = [
        {"id": i, "name": f"name{rng.randrange(5000)}", "tags": [f"t{rng.randrange(90)}" for _ in range(rng.randrange(6))],
         "nested": {"a": rng.random(), "text": "x" * rng.randrange(80)}}
        for i in range(30_000)
    ]
    (folder / "documents.json").write_text(json.dumps(documents))


def write_image(folder: Path) -> None:
    """A photograph's stand-in, 1400 x 1000: gradients with noise on them."""
    rng = random.Random(13)
    width, height = 1400, 1000
    noise = rng.randbytes(width * height)
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            grain = noise[y * width + x] >> 3
            pixels += bytes(((x * 223 // width + grain), (y * 223 // height + grain), ((x ^ y) & 127) + grain))
    (folder / "image.ppm").write_bytes(b"P6 %d %d 255\n" % (width, height) + pixels)


def write_pages(folder: Path) -> None:
    """PostScript: curves, clipped fills, text in several sizes and arrays and dictionaries that the interpreter has to collect."""
    pages = 6
    (folder / "pages.ps").write_text(
        """%!PS
/seed 17 def
/random { /seed seed 8121 mul 28411 add 134456 mod def seed exch mod } def
/fonts [/Times-Roman /Helvetica-Bold /Courier] def
/garbage { 3000 { 8 array dup 0 5 dict put pop 20 string pop } repeat } def
/curves { 250 {
  newpath 600 random 800 random moveto
  600 random 800 random 600 random 800 random 600 random 800 random curveto
  100 random 100 div 100 random 100 div 100 random 100 div setrgbcolor 4 random setlinewidth stroke } repeat } def
/words { 250 {
  fonts 3 random get findfont 6 random 8 add scalefont setfont
  600 random 800 random moveto 100 random 100 div setgray
  seed 20 string cvs show } repeat } def
/discs { 60 {
  gsave newpath 600 random 800 random 60 random 5 add 0 360 arc clip
  newpath 600 random 800 random 90 random 5 add 0 360 arc 100 random 100 div setgray fill grestore } repeat } def
"""
        + f"{pages} {{ garbage curves words discs showpage }} repeat\n"
    )


def _clauses(rng: random.Random, variables: int, ratio: float) -> str:
    def literal() -> str:
        name = f"p{rng.randrange(variables)}"
        return name if rng.random() < 0.5 else f"(not {name})"

    declared = "\n".join(f"(declare-const p{i} Bool)" for i in range(variables))
    clauses = "\n".join(f"(assert (or {literal()} {literal()} {literal()}))" for _ in range(int(variables * ratio)))
    return f"{declared}\n{clauses}\n"


def _schedule(rng: random.Random, jobs: int, machines: int) -> str:
    """Jobs that each visit all machines, no two at once on one: is there a schedule within the time?"""
    lines: list[str] = []
    on_machine: list[list[tuple[str, int]]] = [[] for _ in range(machines)]
    horizon = jobs * 6 + 3
    for j in range(jobs):
        order = rng.sample(range(machines), machines)
        for place, m in enumerate(order):
            name, length = f"t{j}_{m}", rng.randrange(2, 9)
            lines += [f"(declare-const {name} Int)", f"(assert (and (>= {name} 0) (<= (+ {name} {length}) {horizon})))"]
            if place:
                before = order[place - 1]
                taken = next(n for k, n in on_machine[before] if k == f"t{j}_{before}")
                lines.append(f"(assert (>= {name} (+ t{j}_{before} {taken})))")
            lines += [f"(assert (or (>= {name} (+ {k} {n})) (>= {k} (+ {name} {length}))))" for k, n in on_machine[m]]
            on_machine[m].append((name, length))
    return "\n".join(lines) + "\n"


def _multiplication(bits: int) -> str:
    """(x + y) * (x - y) = x * x - y * y in machine arithmetic, which has to be proved by its bits."""
    kind = f"(_ BitVec {bits})"
    return (f"(declare-const x {kind})\n(declare-const y {kind})\n(declare-fun f ({kind}) {kind})\n"
            "(assert (= (f x) (bvmul (bvadd x y) (bvsub x y))))\n(assert (not (= (f x) (bvsub (bvmul x x) (bvmul y y)))))\n")


def write_problems(folder: Path) -> None:
    """Satisfiability, linear arithmetic and bit vectors, each in some instances; the solver starts afresh for each."""
    rng = random.Random(14)
    problems = [_clauses(rng, 180, 4.3) for _ in range(5)] + [_schedule(rng, 8, 5) for _ in range(6)] + [_multiplication(8)]
    (folder / "problems.smt2").write_text("".join(f"{p}(check-sat)\n(reset)\n" for p in problems))
