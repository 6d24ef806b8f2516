# SPDX-License-Identifier: GPL-2.0-only
#
# The common part of the commands in BUILD/; to be sourced.  Takes --base SERIES,
# --source PATH, --arch ARCH if the command has set takes_arch and, if it has set
# selects to the options that choose topics (of --part --topic --without), these
# and --what-fits out of its arguments, answers --help (and calls more_help, if the
# command has it), and sets:
#   top     the repository
#   base    MariaDB release series: from --base, or from the environment's
#           MARIADB_BASE, or of the source, or of the Debian release that runs
#           here, or 10.11
#   arch    Debian's name of a foreign architecture to build for, or nothing
#   trees   directory of sources and build trees
#   whole_trees   the same without a choice of topics: these have the stock source
#           and its builds
#   selection   the options that choose topics
#   MARIADB_SOURCE   in the environment: a source directory or tarball to build
#           on, from --source; without it, Debian's source package
# Exit status of every command: 0 done, 1 failed, 2 wrong usage.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
command_name=BUILD/$(basename "$0")

say()   { printf -- '-- %s\n' "$*"; }
fail()  { printf '%s: error: %s\n' "$command_name" "$*" >&2; exit 1; }
wrong() { printf '%s: %s\nTry %s --help\n' "$command_name" "$*" \
          "$command_name" >&2; exit 2; }

# --help: the comment at the top of the command, and the options that are read below
show_help()
{
  sed -n '/^# Usage:/,/^$/{s/^# \{0,1\}//p}' "$0"
  printf '\nOptions that it shares with other commands:\n\n'
  case ${selects:-} in
    *--topic*) echo '  --topic NAME   only this topic of BUILD/topics, and those that it needs' ;;
  esac
  [ -z "${selects:-}" ] || cat << END
  --part NAME    only this part of BUILD/parts, and the topics that it needs
  --without NAME all but this part or topic, and those that need it
                 These may be repeated; what they take with them is said.  Each choice
                 has sources, builds and data of its own below out/part
  --what-fits    leave out the topics that do not fit the source, and those that
                 need them
END
  [ -z "${takes_arch:-}" ] || cat << END
  --arch arm64   build for ARM64 by Debian's cross compiler, below out/arm64, and run
                 what is built by qemu
END
  cat << END
  --base SERIES  MariaDB's release series, 10.11 or 11.8; by default that of the
                 Debian release that runs here, or 10.11
  --source PATH  build on this source, a directory, tarball or .dsc, instead of
                 Debian's; out/source/BASE has what is built of it
  --help         this text
END
  ! declare -F more_help > /dev/null || more_help
  exit 0
}

# need_value OPTION COUNT: fail unless an option is followed by a value
need_value()
{
  [ "$2" -ge 2 ] || wrong "$1 needs a value"
}

# default_base OS-RELEASE: the series of the Debian release that this file names
default_base()
{
  local id='' file
  id=$(. "$1" 2> /dev/null && printf '%s' "${ID:-}-${VERSION_ID:-}") ||
    true
  file=$(grep -lx "set(BASE_DEBIAN ${id#debian-})" "$top"/cmake/base-*.cmake) ||
    file=/base-10.11.cmake
  file=${file##*/base-}
  printf '%s' "${file%.cmake}"
}

# series_of_source PATH: the series of a source directory or tarball
series_of_source()
{
  local text
  if [ "$1" != "${1%.dsc}" ]; then
    sed -n 's/^Version: \([0-9]*:\)\{0,1\}\([0-9]*\.[0-9]*\)\..*/\2/p' "$1"
    return
  elif [ -d "$1" ]; then
    text=$(cat "$1/VERSION" 2> /dev/null) || true
  else
    text=$(tar -xOf "$1" --wildcards --no-wildcards-match-slash \
               --occurrence=1 '*/VERSION' 2> /dev/null) ||
      true
  fi
  sed -n 's/^MYSQL_VERSION_MAJOR=//p; s/^MYSQL_VERSION_MINOR=/./p' <<< "$text" |
    tr -d '\n'
}

base=${MARIADB_BASE:-} arguments=() selection=(${selects:+${SELECTION:-}})
what_fits='' help='' arch=''
while [ $# -gt 0 ]; do
  case " ${selects:-} " in
    *" $1 "*) need_value "$1" $#; selection+=("$1" "$2"); shift 2; continue ;;
  esac
  case $1 in
    --base) need_value "$1" $#; base=$2; shift
            [ -n "$base" ] || wrong "--base needs a value" ;;
    --source) need_value "$1" $#; MARIADB_SOURCE=$2; shift
              [ -n "$MARIADB_SOURCE" ] || wrong "--source needs a value" ;;
    --arch) if [ -n "${takes_arch:-}" ]; then
              need_value "$1" $#; arch=$2; shift
              [ -f "$top/cmake/toolchain-$arch.cmake" ] ||
                wrong "--arch: unknown architecture '$arch' ($(cd "$top/cmake" &&
                       echo toolchain-*.cmake | sed 's/toolchain-//g; s/\.cmake//g'))"
            else arguments+=("$1"); fi ;;
    --what-fits) if [ -n "${selects:-}" ]; then what_fits=yes
                 else arguments+=("$1"); fi ;;
    --help|-h) help=yes ;;
    --)     break ;;
    *)      arguments+=("$1") ;;
  esac
  shift
done
set -- "${arguments[@]}" "$@"
unset arguments
if [ -n "${MARIADB_SOURCE:-}" ]; then
  [ -e "$MARIADB_SOURCE" ] ||
    wrong "--source: there is no file or directory $MARIADB_SOURCE"
  export MARIADB_SOURCE=$(realpath -- "$MARIADB_SOURCE")
  [ -n "$base" ] || base=$(series_of_source "$MARIADB_SOURCE")
  [ -n "$base" ] ||
    wrong "--source: $MARIADB_SOURCE has no file VERSION at its top: it is not" \
          "a MariaDB source"
fi
[ -n "$base" ] || base=$(default_base /etc/os-release)
[ -f "$top/cmake/base-$base.cmake" ] ||
  wrong "unknown series '$base' ($(cd "$top/cmake" && echo base-*.*.cmake |
         sed 's/base-//g; s/\.cmake//g'))"
[ "$arch" != "$(dpkg --print-architecture 2> /dev/null)" ] || arch=''
# A build of another source, or for another architecture, does not replace the build
# of Debian's for this machine
trees=$top/out${arch:+/$arch}${MARIADB_SOURCE:+/source}/$base
whole_trees=$trees

# select_topics OPTION...: choose topics by --part, --topic and --without; say what
# is taken.  Each choice has a directory of trees, with MariaDB's source in common
select_topics()
{
  local label error
  [ $# -gt 0 ] || return 0
  command -v python3 > /dev/null ||
    fail "python3 is missing (apt-get install python3)"
  label=$(python3 -B "$top/BUILD/lib/topics.py" --top "$top" "$@") || exit 2
  trees=${whole_trees%/*}/part/$label/$base
  mkdir -p "$trees" "$whole_trees/stock"
  ln -sfn "../../../$base/stock" "$trees/stock"
  python3 -B "$top/BUILD/lib/topics.py" --top "$top" "$@" --write "$trees"
}
check_type()
{
  case $1 in
    release|debug) ;;
    asan|tsan|ubsan) [ -z "$arch" ] || wrong "--arch goes with release and debug" ;;
    *) wrong "unknown build type '$1' (release, debug, asan, tsan, ubsan)" ;;
  esac
}

# install_dependencies FILE...: install the Debian packages that lists in
# BUILD/lib name, where they are missing
install_dependencies()
{
  local list package missing=() as_root=()
  for list in "$@"; do
    while read -r package _; do
      case $package in ''|'#'*) continue ;; esac
      [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" \
        = installed ] || missing+=("$package")
    done < "$top/BUILD/lib/$list.packages"
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get > /dev/null ||
    fail "these Debian packages, or what they hold, are needed: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null ||
      fail "run this as root, or with sudo installed, or install first:" \
           "apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  mkdir -p "$top/out"
  say "installing Debian packages, for some minutes: ${missing[*]}"
  "${as_root[@]}" apt-get update -q ||
    fail "apt-get update failed; see above"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
    -o DPkg::Lock::Timeout=600 --no-install-recommends "${missing[@]}" \
    > "$top/out/apt.log" 2>&1 < /dev/null ||
    { tail -n 20 "$top/out/apt.log" >&2
      fail "apt-get could not install them; see above and out/apt.log"; }
}

# run_job COMMAND...: run it, and pass on what should end this command.  Bash
# itself would handle SIGTERM only when the command has ended.
run_job()
{
  local status interrupted=''
  set -m                        # a process group of its own
  "$@" < /dev/null &
  job=$!
  set +m
  # Not SIGINT, which a shell that runs in the background passes on as ignored
  trap 'interrupted=yes; kill -TERM -- "-$job" 2> /dev/null || true' INT TERM HUP
  while :; do
    status=0
    wait "$job" || status=$?
    # wait returns early when a signal is handled
    kill -0 "$job" 2> /dev/null || break
  done
  trap - INT TERM HUP
  [ -z "$interrupted" ] || fail "interrupted"
  return "$status"
}

# One command at a time works on the sources and build trees, until unlock_trees
# or its end
lock_trees()
{
  mkdir -p "$whole_trees" "$trees"
  exec 8> "$whole_trees/.lock"
  flock --nonblock 8 ||
    { say "waiting for another command in BUILD/ that builds"; flock 8; }
}

unlock_trees() { exec 8>&-; }

# ccache stops a build if it cannot write its cache
choose_ccache_directory()
{
  local cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/ccache
  [ ! -d "${HOME:-/nonexistent}/.ccache" ] || cache=$HOME/.ccache
  if [ -z "${CCACHE_DIR:-}" ] &&
     ! { mkdir -p "$cache" && [ -w "$cache" ]; } 2> /dev/null; then
    export CCACHE_DIR=$trees/ccache
    mkdir -p "$CCACHE_DIR"
  fi
}

# check_room TARGET: fail if a build from nothing would fill the disk.  What one
# takes was measured, with the sources and some for ccache
check_room()
{
  local variant type need free
  IFS=- read -r variant type _ <<< "$1"
  case $type in
    release) need=2800 ;;
    debug|asan|tsan|ubsan) need=5200 ;;
    *) return 0 ;;
  esac
  [ ! -e "$trees/$variant/$type/build.ninja" ] || return 0
  free=$(df -Pm "$trees" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge "$need" ] ||
    fail "the $type build needs $need MiB, and $trees has $free;" \
         "make room there"
}

# base_value NAME: what cmake/base-SERIES.cmake sets BASE_NAME to
base_value()
{
  tr '\n' ' ' < "$top/cmake/base-$base.cmake" |
    sed -n "s/.*set(BASE_$1 \{1,\}\([^) ]*\)).*/\1/p"
}

# fetch_stock: get MariaDB's source, with none of what a build needs
fetch_stock()
{
  lock_trees
  run_job python3 -B "$top/BUILD/lib/fetch_source.py" --series "$base" \
          --package "$(base_value PACKAGE)" --suite "$(base_value SUITE)" \
          --destination "$trees/stock" --pinned "$(base_value PINNED)" \
          --pinned-sha256 "$(base_value PINNED_SHA256)" ||
    fail "MariaDB's source could not be fetched; see above"
  unlock_trees
}

# leave_out_misfits: get MariaDB's source, and select what applies to it; say what
# does not
leave_out_misfits()
{
  local name names
  fetch_stock
  names=$(python3 -B "$top/BUILD/lib/overlay.py" misfits --top "$top" \
                  --stock "$trees/stock" --patched "$trees/patched") ||
    fail "the patch set could not be compared with the source; see above"
  for name in $names; do
    selection+=(--unfit "$name")
  done
}

# survey_patches [always]: unless the source is the tested one, say of each patch
# whether it applies; fail if one does not
survey_patches()
{
  [ -n "${1:-}" ] ||
    [ "$(cat "$trees/stock/version")" != "$(base_value PINNED)" ] || return 0
  python3 -B "$top/BUILD/lib/overlay.py" survey --top "$top" \
          --stock "$trees/stock" --patched "$trees/patched" ||
    fail "the files named above do not fit this release of MariaDB; see" \
         "docs/DEVELOPING.md, A new MariaDB release." \
         "${selects:+With --what-fits the command goes on without them}"
}

# set_up_arch: for a foreign architecture, fetch its libraries, and let the kernel
# run its programs by qemu
set_up_arch()
{
  local formats=/proc/sys/fs/binfmt_misc qemu
  [ -n "$arch" ] || return 0
  qemu=/usr/lib/binfmt.d/qemu-$(sed -n 's/^set(CMAKE_SYSTEM_PROCESSOR \(.*\))/\1/p' \
    "$top/cmake/toolchain-$arch.cmake").conf
  export QEMU_LD_PREFIX=$top/out/$arch/root
  install_dependencies "$arch"
  run_job python3 -B "$top/BUILD/lib/sysroot.py" "$arch" "$QEMU_LD_PREFIX" \
          "$top/BUILD/lib/build.packages" ||
    fail "Debian's libraries for $arch could not be fetched; see above"
  runs_arch || [ "$(id -u)" -ne 0 ] || {
    say "registering qemu, for programs of $arch, in $formats"
    [ -e $formats/register ] || mount -t binfmt_misc none $formats || true
    cat "$qemu" > $formats/register || true
  }
  runs_arch ||
    fail "programs of $arch do not run here: as root, cat $qemu > $formats/register"
}

runs_arch() { "$QEMU_LD_PREFIX"/lib/ld-linux-*.so.1 --version > /dev/null 2>&1; }

# make_targets_with_plugins TARGET...: like make_targets, but the patched release
# build has ARCHIVE, BLACKHOLE and FEDERATEDX as plugins.  If MariaDB's CMake files
# run again of themselves, because one has changed, they build these into the server.
# Then mariadb-upgrade would remove them from mysql.plugin, and a server that has
# them as plugins would lack them
make_targets_with_plugins()
{
  local build=$trees/patched/release
  make_targets "$@"
  grep -q 'ha_archive\.so' "$build/build.ninja" || {
    rm -f "$build/configured-with.txt"
    make_targets patched-release
  }
}

# make_targets TARGET...: run targets of CMakeLists.txt
make_targets()
{
  local target targets=()
  install_dependencies build
  # Those of the stock source do not depend on a choice of topics
  for target in "$@"; do
    case $target in
      stock-*) [ "$trees" = "$whole_trees" ] || {
                 (trees=$whole_trees; make_targets "$target")
                 continue
               } ;;
    esac
    targets+=("$target")
  done
  set -- "${targets[@]}"
  lock_trees
  set_up_arch
  choose_ccache_directory
  cmake -S "$top" -B "$trees/cmake" -G Ninja -D "BASE=$base" \
        -D "TREES=$trees" -D "EXTRA_ENGINES=${EXTRA_ENGINES:-OFF}" \
        -D "ARCH=$arch" -D "ARCH_ROOT=${QEMU_LD_PREFIX:-}" \
        > "$trees/cmake.log" 2>&1 ||
    { tail -n 20 "$trees/cmake.log" >&2; fail "CMake failed; see above"; }
  case " $*" in
    *' source-stock'*|*' patched-'*|*' source-patched'*)
      run_job cmake --build "$trees/cmake" --target source-stock ||
        fail "MariaDB's source could not be fetched; see above"
      survey_patches ;;
  esac
  # How far a build is, and how long the rest may take
  export NINJA_STATUS=${NINJA_STATUS-'[%p, %e s, %f of %t] '}
  for target in "$@"; do
    check_room "$target"
    run_job cmake --build "$trees/cmake" --target "$target" ||
      fail "target $target failed; see above"
  done
  unlock_trees
}

[ -z "$help" ] || show_help
[ -z "$what_fits" ] || leave_out_misfits
select_topics "${selection[@]}"
export SELECTION="${selection[*]}"      # for commands that this one calls
