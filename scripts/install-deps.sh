#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that a build, the demo and the tests need: as root, or
# through sudo, which it never uses unasked: on a terminal it asks first; without one only
# HEADWAY_SUDO=yes allows it. Elsewhere it prints what is missing and stops with 1.
# Fast and silent when nothing is missing. --list prints the names of all packages; --cross takes
# the cross compiler of scripts/check-arm64.sh as well, and --debuggers takes gdb and valgrind, without
# which their tests are skipped: CI wants them, and others need not have them; --fortran takes gfortran,
# which nothing but the tests of Fortran needs; --trial takes what scripts/trial.py makes a bare system
# with; --browser takes the one in which bench/page_opening.py opens pages; --engines takes Slurm and an
# sshd, which tests/engines starts for itself (Debian starts an sshd and a munged of the system's, too, where
# services are started at all; Debian's MPIs and libpmix are not among them). Options in this order.
set -euo pipefail

packages=(
  gcc g++ cmake ninja-build pkg-config         # build
  libhwloc-dev libcli11-dev                    # mpiexec: cores, options
  libgtest-dev libbenchmark-dev                # tests, micro-benchmarks
  python3 python3-venv                         # generator, demo, benchmarks
  binutils git make util-linux                 # tests of the symbol table, scripts
  iproute2 iputils-ping procps                 # simulated cluster
)
if [ "${1:-}" = --cross ]; then
  packages+=(g++-aarch64-linux-gnu qemu-user)
  shift
fi
if [ "${1:-}" = --debuggers ]; then
  packages+=(gdb valgrind)
  shift
fi
if [ "${1:-}" = --fortran ]; then
  packages+=(gfortran)
  shift
fi
if [ "${1:-}" = --trial ]; then
  packages+=(debootstrap)
  shift
fi
if [ "${1:-}" = --browser ]; then
  packages+=(chromium)
  shift
fi
if [ "${1:-}" = --engines ]; then
  packages+=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins openssh-server)
  shift
fi
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
elif [ $# -gt 0 ]; then
  echo "usage: $0 [--cross] [--debuggers] [--fortran] [--trial] [--browser] [--engines] [--list]" >&2
  exit 2
fi

missing=()
if command -v dpkg-query >/dev/null; then
  installed=" $(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/^installed //p' | tr '\n' ' ' || true)"  # fails when it knows one of them not at all
  for package in "${packages[@]}"; do
    [[ $installed == *" $package "* ]] || missing+=("$package")
  done
  # pkgconf replaces pkg-config on newer releases and provides its command.
  if [[ " ${missing[*]} " == *" pkg-config "* ]] && command -v pkg-config >/dev/null; then
    kept=()
    for package in "${missing[@]}"; do [ "$package" = pkg-config ] || kept+=("$package"); done
    missing=("${kept[@]}")
  fi
else
  # Not Debian: judge by what the build calls, and name Debian's packages as a hint.
  for pair in gcc:gcc g++:g++ cmake:cmake ninja:ninja-build pkg-config:pkg-config \
    python3:python3 readelf:binutils ip:iproute2; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  for header in hwloc.h:libhwloc-dev CLI/CLI.hpp:libcli11-dev gtest/gtest.h:libgtest-dev \
    benchmark/benchmark.h:libbenchmark-dev; do
    [ -e "/usr/include/${header%%:*}" ] || [ -e "/usr/local/include/${header%%:*}" ] ||
      missing+=("${header#*:}")
  done
fi
[ ${#missing[@]} -eq 0 ] && exit 0

give_up() {
  {
    echo "$1"
    echo "Please install these packages (their Debian names) and run make again:"
    printf '  %s\n' "${missing[@]}"
  } >&2
  exit 1
}

command -v apt-get >/dev/null || give_up "Some packages are missing, and there is no apt-get here."
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || give_up "Some packages are missing, and this is not root."
  if [ "${HEADWAY_SUDO:-}" != yes ] && [ -t 0 ] && [ -t 2 ]; then
    echo "These packages are missing: ${missing[*]}" >&2
    read -r -p "Install them with sudo apt-get? [Y/n] " answer
    [[ $answer =~ ^([yY]|[yY][eE][sS]|)$ ]] || give_up "Nothing was installed."
    as_root=(sudo)
  else
    # Nobody is there to ask, nor to type a password.
    [ "${HEADWAY_SUDO:-}" = yes ] ||
      give_up "Some packages are missing, and sudo is not used unasked (HEADWAY_SUDO=yes allows it)."
    sudo -n true 2>/dev/null || give_up "Some packages are missing, and sudo wants a password."
    as_root=(sudo -n)
  fi
fi
echo "installing: ${missing[*]}" >&2
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >&2; }
# A stale or empty package list is the usual reason for a failure: refresh it once, then insist.
apt install -y --no-install-recommends "${missing[@]}" 2>/dev/null || {
  apt update
  apt install -y --no-install-recommends "${missing[@]}" || give_up "apt-get could not install."
}
