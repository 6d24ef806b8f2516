# SPDX-License-Identifier: GPL-2.0-only
#
# MariaDB 10.11 as Debian 12 has it: the package that brings the source, and
# what differs in its configuration.  The commands in BUILD/ read the lines that
# begin with set(BASE_.

set(BASE_DEBIAN 12)
set(BASE_SUITE bookworm)
set(BASE_PACKAGE mariadb)
# A version that was tested, for when none in the package lists can be fetched:
# fetch_source.py takes it from the mirror if its .dsc file is this one, which was
# taken when the lists vouched for it
set(BASE_PINNED 1:10.11.18-0+deb12u1)
set(BASE_PINNED_SHA256
    bf86fbf8c9cf5d40329d63cbadfbc776e19d7caacef480befda181f10fbcd1f9)
# Other versions for which the patch set has variants.  BUILD/test unit checks the
# patches on those that --source has brought
set(BASE_ALSO 1:10.11.14-0+deb12u2)
set(BASE_SUFFIX "-0+deb12u1")
set(BASE_SHARE share/mysql)
set(BASE_TESTS share/mysql/mysql-test)
set(BASE_OWN_OPTIONS -DWITH_PMEM=OFF)

include(${CMAKE_CURRENT_LIST_DIR}/base.cmake)
