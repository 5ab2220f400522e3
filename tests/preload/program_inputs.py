# SPDX-License-Identifier: MIT OR Apache-2.0
"""Inputs for real programs that the preload tests and the comparison (bench/apps) share: the same in every run."""

import pathlib
import shutil
import subprocess


def write_sources(scratch: pathlib.Path, structures: int = 60) -> None:
    """A large C++ file: many headers, many instantiations."""
    headers = ["algorithm", "chrono", "functional", "future", "iostream", "map", "memory", "random", "regex", "set", "sstream",
               "string", "thread", "tuple", "unordered_map", "variant", "vector"]
    lines = [f"#include <{h}>" for h in headers]
    for i in range(structures):
        lines.append(f"struct S{i} {{ std::map<int, std::vector<std::string>> m; std::variant<int, std::string, double> v; }};")
        lines.append(f"int f{i}(const std::string& s) {{ std::unordered_map<std::string, S{i}> u; u[s].m[{i}].push_back(s);"
                     f" std::regex r(\"a{i}(b|c)*\"); return std::regex_match(s, r) + static_cast<int>(u.size()); }}")
    (scratch / "large.cpp").write_text("\n".join(lines) + "\n")


def write_history(scratch: pathlib.Path, commits: int = 3000) -> None:
    """Many commits, made by fast-import, on files that change a little each time."""
    lines: list[str] = []
    for i in range(commits):
        text = "\n".join(f"line {j} of file {i % 40}: {(i * 7919 + j * 104729) % 1000003}" for j in range(60))
        lines.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1600000000 + i} +0000\ndata 8\ncommit x\n"
                     f"M 100644 inline file{i % 40}.txt\ndata {len(text)}\n{text}\n")
    repository = scratch / "history.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository, input="\n".join(lines).encode(), check=True)


def fresh_history(scratch: pathlib.Path) -> None:
    shutil.rmtree(scratch / "gc.git", ignore_errors=True)
    shutil.copytree(scratch / "history.git", scratch / "gc.git")


PHP = r"""
$h = []; for ($i = 0; $i < 200000; $i++) { $h["key$i"] = [$i, str_repeat("x", $i % 60)]; }
ksort($h); $t = 0; foreach ($h as $v) { $t += strlen($v[1]); if ($v[0] % 2) { $t += count(explode("x", $v[1])); } }
echo count($h), " $t ", strlen(json_encode($h)), " ", implode(" ", get_loaded_extensions()), "\n";
"""
SQL = """
create table t(a integer, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) insert into t select x * 7919 % 100003, hex(x) from c;
create index i on t(a);
create index j on t(b);
select count(*), sum(length(b)) from t;
select count(*) from t x join t y on x.a = y.a where x.a < 3000;
select b, count(*) from t group by substr(b, 1, 3) order by 2 desc, 1 limit 20;
delete from t where a % 3 = 0;
vacuum;
select count(*) from t;
"""

PERL = r"""
my %h; my @a;
for my $i (1 .. 300000) { $h{"key$i"} = [$i, "x" x ($i % 60)]; push @a, { n => $i, s => "v$i" } if $i % 3 == 0 }
my $t = 0; for my $k (sort keys %h) { $t += length($h{$k}[1]) } delete $h{"key$_"} for 1 .. 150000;
my $s = join ",", map { $_->{s} } @a[0 .. 50000]; $s =~ s/v(\d)/w$1$1/g;
print scalar(keys %h), " $t ", length($s), "\n";
"""

NODE = """
const m = new Map(); for (let i = 0; i < 500000; i++) m.set('k' + i, { i, s: 'x'.repeat(i % 30), a: [i, i + 1] });
let t = 0; for (const [, v] of m) t += v.a[1] + v.s.length;
const crypto = require('crypto'); let h = ''; for (let i = 0; i < 100000; i++) h = crypto.createHash('md5').update('m' + i + h).digest('hex');
const b = []; for (let i = 0; i < 3000; i++) b.push(Buffer.alloc(1000 + i % 7000, i)); console.log(m.size, t, h, b.length);
"""
