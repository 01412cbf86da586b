#!/usr/bin/env bash
# The compiler wrappers and headway.pc: in the build tree, and installed below DESTDIR and a prefix
# with odd names. usage: wrappers_test.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
line_end=$'\n'

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}
expect() {  # expect WHAT TEXT PATTERN: TEXT must match the extended regular expression
  [[ $2 =~ $3 ]] || fail "$1: expected /$3/, got: $2"
}
refuse() {  # refuse WHAT TEXT PATTERN
  [[ ! $2 =~ $3 ]] || fail "$1: must not match /$3/: $2"
}

cat >hello.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank = -1, size = -1;
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("hello from %d of %d\n", rank, size);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 3;
}
END
cp hello.c hello.cc
cat >version.c <<'END'
#include <mpi.h>
int main(void) { return MPI_Aint_add == PMPI_Aint_add ? 0 : 0; }
END

runpath_of() { readelf -dW "$1" | sed -n 's/.*(RUNPATH).*\[\(.*\)\]/\1/p'; }

check_place() {  # check_place NAME BIN LIB INCLUDE: everything must lead to these folders
  local name=$1 bin=$2 lib=$3 include=$4 text program
  text=$("$bin/mpicc" -show hello.c -o hello)
  expect "$name -show" "$text" "-I'?$include'? hello.c -o hello '?-L$lib'? .*-lmpi_abi$"
  text=$("$bin/mpicc" -show -c hello.c)
  refuse "$name -show -c" "$text" '-lmpi_abi|-L'
  text=$("$bin/mpicc" -show -v)
  refuse "$name -show -v" "$text" '-lmpi_abi'
  expect "$name -showme:compile" "$("$bin/mpicc" -showme:compile)" "-I'?$include"
  refuse "$name -showme:compile" "$("$bin/mpicc" -showme:compile)" '-lmpi_abi'
  expect "$name -showme:link" "$("$bin/mpicxx" -showme:link)" "-L'?$lib.*-lmpi_abi$"
  expect "$name -showme:incdirs" "$("$bin/mpic++" -showme:incdirs)" "^$include$"
  expect "$name -showme:tsan" "$("$bin/mpicc" -showme:tsan)" '^/.*/share/headway/tsan\.supp$'
  grep -qx 'called_from_lib:libmpi_abi\.so' "$("$bin/mpicc" -showme:tsan)" ||
    fail "$name: the file of -showme:tsan"
  expect "$name HEADWAY_CC" "$(HEADWAY_CC='ccache gcc' "$bin/mpicc" -show x.o)" '^ccache gcc '
  expect "$name HEADWAY_CXX" "$(HEADWAY_CXX=clang++ "$bin/mpicxx" -show x.o)" '^clang\+\+ '
  for text in -help --help -showme:help; do
    expect "$name $text" "$("$bin/mpicxx" $text)" '^usage: mpicxx .*HEADWAY_CXX=NAME'
  done
  # Build systems read the compiler's answer, which must come first; with more arguments it is alone.
  text=$("$bin/mpicc" --version)
  expect "$name --version" "$text" "^$($("$bin/mpicc" -showme:command) --version | head -n 1 | sed 's/[^[:alnum:] ]/./g')"
  expect "$name --version" "$text" $'\nmpicc: Headway MPI [0-9.]+'
  refuse "$name --version -c" "$("$bin/mpicc" --version -c)" 'Headway'
  if "$bin/mpicc" -showme:nonsense 2>/dev/null; then fail "$name: -showme:nonsense succeeds"; fi

  "$bin/mpicc" -Wall -Wextra -Werror hello.c -o hello_c || fail "$name: mpicc"
  "$bin/mpicxx" -Wall -Wextra -Werror hello.cc -o hello_cxx || fail "$name: mpicxx"
  "$bin/mpicc" -c hello.c -o hello.o && "$bin/mpicc" hello.o -o hello_o || fail "$name: two steps"
  for program in hello_c hello_cxx hello_o; do
    expect "$name: RUNPATH of $program" "$(runpath_of $program)" "^$lib$"
    expect "$name: needs of $program" "$(readelf -dW $program)" 'NEEDED.*\[libmpi_abi\.so\.1\]'
  done
  HEADWAY_NO_RUNPATH=1 "$bin/mpicc" hello.c -o hello_plain
  expect "$name: no RUNPATH" "<$(runpath_of hello_plain)>" '^<>$'
  # The loader must find every symbol: this runs code of ours, no MPI_Init.
  "$bin/mpicc" version.c -o version && ./version || fail "$name: a program does not load"
  if [ -x "$bin/mpiexec" ]; then
    text=$(timeout 60 "$bin/mpiexec" -n 2 ./hello_c | sort) || fail "$name: mpiexec hello_c"
    expect "$name: hello_c" "$text" $'^hello from 0 of 2\nhello from 1 of 2$'
    text=$(timeout 60 "$bin/mpiexec" -n 2 ./hello_cxx | sort) || fail "$name: mpiexec hello_cxx"
    expect "$name: hello_cxx" "$text" $'^hello from 0 of 2\nhello from 1 of 2$'
  else
    echo "note: there is no $bin/mpiexec, so the programs were linked and not run"
  fi
}

check_place "build tree" "$build/bin" "$build/lib" "$build/include"

# Through a link in another folder, as /usr/local/bin often has them.
mkdir links
ln -s "$build/bin/mpicc" links/mpicc
ln -s mpicc links/mpicc-other
expect "link to mpicc" "$(links/mpicc-other -showme:libdirs)" "^$build/lib$"
expect "found in PATH" "$(PATH=$work/links:$PATH; mpicc -showme:libdirs)" "^$build/lib$"

# A machine without that compiler: the name, the remedy, and the code of a command that is not there.
code=0
said=$(HEADWAY_CC=no-such-compiler "$build/bin/mpicc" hello.c -o hello_none 2>&1) || code=$?
expect "no compiler" "$said, code $code" \
  '^mpicc: there is no compiler no-such-compiler .*HEADWAY_CC=NAME, code 127$'

# There is no static library: one sentence instead of the linker's error, and only where a link would
# look for one.
for wrapper in mpicc mpicxx; do
  for flags in -static --static -static-pie '-static -Wl,-Bdynamic'; do
    code=0
    # shellcheck disable=SC2086
    said=$("$build/bin/$wrapper" $flags hello.o -o hello_none 2>&1) || code=$?
    expect "$wrapper $flags" "$said, code $code" \
      "^$wrapper: there is no static library of Headway MPI, because [^.]*libmpi_abi\.so\.1[^.]*\. Likely remedy: leave -static out; [^$line_end]*, code 1\$"
  done
  for flags in -Wl,-Bstatic '-Wl,-Bdynamic,-lm,-Bstatic' '-Xlinker -Bstatic' -Wl,-dn -Wl,-static \
    '-Wl,--push-state -Wl,-Bdynamic -lm -Wl,-Bstatic,--push-state,-Bdynamic,--pop-state'; do
    code=0
    # shellcheck disable=SC2086
    said=$("$build/bin/$wrapper" hello.o $flags -o hello_none 2>&1) || code=$?
    expect "$wrapper $flags" "$said, code $code" \
      "^$wrapper: there is no static library .* put -Wl,-Bdynamic behind [^$line_end]*, code 1\$"
  done
  for flags in '-Wl,-Bstatic -lm -Wl,-Bdynamic' '-Wl,-Bstatic,-lm,-Bdynamic' -static-libgcc \
    '-Xlinker -Bstatic -lm -Xlinker -Bdynamic' '-Wl,-Bdynamic,-Bstatic,-lm,-Bdynamic' \
    '-Wl,--push-state,-Bstatic -lm -Wl,--pop-state'; do
    # shellcheck disable=SC2086
    "$build/bin/$wrapper" hello.o $flags -o hello_some || fail "$wrapper $flags"
    expect "$wrapper $flags" "$(readelf -dW hello_some)" 'NEEDED.*\[libmpi_abi\.so\.1\]'
  done
done
"$build/bin/mpicc" -static -c hello.c -o hello_static.o || fail "mpicc -static -c"

# Installed, then moved as a whole: nothing may remember where it was.
DESTDIR="$work/stage" cmake --install "$build" --prefix /opt/headway >install.log ||
  { cat install.log >&2; fail "cmake --install"; }
mkdir -p "$work/other place"
mv "$work/stage/opt/headway" "$work/other place/head way"
prefix="$work/other place/head way"
check_place "installed" "$prefix/bin" "$prefix/lib" "$prefix/include"
[ "$(readlink "$prefix/lib/libmpi_abi.so")" = libmpi_abi.so.1 ] || fail "libmpi_abi.so is no link"
# (pkg-config itself splits a prefix with blanks, so it gets one without.)
mv "$prefix" "$work/moved"
if command -v pkg-config >/dev/null; then
  flags=$(PKG_CONFIG_PATH=$work/moved/lib/pkgconfig pkg-config --cflags --libs headway)
  # shellcheck disable=SC2086
  cc ${HEADWAY_SANITIZE:+-fsanitize=$HEADWAY_SANITIZE} hello.c $flags -o hello_pc ||
    fail "compile with pkg-config's flags: $flags"
else
  fail "pkg-config is missing"
fi

[ $failures -eq 0 ] || { echo "$failures checks failed" >&2; exit 1; }
echo "all checks of the wrappers passed"
