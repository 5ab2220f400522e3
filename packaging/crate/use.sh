#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh FILE ...: what a user does with the crates, in an empty directory: a program whose allocator is Terrace.
set -eu
cargo new --quiet --vcs none app
cat >app/src/main.rs <<'END'
#[global_allocator]
static ALLOCATOR: terrace::Terrace = terrace::Terrace;

fn main() {
    let words: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let did = terrace::statistics().expect("memory for a snapshot").core;
    assert!(did.allocations >= words.len() as u64, "{} allocations", did.allocations);
}
END
printf 'terrace = "*"\n\n[patch.crates-io]\n' >>app/Cargo.toml
for file; do
  tar -xf "$file"
  crate=$(basename "$file" .crate)
  echo "${crate%-*} = { path = \"../$crate\" }" >>app/Cargo.toml
done
cd app
TERRACE_STATS=text cargo run --quiet --target-dir target 2>table || { cat table; exit 1; }
grep -q '^ *core' table || { echo "no 'core' in:"; cat table; exit 1; }
echo "crate: used"
