# SPDX-License-Identifier: GPL-2.0-only
#
# Make a build quicker and the server no other: with precompiled headers, less
# debug information, and a target without the programs that only tests need.
# MariaDB's CMake reads this file as CMAKE_PROJECT_INCLUDE, so its own files
# stay as they are.  The builds of BUILD/run, BUILD/test and BUILD/bench have
# it.  Packages do not: they are built as Debian builds its own.
#
# For a file of the SQL layer, the compiler spends most of its time on
# sql_class.h and the 300 headers that this includes.  A target below gets the
# headers that nearly all of its files include as a precompiled one.  Files that
# would mean something else with it do without; precompile.py finds them.
# Nothing named here needs to exist: another release series may not have it.
#
#   PRECOMPILE_PYTHON  Python 3

# precompile(TARGET HEADER...): let the C++ files of a target have headers
# precompiled.  Their names are as in an #include, in the order of reading
function(precompile target)
  if(NOT TARGET ${target})
    return()
  endif()
  get_target_property(source_dir ${target} SOURCE_DIR)
  get_target_property(directories ${target} INCLUDE_DIRECTORIES)
  get_target_property(sources ${target} SOURCES)
  list(FILTER directories EXCLUDE REGEX "[$]<")
  list(FILTER sources INCLUDE REGEX "[.](cc|cpp)$")

  set(headers "")
  foreach(header ${ARGN})
    foreach(directory ${directories})
      if(EXISTS ${directory}/${header})
        list(APPEND headers ${header})
        break()
      endif()
    endforeach()
  endforeach()

  # Generated files do not exist yet.  If a file has flags of its own, the
  # compiler refuses a header that was precompiled without them.  The patch
  # set's own files, which begin with an SPDX line, do without, so that each
  # build shows whether they include all that they need, as packages compile them
  set(readable "")
  set(left_out "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${source_dir})
    set(flags "")
    foreach(property COMPILE_FLAGS COMPILE_OPTIONS COMPILE_DEFINITIONS)
      get_property(value SOURCE ${path} TARGET_DIRECTORY ${target}
                   PROPERTY ${property})
      string(APPEND flags "${value}")
    endforeach()
    set(first_line "")
    if(EXISTS ${path})
      file(STRINGS ${path} first_line LIMIT_COUNT 1)
    endif()
    if(EXISTS ${path} AND flags STREQUAL "" AND NOT first_line MATCHES SPDX)
      list(APPEND readable ${path})
    else()
      list(APPEND left_out ${path})
    endif()
  endforeach()
  list(LENGTH readable count)
  if(headers STREQUAL "" OR count LESS 5)
    return()
  endif()

  list(TRANSFORM directories PREPEND "--include=" OUTPUT_VARIABLE includes)
  list(TRANSFORM headers PREPEND "--header=" OUTPUT_VARIABLE named)
  execute_process(
    COMMAND ${PRECOMPILE_PYTHON} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompile.py
            ${includes} ${named} ${readable}
    OUTPUT_VARIABLE objections RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "precompile.py failed for ${target}; see above")
  endif()
  string(REGEX REPLACE "\n$" "" objections "${objections}")
  string(REPLACE "\n" ";" objections "${objections}")
  foreach(line ${objections})
    string(REGEX REPLACE "\t.*" "" path "${line}")
    list(APPEND left_out ${path})
    message(STATUS "not with precompiled headers: ${line}")
  endforeach()
  set_property(SOURCE ${left_out} TARGET_DIRECTORY ${target}
               PROPERTY SKIP_PRECOMPILE_HEADERS ON)

  list(TRANSFORM headers REPLACE "(.+)"
       "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${headers})
  # ccache has to see which precompiled header a file uses
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  list(LENGTH left_out count)
  message(STATUS "precompiled headers for ${target}, ${count} files without")
endfunction()

# all_targets(VARIABLE DIRECTORY): the targets of a directory and of those in it
function(all_targets variable directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory ${below})
    all_targets(more ${subdirectory})
    list(APPEND targets ${more})
  endforeach()
  set(${variable} "${targets}" PARENT_SCOPE)
endfunction()

# The target server_and_client: the server, and the programs that create its
# data directory and connect to it
function(add_server_target)
  add_custom_target(server_and_client)
  set(programs mariadbd mariadb mariadb-admin my_print_defaults resolveip)
  all_targets(targets ${CMAKE_SOURCE_DIR})
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(source_dir ${target} SOURCE_DIR)
    get_target_property(not_in_all ${target} EXCLUDE_FROM_ALL)
    get_filename_component(directory ${source_dir} NAME)
    # Plugins, and the generated SQL and scripts of mariadb-install-db
    if((NOT not_in_all) AND
       ((type STREQUAL MODULE_LIBRARY) OR (target IN_LIST programs) OR
        (directory STREQUAL auth_pam) OR
        ((type STREQUAL UTILITY) AND (directory MATCHES "^(scripts|share)$"))))
      add_dependencies(server_and_client ${target})
    endif()
  endforeach()
endfunction()

function(quick_build)
  set(sql mariadb.h sql_priv.h unireg.h sql_class.h)
  precompile(sql ${sql})
  precompile(wsrep ${sql})
  precompile(perfschema my_global.h sql_class.h)
  precompile(innobase univ.i buf0buf.h dict0dict.h row0mysql.h btr0btr.h)
  add_server_target()
endfunction()

# CMake before 3.19 cannot defer a call.  At the end of the topmost file it
# empties CMAKE_CURRENT_LIST_DIR
function(quick_build_at_end variable access value)
  if(access STREQUAL "MODIFIED_ACCESS" AND value STREQUAL "")
    quick_build()
  endif()
endfunction()

if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
  # Functions and lines, which stacks in gdb and perf consist of, but no types
  # and local variables: a sixth of the compiler's time
  add_compile_options($<$<CONFIG:RelWithDebInfo>:-g1>)
  # No macros, which MariaDB's -ggdb3 adds to each object
  add_compile_options($<$<CONFIG:Debug>:-g2>)
  # All targets are known at the end of the topmost directory
  if(CMAKE_VERSION VERSION_LESS 3.19)
    variable_watch(CMAKE_CURRENT_LIST_DIR quick_build_at_end)
  else()
    cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL quick_build)
  endif()
endif()
