# SPDX-License-Identifier: GPL-2.0-only
#
# Configure one build tree, unless that was done with the same options for the
# same source.
# A script (cmake -P) with these variables:
#   VARIANT   directory that holds source/ and gets the build tree
#   TYPE      name of the build tree: release, debug, ...
#   OPTIONS   list of options for MariaDB's CMake

set(binary ${VARIANT}/${TYPE})
set(command ${CMAKE_COMMAND} -G Ninja -S ${VARIANT}/source -B ${binary}
    ${OPTIONS})

find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_CURRENT_LIST_DIR}/compile.sh ${VARIANT} ${CCACHE})
  # One argument that is a list itself
  list(JOIN launcher "\\;" launcher)
  list(APPEND command "-DCMAKE_C_COMPILER_LAUNCHER=${launcher}"
       "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}")
endif()

# fetch_source.py gives each source that it fetches an identity
set(source_id "")
if(EXISTS ${VARIANT}/source/.fetched)
  file(READ ${VARIANT}/source/.fetched source_id)
endif()

# A change of what MariaDB's CMake includes is another configuration, too
set(included "")
if("${OPTIONS}" MATCHES "CMAKE_PROJECT_INCLUDE=([^;]*)")
  file(GLOB files ${CMAKE_CURRENT_LIST_DIR}/../BUILD/lib/precompile.py
       ${CMAKE_MATCH_1})
  foreach(file ${files})
    file(SHA256 ${file} hash)
    string(APPEND included ${hash})
  endforeach()
endif()

set(configured_with "${command}${source_id}${included}")
set(stamp ${binary}/configured-with.txt)
if(EXISTS ${stamp} AND EXISTS ${binary}/build.ninja)
  file(READ ${stamp} before)
  if(before STREQUAL configured_with)
    return()
  endif()
endif()

message("-- configuring ${binary}")
file(MAKE_DIRECTORY ${binary})
# Without the old cache: it would keep engines switched off that are wanted now,
# and a second run of MariaDB's CMake files on the same cache builds ARCHIVE,
# BLACKHOLE and FEDERATEDX into the server
file(REMOVE ${stamp} ${binary}/CMakeCache.txt)

# without_paths(VARIABLE TEXT BINARY): how a tree was configured, without where it is
function(without_paths variable text binary)
  get_filename_component(variant ${binary} DIRECTORY)
  get_filename_component(trees ${variant} DIRECTORY)
  string(REPLACE ${variant} VARIANT text "${text}")
  string(REPLACE ${trees} TREES text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

# The answers of the compiler to CMake's questions (HAVE_..., SIZEOF_...) take most
# of the time. Another tree with the same options, on the same source, has them
set(known ${binary}/known-answers.cmake)
file(REMOVE ${known})
foreach(other ${VARIANT}/../stock/${TYPE} ${VARIANT}/../stock/../patched/${TYPE})
  get_filename_component(other ${other} REALPATH)
  if(NOT EXISTS ${other}/configured-with.txt)
    continue()
  endif()
  file(READ ${other}/configured-with.txt before)
  without_paths(there "${before}" ${other})
  without_paths(here "${configured_with}" ${binary})
  if(NOT there STREQUAL here)
    continue()
  endif()
  file(STRINGS ${other}/CMakeCache.txt answers
       REGEX "^(CMAKE_)?(HAVE|have|HAS|SIZEOF)_[^:]*:INTERNAL=[0-9A-Z]*$")
  foreach(answer ${answers})
    string(REGEX REPLACE "^([^:]*):INTERNAL=(.*)$"
           "set(\\1 \"\\2\" CACHE INTERNAL \"\")\n" answer "${answer}")
    file(APPEND ${known} "${answer}")
  endforeach()
  list(APPEND command -C ${known})
  break()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE status
                OUTPUT_FILE ${binary}/configure.log
                ERROR_FILE ${binary}/configure.log)
if(status)
  file(STRINGS ${binary}/configure.log lines REGEX "Error|error")
  list(JOIN lines "\n" lines)
  message(FATAL_ERROR "CMake failed for ${binary}; the end of "
          "${binary}/configure.log tells why\n${lines}")
endif()
file(WRITE ${stamp} "${configured_with}")
