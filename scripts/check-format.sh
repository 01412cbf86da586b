#!/usr/bin/env bash
# Checks that all C and C++ files are formatted as .clang-format says, with the pinned clang-format
# of the Python environment. --fix formats them in place.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
tool=$cache/python/bin/clang-format
[ -x "$tool" ] || { echo "there is no $tool: scripts/python-env.sh --dev installs it" >&2; exit 1; }

mapfile -d '' -t files < <(
  find src launcher tools apps bench tests cmake bindings \
    \( -name '*.c' -o -name '*.cc' -o -name '*.cpp' -o -name '*.h' -o -name '*.inl' \) \
    -type f -print0 2>/dev/null | sort -z)
[ ${#files[@]} -gt 0 ] || { echo "no files to check" >&2; exit 1; }
case ${1:-} in
  --fix)
    "$tool" -i "${files[@]}"
    echo "format: ${#files[@]} files are in shape"
    ;;
  '')
    if ! "$tool" --dry-run -Werror "${files[@]}" 2>/tmp/headway-format.$$; then
      # One line a file says enough; `make format` does the rest.
      sed -n 's/^\([^:]*\):.*clang-format-violations.*/\1/p' /tmp/headway-format.$$ | sort -u |
        sed 's/^/not formatted: /' >&2
      grep -v 'clang-format-violations' /tmp/headway-format.$$ | grep -E '^[^ ]*: error|^error' >&2 || true
      rm -f /tmp/headway-format.$$
      echo "format: run make format" >&2
      exit 1
    fi
    rm -f /tmp/headway-format.$$
    echo "format: ${#files[@]} files are in shape"
    ;;
  *) echo "usage: $0 [--fix]" >&2; exit 2 ;;
esac
