#!/bin/sh
# cluster: the simulated cluster (docs/cluster.md). Starts the Python program that lies beside it,
# with the project's own Python where that exists (rich tables), else with the system's.
here=$(dirname "$(readlink -f "$0")")
python=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/headway}/python/bin/python3
[ -x "$python" ] || python=python3
CLUSTER_BIN=$here exec "$python" "$here/../share/headway/cluster/cluster.py" "$@"
