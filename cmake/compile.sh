#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: compile.sh VARIANT CCACHE COMPILER [ARGUMENT]...
#
# Run the compiler through ccache.  Paths are seen relative to VARIANT and debug
# information does not keep the build directory, so that stock and patched share
# what is compiled alike.  ccache's manual says what it has to overlook with
# precompiled headers: macros that these define, __DATE__ and __TIME__.
CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1
CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime,locale
export CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_SLOPPINESS
shift
# CMake has a precompiled header made with -include of its own source.  ccache
# would take the former precompiled header for an input, and find the new one
# only where the same had been before it.
case "$*" in
  *" -x c++-header "*)
    before=
    for argument in "$@"; do
      [ "$before" != -o ] || rm -f -- "$argument"
      before=$argument
    done ;;
esac
exec "$@"
