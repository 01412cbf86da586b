#!/usr/bin/env bash
# Builds mpi4py from its source package with the mpicc of one of our builds, outside the tree, and
# prints the folder: venv/ (with numpy) and source/ (with its tests). A folder serves every build with
# the same mpi.h, since that is all that the module is compiled against.
# usage: scripts/mpi4py.sh [--if-built] [BUILD]
#   --if-built: build nothing; exit code 77 if it is not there
# Exit code 77 also where PyPI cannot be reached.
set -euo pipefail
if_built=
if [ "${1:-}" = --if-built ]; then
  if_built=1
  shift
fi
build=$(cd "${1:-build}" && pwd)
version=4.1.2
cache=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}
key=$( (cat "$build/include/mpi.h"; echo "$version") | sha256sum | cut -c1-16)
folder=$cache/mpi4py/$key
mkdir -p "$cache/mpi4py"
exec 9>"$cache/mpi4py/lock"
flock 9
if [ ! -e "$folder/.ready" ] && [ -n "$if_built" ]; then
  echo "mpi4py is not built yet: scripts/mpi4py.sh $build" >&2
  exit 77
fi
if [ ! -e "$folder/.ready" ]; then
  echo "building mpi4py $version in $folder" >&2
  rm -rf "$folder"
  mkdir "$folder"
  python3 -m venv "$folder/venv"
  pip() { "$folder/venv/bin/python" -m pip --disable-pip-version-check -q "$@" >&2; }
  # Unoptimized: one file of it takes minutes else.
  export MPI4PY_BUILD_MPICC=$build/bin/mpicc CFLAGS="-O0 -g0"
  if ! pip download --no-deps --no-binary mpi4py -d "$folder" "mpi4py==$version" ||
    ! pip install "numpy>=2,<3"; then
    echo "mpi4py $version and numpy cannot be downloaded" >&2
    exit 77
  fi
  tar -xzf "$folder/mpi4py-$version.tar.gz" -C "$folder"
  mv "$folder/mpi4py-$version" "$folder/source"
  pip install "$folder/source"
  touch "$folder/.ready"
fi
echo "$folder"
