# SPDX-License-Identifier: GPL-2.0-only
#
# MariaDB 11.8 as Debian 13 has it: the package that brings the source, and
# what differs in its configuration.  The commands in BUILD/ read the lines that
# begin with set(BASE_.  Without WITH_SBOM=NO, mysql_release makes a bill of
# materials.

set(BASE_DEBIAN 13)
set(BASE_SUITE trixie)
set(BASE_PACKAGE mariadb)
# A version that was tested, for when none in the package lists can be fetched:
# fetch_source.py takes it from the mirror if its .dsc file is this one, which was
# signed by Debian's maintainer
set(BASE_PINNED 1:11.8.6-0+deb13u1)
set(BASE_PINNED_SHA256
    c38d7ec65b2f6cf3d7b5edc21f0732d749b75507837219832a0e8dca89cf9556)
set(BASE_SUFFIX "-0+deb13u1 from Debian")
set(BASE_SHARE share/mariadb)
set(BASE_TESTS share/mariadb/mariadb-test)
# Debian's startup-message.patch makes gcc warn, which a debug build takes for an
# error
set(BASE_CXX_FLAGS -Wno-dangling-else)
set(BASE_OWN_OPTIONS -DWITH_SBOM=NO -DCMAKE_CXX_FLAGS=${BASE_CXX_FLAGS})

include(${CMAKE_CURRENT_LIST_DIR}/base.cmake)
