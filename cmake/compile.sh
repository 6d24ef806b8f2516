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
# Two things about precompiled headers:
#  1. CMake has one made with -include of its own source.  ccache would take the
#     former precompiled header for an input, and find the new one only where
#     the same had been before it.
#  2. It has a checksum of each header with '#pragma once', comments included.
#     Without CCACHE_DEPEND, ccache may compare preprocessed text, which has no
#     comments, and return a precompiled header with another checksum.
case "$*" in
  *" -x c++-header "*)
    export CCACHE_DEPEND=1
    before=
    for argument in "$@"; do
      [ "$before" != -o ] || rm -f -- "$argument"
      before=$argument
    done ;;
esac
# ccache compares the headers that a file has included.  It does not see that one which
# __has_include() did not find in a choice of topics is there now; preprocessed text does
case "$*" in
  *table_cache*.cc*|*table_def_cache.cc*|*no_descriptor.cc*|*dump_load.cc*)
    export CCACHE_NODIRECT=1 ;;
esac
exec "$@"
