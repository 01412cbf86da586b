#!/usr/bin/env bash
# Debian's libpmix, which Slurm's plugin for PMIx opens, unpacked outside the tree and not installed: a second
# libpmix.so.2 on the system's search path is one that launchers and ranks could take for their own (the tests of
# tests/places and tests/launcher are about that), and hwloc's plugins, which it brings, are opened by each mpiexec.
# Prints the folder; tests/engines lays it over the system's, in namespaces of its own. Needs apt-get and dpkg, no root.
set -euo pipefail
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
folder=$cache/slurm-pmix
mkdir -p "$cache"
exec 9>"$cache/slurm-pmix.lock"
flock 9
if [ ! -e "$folder/.ready" ]; then
  echo "unpacking libpmix into $folder" >&2
  rm -rf "$folder"
  mkdir -p "$folder/packages"
  cd "$folder/packages"
  apt-get -qq download libpmix2 libpmix-dev libevent-core-2.1-7 libevent-pthreads-2.1-7 >&2
  for package in *.deb; do dpkg --extract "$package" "$folder"; done
  [ -e "$folder"/usr/lib/*/pmix2/lib/libpmix.so ] || {
    echo "libpmix of this Debian has no folder of its own (usr/lib/*/pmix2)" >&2
    exit 1
  }
  # Where the plugin alone looks (pmix2/lib), not where every program does.
  rm -rf "$folder/packages" "$folder"/usr/lib/*/libpmix.so*
  touch "$folder/.ready"
fi
echo "$folder"
