#!/usr/bin/env bash
# Makes the virtual environments of the peers (MPICH 5, Open MPI 5 from PyPI), outside the tree.
# Prints the two prefixes. They live apart because both wheels bring a bin/mpicc.
set -euo pipefail
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
mkdir -p "$cache"
exec 9>"$cache/peers.lock"
flock 9
for peer in mpich openmpi; do
  prefix=$cache/$peer
  if [ ! -e "$prefix/.ready" ]; then
    echo "installing $peer into $prefix" >&2
    rm -rf "$prefix"
    python3 -m venv "$prefix"
    "$prefix/bin/pip" install -q --disable-pip-version-check "$peer>=5,<6" >&2
    touch "$prefix/.ready"
  fi
  echo "$prefix"
done
