#!/bin/sh
# make-modules: the folder with the modules mpi and mpi_f08 of a Fortran compiler. They are made from the
# sources beside this script when they are first asked for, and kept by compiler, its version and the
# options that change what a module is. mpifort calls it; its output is the folder's name.
#
# usage: make-modules.sh COMMAND LIBDIR COMPILER [ARGUMENT OF THE COMPILER]...
#
# In the folder: the modules, libheadway_fortran.a, and one line each in `compile` and `link`: options
# that this compiler needs. A folder with the file `complete` is never changed.
set -u

command=$1 libdir=$2 compiler=$3
shift 3
sources=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1

say() {
  echo "$command: $1" >&2
}

set_program() { program=$1; }
# shellcheck disable=SC2086
set_program $compiler
place=$(command -v -- "$program") || {
  say "there is no compiler $program on this machine. Likely remedy: install one (Debian, Ubuntu: apt-get install gfortran), or name yours with HEADWAY_FC=NAME"
  exit 127
}

# Modules are made in another folder, and kept for all who name this compiler, in whatever way.
case $program in
  */*)
    directory=$(CDPATH='' cd -- "$(dirname -- "$place")" && pwd -P) || exit 1
    compiler=$directory/$(basename -- "$place")${compiler#"$program"}
    ;;
esac
place=$(readlink -f -- "$place" 2>/dev/null || printf '%s' "$place")

# ---- what the arguments mean for modules ----

kept=''   # options that change modules or the machine they are for; none has a blank
folders=. # where the compiler looks for modules before ours
wide=''
next=''
for argument; do
  case $next in
    size) [ "$argument" = 64 ] && wide='-integer-size 64' ;;
    sizes) [ "$argument" = integer64 ] && wide='-s integer64' ;;
    target) kept="$kept -target $argument" ;;
    folder) folders="$folders
$argument" ;;
  esac
  next=''
  case $argument in
    -i8 | -fdefault-integer-8 | -finteger-4-integer-8 | -Mi8 | -qintsize=8 | -integer-size=64) wide=$argument ;;
    -integer-size) next=size ;;
    -s) next=sizes ;;
    -target) next=target ;;
    -J | -module | -module-dir) next=folder ;;
    -J*) folders="$folders
${argument#-J}" ;;
    -m32 | -m64 | -mx32 | -mabi=* | --target=* | --sysroot=* | -fsanitize=*) kept="$kept $argument" ;;
  esac
done
if [ -n "$wide" ]; then
  say "$wide makes INTEGERs of 8 bytes, and MPI's standard ABI has those of 4. Likely remedy: leave it out, and declare those that need it INTEGER(KIND=8)"
  exit 1
fi

# ---- which folder ----

# shellcheck disable=SC2086
version=$($compiler --version 2>/dev/null | head -n 3)
words=''
[ "$compiler" = "${compiler#* }" ] || words=${compiler#* }
stamp=$(printf '%s\n' "$place" "$words" "$version" "$kept" "${HEADWAY_FORTRAN_SECTIONS:-}" |
  cat - "$sources"/*.f90 "$sources"/*.F90 "$sources"/make-modules.sh | cksum | tr -s ' ' -)
number=$(printf '%s\n' "$version" | sed -n '1s/.* \([0-9][0-9.]*\).*/\1/p')
name=$(basename -- "$program")-${number:-unknown}-$stamp

usable() { # usable FOLDER: it has modules for us
  [ -e "$1/complete" ]
}

check_folders() { # check_folders FOLDER: no other modules of these names come before those there
  printf '%s\n' "$folders" | while IFS= read -r folder; do
    for module in mpi mpi_f08; do
      [ -e "$folder/$module.mod" ] || continue
      cmp -s "$folder/$module.mod" "$1/$module.mod" && continue
      say "$folder/$module.mod, which is of another compiler or another MPI, would be read in the place of Headway's. Likely remedy: remove it, or move it out of this folder"
      exit 1
    done
  done
}

found() { # found FOLDER: the answer
  check_folders "$1" || exit 1
  printf '%s\n' "$1"
  exit 0
}

# Made by the administrator, or here before.
if [ -n "${HEADWAY_FORTRAN_MODULES:-}" ]; then
  root=$HEADWAY_FORTRAN_MODULES
else
  usable "$libdir/headway/fortran/$name" && found "$libdir/headway/fortran/$name"
  root=${HEADWAY_CACHE:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/headway}/fortran
fi
case $root in
  /*) ;;
  *) root=$(pwd)/$root ;;
esac
folder=$root/$name
usable "$folder" && found "$folder"

if ! mkdir -p -- "$root" 2>/dev/null || [ ! -w "$root" ]; then
  say "the modules mpi and mpi_f08 have to be made for $program $number, and $root cannot be written. Likely remedy: HEADWAY_FORTRAN_MODULES=FOLDER names a folder that can, or ask your administrator to run $command with HEADWAY_FORTRAN_MODULES=$libdir/headway/fortran once"
  exit 1
fi

# ---- one at a time: a parallel build asks many times at once ----

new=''
clean() {
  [ -z "$new" ] || rm -rf -- "$new"
  [ "${locked:-no}" = no ] || rmdir -- "$folder.lock" 2>/dev/null
}
trap clean EXIT
trap 'exit 1' INT TERM HUP
# Some file systems of many machines have no locks of that kind.
if command -v flock >/dev/null && (: >>"$folder.flock") 2>/dev/null && exec 9>>"$folder.flock" &&
  flock 9 2>/dev/null; then
  :
else
  # Whoever is ended without a chance to clean up keeps others waiting for ten minutes at most.
  while ! why=$(mkdir -- "$folder.lock" 2>&1); do
    usable "$folder" && found "$folder"
    [ -d "$folder.lock" ] || missed=$((${missed:-0} + 1))
    [ "${missed:-0}" -lt 5 ] || {
      say "$folder.lock cannot be made: $why. Likely remedy: HEADWAY_FORTRAN_MODULES=FOLDER names another folder"
      exit 1
    }
    [ -z "$(find "$folder.lock" -prune -mmin +10 2>/dev/null)" ] || rmdir -- "$folder.lock"
    sleep 1
  done
  locked=yes
fi
usable "$folder" && found "$folder"

# ---- make them ----

failed() { # failed WHAT: with the first words of the compiler that tell of an error
  why=$(grep -i -m 1 'error' "$new/log" || tail -n 1 "$new/log")
  cp -- "$new/log" "$folder.log" 2>/dev/null
  say "$1 with $program $number failed: $why (all of it: $folder.log). Likely remedy: use gfortran 9 or flang 17, or newer (HEADWAY_FC=NAME); those of gfortran 12 or newer take array sections as they are"
  exit 1
}

here=$(pwd)
rm -rf -- "$folder"
new=$(mktemp -d "$folder.new.XXXXXX") && chmod 755 "$new" && cd -- "$new" || exit 1
: >log

# What no option tells: descriptors, hidden lengths, .TRUE. Only the compiler itself may say that it has
# no descriptors for us: a check that could not be linked or run here says nothing, and modules that copy
# sections would make wrong programs of right ones, for good.
: >link
defines=-DHEADWAY_NO_SECTIONS
by_copies='note: array sections are copied by the compiler'
# shellcheck disable=SC2086
if [ "${HEADWAY_FORTRAN_SECTIONS:-}" = no ]; then
  echo "$by_copies: HEADWAY_FORTRAN_SECTIONS=no" >>log
elif [ "${HEADWAY_FORTRAN_SECTIONS:-}" = yes ]; then
  defines=''
elif ! $compiler $kept -c "$sources/check.f90" -o check.o </dev/null >>log 2>&1; then
  # An older compiler may not know what the program says; those that do have another reason.
  case $(basename -- "$program"):${number:-0} in
    gfortran*:[1-9][0-9]* | flang*:[2-9][0-9]*) failed 'compiling what checks its calls' ;;
  esac
  echo "$by_copies: check.f90 was not compiled" >>log
elif ! $compiler $kept check.o -o check "-L$libdir" "-Wl,-rpath,$libdir" \
  -lmpifort_abi -lmpi_abi </dev/null >>log 2>&1; then
  failed 'linking a program that checks what its calls look like'
elif ! answer=$(./check 2>>log); then
  say "a program that checks what the calls of $program $number look like does not run in $new. Likely remedy: HEADWAY_FORTRAN_MODULES=FOLDER names a folder in which programs may be run; for another machine say what its compiler does: HEADWAY_FORTRAN_SECTIONS=yes (gfortran 12 or newer) or no"
  exit 1
else
  case $answer in
    sections\ *) defines='' ;;
    addresses\ *) echo "$by_copies" >>log ;;
    *)
      echo "error: $answer" >>log
      failed 'checking what its calls look like'
      ;;
  esac
  case $answer in
    *\ 1\ 0) ;;
    *) echo -Wl,-u,headway_fortran_logical >link ;;
  esac
fi

compile() { # compile SOURCE [OPTION]...
  source=$1
  shift
  # shellcheck disable=SC2086
  $compiler $kept -O1 -fPIC "$@" -I. -c "$sources/$source" -o "${source%.*}.o" \
    </dev/null >>log 2>&1
}
while IFS= read -r source; do
  case $source in
    mpi_sizes.F90)
      compile "$source" -DHEADWAY_QUAD || compile "$source" || failed "compiling $source"
      ;;
    *.F90) compile "$source" $defines || failed "compiling $source" ;;
    *) compile "$source" || failed "compiling $source" ;;
  esac
done <"$sources/order"
compile logicals.f90 || failed "compiling logicals.f90"
ar crs libheadway_fortran.a ./*.o >>log 2>&1 || failed "putting together libheadway_fortran.a"

# Calls of the old forms give buffers of several types to one procedure, which newer compilers take
# for an error unless they are told otherwise.
: >compile
printf '      end\n' >empty.f
# shellcheck disable=SC2086
if $compiler $kept -fallow-argument-mismatch -c empty.f -o empty.o >/dev/null 2>empty.log &&
  [ ! -s empty.log ]; then
  echo -fallow-argument-mismatch >compile
fi

rm -f -- check check.o empty.f empty.o empty.log ./*.o
: >complete
# Locks hold within a machine: another one may have been quicker.
cd -- "$here" && { mv -T -- "$new" "$folder" 2>/dev/null || usable "$folder"; } || exit 1
found "$folder"
