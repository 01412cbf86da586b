#!/bin/sh
# Compiles the recording layer for one MPI: make-layer.sh LIBRARY OUT [MPICC]. LIBRARY is that MPI's libmpi.so;
# its mpicc is looked for beside it (../bin, ../../bin) and on PATH. Says in one line what went wrong.
set -eu
library=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
fail() {
  echo "headway record: no layer for $library: $1" >&2
  exit 1
}
mpicc=${3:-${HEADWAY_RECORD_MPICC:-}}
if [ -z "$mpicc" ]; then
  real=$(readlink -f "$library")
  folder=$(dirname "$real")
  for candidate in "$folder/../bin/mpicc" "$folder/../../bin/mpicc" "$folder/../../../bin/mpicc" "$(command -v mpicc || true)"; do
    if [ -x "$candidate" ]; then
      mpicc=$candidate
      break
    fi
  done
fi
[ -n "$mpicc" ] || fail "there is no mpicc beside it; name one: headway record --mpicc FILE"
# Intel's, as pip unpacks it, does not know where it lies; to others this says nothing.
export I_MPI_ROOT="${I_MPI_ROOT:-$(dirname "$(dirname "$mpicc")")}"
work=$(mktemp -d "$(dirname "$out")/making.XXXXXX") || fail "$(dirname "$out") cannot be written"
trap 'rm -rf "$work"' EXIT
printf '#include <mpi.h>\n' >"$work/all.c"
"$mpicc" -E "$work/all.c" >"$work/all.i" 2>"$work/messages" || fail "$mpicc cannot compile: $(head -n 1 "$work/messages")"
grep -o '\bPMPI_[A-Za-z0-9_]*' "$work/all.i" | sort -u | sed 's/^P\(.*\)/#define HAVE_\1 1/' >"$work/have.h"
"$mpicc" -O2 -fPIC -shared -w -I"$work" -I"$here" "$here/layer.c" -o "$work/layer.so" 2>"$work/messages" ||
  fail "$mpicc: $(grep -m 1 -i error "$work/messages" || head -n 1 "$work/messages")"
mv "$work/layer.so" "$out"
