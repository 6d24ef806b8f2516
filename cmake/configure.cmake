# SPDX-License-Identifier: GPL-2.0-only
#
# Configure one build tree, unless that was done with the same options.
# A script (cmake -P) with these variables:
#   VARIANT   directory that holds source/ and gets the build tree
#   TYPE      name of the build tree: release, debug, ...
#   OPTIONS   list of options for MariaDB's CMake

set(binary ${VARIANT}/${TYPE})
set(command ${CMAKE_COMMAND} -G Ninja -S ${VARIANT}/source -B ${binary}
    ${OPTIONS})

# Paths are seen relative to VARIANT and debug information does not keep the
# build directory, so that stock and patched share what is compiled alike
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${VARIANT}
      CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime,locale
      ${CCACHE})
  # One argument that is a list itself
  list(JOIN launcher "\\;" launcher)
  list(APPEND command "-DCMAKE_C_COMPILER_LAUNCHER=${launcher}"
       "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}")
endif()

set(stamp ${binary}/configured-with.txt)
if(EXISTS ${stamp} AND EXISTS ${binary}/build.ninja)
  file(READ ${stamp} before)
  if(before STREQUAL "${command}")
    return()
  endif()
endif()

message("-- configuring ${binary}")
file(MAKE_DIRECTORY ${binary})
file(REMOVE ${stamp})
execute_process(COMMAND ${command} RESULT_VARIABLE status
                OUTPUT_FILE ${binary}/configure.log
                ERROR_FILE ${binary}/configure.log)
if(status)
  file(STRINGS ${binary}/configure.log lines REGEX "Error|error")
  list(JOIN lines "\n" lines)
  message(FATAL_ERROR "CMake failed for ${binary}; the end of "
          "${binary}/configure.log tells why\n${lines}")
endif()
file(WRITE ${stamp} "${command}")
