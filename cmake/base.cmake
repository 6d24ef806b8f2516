# SPDX-License-Identifier: GPL-2.0-only
#
# How MariaDB is configured, for each release series; included by the series'
# own base-SERIES.cmake, which sets the BASE_ variables used here.  The features,
# paths and version suffix are those of that Debian release's mariadb-server
# (its debian/rules), so that the distribution's engine and plugin packages fit.
#
# INSTALL_LAYOUT is STANDALONE with Debian's directories, because in the DEB
# layout Connector/C makes a link libmariadb.a to itself, which Ninja refuses.

set(BASE_OPTIONS
  -DBUILD_CONFIG=mysql_release
  -DDEB=Debian
  -DINSTALL_LAYOUT=STANDALONE
  -DCMAKE_INSTALL_PREFIX=/usr
  -DINSTALL_SBINDIR=sbin
  -DINSTALL_SCRIPTDIR=bin
  -DINSTALL_PLUGINDIR=lib/mysql/plugin
  -DINSTALL_MYSQLSHAREDIR=${BASE_SHARE}
  -DINSTALL_MYSQLTESTDIR=${BASE_TESTS}
  -DINSTALL_SUPPORTFILESDIR=${BASE_SHARE}
  -DINSTALL_MYSQLDATADIR=/var/lib/mysql
  -DINSTALL_UNIX_ADDRDIR=/run/mysqld/mysqld.sock
  -DINSTALL_SYSCONFDIR=/etc
  -DINSTALL_SYSCONF2DIR=/etc/mysql/mariadb.conf.d
  "-DMYSQL_SERVER_SUFFIX=${BASE_SUFFIX}"
  "-DCOMPILATION_COMMENT=Debian ${BASE_DEBIAN}"
  -DSYSTEM_TYPE=debian-linux-gnu
  -DCONC_DEFAULT_CHARSET=utf8mb4
  -DWITH_EMBEDDED_SERVER=OFF
  -DWITH_WSREP=ON
  -DWITH_NUMA=AUTO
  -DWITH_URING=ON
  -DWITH_LIBAIO=ON
  -DIGNORE_AIO_CHECK=ON
  -DWITH_INNODB_SNAPPY=ON
  -DPLUGIN_AWS_KEY_MANAGEMENT=NO
  -DPLUGIN_COLUMNSTORE=NO
  ${BASE_OWN_OPTIONS})

# Packaged on their own by Debian, and half of the time that a build takes
if(NOT EXTRA_ENGINES)
  foreach(engine ROCKSDB MROONGA SPIDER CONNECT OQGRAPH SPHINX)
    list(APPEND BASE_OPTIONS -DPLUGIN_${engine}=NO)
  endforeach()
endif()

set(TYPE_OPTIONS_release -DCMAKE_BUILD_TYPE=RelWithDebInfo)
set(TYPE_OPTIONS_debug -DCMAKE_BUILD_TYPE=Debug)
set(TYPE_OPTIONS_asan -DCMAKE_BUILD_TYPE=Debug -DWITH_ASAN=ON)
# ThreadSanitizer does not know fences: gcc warns, which a debug build takes for
# an error.  Nor does it see transactions of the CPU's memory, by which InnoDB
# elides latches: NO_ELISION is InnoDB's own switch
set(TYPE_OPTIONS_tsan -DCMAKE_BUILD_TYPE=Debug -DWITH_TSAN=ON
    "-DCMAKE_CXX_FLAGS=-Wno-tsan -DNO_ELISION ${BASE_CXX_FLAGS}")
set(TYPE_OPTIONS_ubsan -DCMAKE_BUILD_TYPE=Debug -DWITH_UBSAN=ON)
