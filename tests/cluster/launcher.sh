#!/bin/sh
# A launcher of two ranks for tests of `cluster run`: LAUNCHER -n RANKS PROGRAM ARGS.
ranks=$2
shift 2
rank=0
jobs=
while [ $rank -lt "$ranks" ]; do
  PMI_RANK=$rank "$@" &
  jobs="$jobs $!"
  rank=$((rank + 1))
done
code=0
for job in $jobs; do
  wait "$job" || code=$?
done
exit $code
