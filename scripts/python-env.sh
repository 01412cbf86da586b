#!/usr/bin/env bash
# Makes the project's Python environment in $HEADWAY_CACHE/python, outside the tree, and prints the
# path of its interpreter. With --dev it also brings the tools of the checks (clang-format,
# clang-tidy). Fast when nothing is to be done.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
prefix=$cache/python
mkdir -p "$cache"
exec 9>"$cache/python.lock"
flock 9

install() {  # install FILE: once for each content of FILE
  local stamp=$prefix/.installed-$(basename "$1")
  cmp -s "$1" "$stamp" && return 0
  echo "installing the packages of $(basename "$1") into $prefix" >&2
  if ! "$prefix/bin/pip" install -q --disable-pip-version-check -r "$1" >&2; then
    echo "pip could not install the packages that $1 lists (pip's reason is above)" >&2
    exit 1
  fi
  cp "$1" "$stamp"
}

# An environment outlives neither an upgrade nor a removal of the Python that made it.
if ! "$prefix/bin/python" -c 'import pip' 2>/dev/null; then
  echo "making a Python environment in $prefix" >&2
  rm -rf "$prefix"
  if ! python3 -m venv "$prefix" >&2; then
    rm -rf "$prefix"
    echo "python3 cannot make virtual environments: scripts/install-deps.sh installs what it needs" >&2
    exit 1
  fi
fi
install "$here/python-requirements.txt"
case ${1:-} in
  --dev) install "$here/python-requirements-dev.txt" ;;
  '') ;;
  *) echo "usage: $0 [--dev]" >&2; exit 2 ;;
esac
echo "$prefix/bin/python"
