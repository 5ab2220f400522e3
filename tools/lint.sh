#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# tools/lint.sh format|tidy|spell|spdx     one check; exits 77 when its tool is not installed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ours() { git ls-files "*.h" "*.cpp" | grep -vxF -f .clang-format-ignore; }
tool() {
  for name in "$1-14" "$1"; do
    if command -v "$name" >/dev/null; then
      echo "$name"
      return
    fi
  done
  echo "no $1" >&2
  exit 77
}

case ${1:-} in
  format)
    clang_format=$(tool clang-format)
    ours | xargs "$clang_format" --dry-run -Werror
    ;;
  tidy)
    clang_tidy=$(tool clang-tidy)
    find src -name '*.cpp' -print0 | xargs -0 -P "$(nproc)" -n 1 "$clang_tidy" --quiet --extra-arg=-Wno-unknown-warning-option \
      --extra-arg=-fconstexpr-steps=100000000 -p "${2:-build/dev}" 2>/dev/null
    ;;
  spell)
    codespell=$(tool codespell)
    git ls-files '*.md' 'src/*' 'include/*' 'tools/*' ':!tools/terrace/profile/viewer/*.js' | xargs "$codespell" -L ot,nd,te,crate
    ;;
  spdx)
    missing=$(git ls-files '*.h' '*.cpp' '*.c' '*.S' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' '*.toml' |
      xargs grep -L 'SPDX-License-Identifier' || true)
    [ -z "$missing" ] || { echo "no SPDX line: $missing"; exit 1; }
    ;;
  *)
    echo "usage: tools/lint.sh format|tidy|spell|spdx" >&2
    exit 2
    ;;
esac
