#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh [emulated]: installs the packages of this directory in a root that has Python, a C compiler, CMake and pkg-config; uses and
# removes them. Emulated processes can not be traced.
set -eu
says() { grep -q -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; exit 1; }; }
# What belongs to the system's own book-keeping.
files() { find / -xdev -regextype egrep -regex '/(proc|tmp|var/(lib/(dpkg|apt)|log|cache/(apt|debconf|ldconfig)))' -prune -o -print | sort; }

files >before
apt-get install --yes --no-install-recommends ./*.deb >installed
terrace-run cat /proc/self/maps >maps
says 'libterrace.so.0' maps
LD_PRELOAD=libterrace-hardened-preload.so cat /proc/self/maps >maps
says 'libterrace-hardened.so.0' maps
terrace run -- ls / >listing 2>table
says usr listing
says core table
terrace run --quiet --library umem -- cat /proc/self/maps >maps
says 'libumem_malloc.so.1' maps
bash -c '. /usr/share/bash-completion/completions/terrace && complete -p terrace' >completion
says terrace completion
gzip -dc /usr/share/man/man3/umem_cache_create.3.gz >page
says LIBUMEM page
if [ "${1-}" != emulated ]; then
  terrace profile --peak -- python3 -c 'bytes(30 << 20)' >profile
  says '^process .* MiB in .* in use at the peak' profile
fi
python3 -m terrace doctor >doctor
says '^rung in use' doctor

LD_PRELOAD=libterrace-preload.so sleep 600 &
on=$!
sleep 600 &
off=$!
until grep -q '[.]so' "/proc/$on/maps" && [ "$(cat "/proc/$on/comm")" = sleep ] && [ "$(cat "/proc/$off/comm")" = sleep ]; do sleep 0.1; done
terrace doctor "$on"
if terrace doctor "$off"; then exit 1; fi
kill "$on" "$off"

cat >objects.c <<'END'
#include <terrace/malloc.h>
#include <umem.h>
const char* terrace_options = "TERRACE_STATS=text";
int main(void) {
  terrace_free(terrace_malloc(10));
  umem_free(umem_alloc(10, UMEM_NOFAIL), 10);
  return 0;
}
END
# shellcheck disable=SC2046
cc objects.c -o objects $(pkg-config --cflags --libs terrace umem)
./objects 2>table
says '^ *core' table
cmake -S . -B built >configured
cmake --build built >compiled
built/linked >version
says "$(pkg-config --modversion terrace)" version

cat >runtime.c <<'END'
#include <terrace/lab.h>
int main(int count, char** words) { return count > 1 ? (int)terrace_lab_size(0, (void*)words, 0) : 0; }
END
# shellcheck disable=SC2046
cc runtime.c -o runtime $(pkg-config --cflags --libs terrace-lab)
./runtime

apt-get purge --yes terrace-tools terrace-run libterrace-dev libterrace-lab-dev libumem1 libterrace0 >removed
files >after
diff before after
echo "deb: used and removed"
