# SPDX-License-Identifier: GPL-2.0-only
#
# Build a source that is neither the stock nor the patched one of
# CMakeLists.txt, or with options of its own.  A script (cmake -P) with these
# variables:
#   TREES    directory of the sources and build trees
#   BASE     MariaDB release series
#   TREE     directory in TREES that holds source/
#   TYPE     name of the build tree in it
#   BUILD_TYPE  release (the default), debug, asan, tsan or ubsan
#   OPTIONS  options for MariaDB's CMake behind the usual ones

include(${CMAKE_CURRENT_LIST_DIR}/base-${BASE}.cmake)
if(NOT BUILD_TYPE)
  set(BUILD_TYPE release)
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -D VARIANT=${TREES}/${TREE} -D TYPE=${TYPE}
          -D "OPTIONS=${BASE_OPTIONS};${TYPE_OPTIONS_${BUILD_TYPE}};${OPTIONS}"
          -P ${CMAKE_CURRENT_LIST_DIR}/configure.cmake
  RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "configuring failed; see above")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --build ${TREES}/${TREE}/${TYPE}
                RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "the build failed; see above")
endif()
