#!/usr/bin/env bash
# Makes the virtual environments of the peers (MPICH 5, Open MPI 5 from PyPI), outside the tree.
# Prints their prefixes. They live apart because each wheel brings a bin/mpicc. With --intel also Intel
# MPI (impi-devel, 330 MB, Intel's licence), which `headway study` then finds.
set -euo pipefail
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
mkdir -p "$cache"
exec 9>"$cache/peers.lock"
flock 9
peers=(mpich openmpi)
case ${1:-} in
  --intel) peers+=(impi) ;;
  '') ;;
  *) echo "usage: $0 [--intel]" >&2; exit 2 ;;
esac
for peer in "${peers[@]}"; do
  prefix=$cache/$peer
  package="$peer>=5,<6"
  [ "$peer" != impi ] || package="impi-devel>=2021"
  if [ ! -e "$prefix/.ready" ]; then
    echo "installing $peer into $prefix" >&2
    rm -rf "$prefix"
    python3 -m venv "$prefix"
    "$prefix/bin/pip" install -q --disable-pip-version-check "$package" >&2
    touch "$prefix/.ready"
  fi
  echo "$prefix"
done
