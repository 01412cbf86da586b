#!/usr/bin/env bash
# Builds the library, the small programs and the cluster's helpers for 64-bit ARM with a cross
# compiler (scripts/install-deps.sh --cross brings it), and looks at what came out. mpiexec is left
# out: it needs that machine's hwloc. Where qemu-user is installed, programs of one rank are run too.
# Ends with 77 where there is no cross compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-arm64}
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "arm64: there is no aarch64-linux-gnu-g++ (scripts/install-deps.sh --cross installs it)" >&2
  exit 77
fi
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
# Unoptimised: this is about what compiles, and half as long.
cmake -S . -B "$build" -G Ninja --toolchain "$PWD/cmake/arm64-linux.cmake" "${launcher[@]}" \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_FLAGS_DEBUG=-O0 \
  -DHEADWAY_TESTS=OFF -DHEADWAY_LAUNCHER=OFF -DHEADWAY_WERROR=ON >/dev/null
cmake --build "$build" --target mpi_abi hello ring cluster-enter cluster-probe recorder record_layer trying try_layer mpifort_abi

for file in lib/libmpi_abi.so.1 apps/hello bin/cluster-enter lib/headway/record/librecorder.so \
  lib/libmpifort_abi.so.1; do
  readelf -h "$build/$file" | grep -q 'Machine: *AArch64' ||
    { echo "arm64: $build/$file is for another machine" >&2; exit 1; }
done
names=$(readelf --dyn-syms -W "$build/lib/libmpi_abi.so.1" | grep -c ' FUNC .* P\?MPI_')
[ "$names" -eq 1328 ] || { echo "arm64: $names functions are exported, not 1328" >&2; exit 1; }
needed=$(readelf -dW "$build/lib/libmpi_abi.so.1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
case $needed in
  'libc.so.6 ' | 'ld-linux-aarch64.so.1 libc.so.6 ') ;;
  *) echo "arm64: the library needs more than libc: $needed" >&2; exit 1 ;;
esac
if command -v qemu-aarch64 >/dev/null; then
  said=$(timeout 60 qemu-aarch64 -L /usr/aarch64-linux-gnu "$build/apps/hello")
  [[ $said == *'0 of 1'* ]] || { echo "arm64: hello said: $said" >&2; exit 1; }
  echo "arm64: built, and hello runs under qemu: $said"
else
  echo "arm64: built (no qemu-aarch64 here to run it)"
fi
