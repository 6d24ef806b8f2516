#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: create_datadir.sh SOURCE BUILD-TREE DATADIR [MARIADBD-OPTION...]
#
# Fill an empty directory with a server's system tables, by MariaDB's own
# mariadb-install-db.  The operating system's root and the present user may
# log in through the socket without a password.  --force: a machine whose own name
# and localhost cannot be looked up, such as a bare Debian root, is good enough.
set -eu
user=$(id -un)
source=$1 tree=$2 datadir=$3
shift 3
exec "$tree/scripts/mariadb-install-db" --no-defaults \
  "--srcdir=$source" "--builddir=$tree" "--datadir=$datadir" \
  --auth-root-authentication-method=socket \
  "--auth-root-socket-user=$user" --skip-test-db "--user=$user" \
  --skip-name-resolve --force "$@"
