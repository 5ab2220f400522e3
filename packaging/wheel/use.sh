#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh TERRACE PYTHON: what a user does with an installed wheel, away from any checkout.
set -eu
terrace=$1 python=$2
work=$(mktemp -d)
sleeper=
trap '[ -z "$sleeper" ] || kill $sleeper; rm -rf "$work"' EXIT
cd "$work"
says() { grep -q -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; exit 1; }; }

"$terrace" --version
"$terrace" run -- ls / >listing 2>table
says 'usr' listing
says 'core' table
status=0
"$terrace" run --quiet -- sh -c "exit 7" || status=$?
[ "$status" = 7 ]
for library in hardened umem; do
  "$terrace" run --json "$library.json" --library "$library" -- "$python" -c 'print(list(range(9)))' >/dev/null
  says '"allocations"' "$library.json"
done

echo 'import sys, pathlib; print(sys.argv[1], "libterrace.so" in pathlib.Path("/proc/self/maps").read_text())' >script.py
"$python" -m terrace run --quiet script.py word >out
says '^word True$' out
"$terrace" doctor >doctor
says '^rung in use' doctor

echo 'import time; kept = [bytes(1000) for _ in range(5000)]; print("ready", flush=True); time.sleep(600)' >sleeper.py
PYTHONMALLOC=malloc "$terrace" run --quiet -- "$python" sleeper.py >ready &
tool=$!
until grep -q ready ready; do sleep 0.1; done
sleeper=$(cat "/proc/$tool/task/$tool/children")
if "$python" -c 'import numpy, scipy, elftools, rich' 2>/dev/null; then
  # shellcheck disable=SC2086
  "$terrace" findleaks $sleeper >leaks || [ $? = 1 ]
  says 'leak' leaks
  "$terrace" profile --peak -- "$python" -c 'bytes(30 << 20)' >profile
  says '^process .* MiB in .* in use at the peak' profile
else
  # shellcheck disable=SC2086
  ! "$terrace" findleaks $sleeper 2>refusal
  says 'pip install .*numpy' refusal
fi
# shellcheck disable=SC2086
kill $sleeper
wait "$tool" || true
sleeper=
echo "wheel: used"
