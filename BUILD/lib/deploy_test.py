#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Install the package of BUILD/package over Debian's running server, and go
back, in a Debian root of its own.

The root is of the Debian release that has the release series: trixie for 11.8.
The package is built there, too, if this machine runs another release.

  1. debootstrap makes the root; Debian's mariadb-server is installed there
     with RocksDB, Connect and the provider plugins, and gets data of all
     engines.
  2. Our package is installed while the server runs.
  3. A newer one of ours is installed over it.
  4. Debian's mariadb-server-core takes its place again.
  5. Ours again, then all is removed; the data stays, and Debian's server,
     installed anew, has it.

At each step: what dpkg says, SELECT VERSION(), whether the running server is
the installed program, CHECK TABLE and checksums of all tables, the files of
Debian's that must not change (unit, init script, configuration), and that
tables can be written.

systemd boots the root in a container (systemd-nspawn), so the packages start
and stop the server as they do on a host.  There the test also follows
docs/DEPLOY.md with its files for a setting of many tables, and kills the
server.  On a machine that allows no such container, the service is started by
its init script, and those checks are left out.

Debian's server has to be of the version that was built on.  If the mirror's
package lists no longer hold that, its packages come from the mirror's pool,
with the checksums in BUILD/lib/pinned-SERIES.sha256.

Everything runs in name spaces of its own for mounts and processes, which end
with this program: no mount, process or file is left, whatever ends it.  What
was downloaded is kept in out/BASE/deploy for the next time.

Prints a line that begins with PASS or FAIL for each check.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import argparse
import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import common
import fetch_source
import outcome
import package
import release
from common import TOP, Problem
from outcome import Outcome
from topology import end_with_parent, say

DEBIAN = ["mariadb-server", "mariadb-plugin-rocksdb", "mariadb-plugin-connect",
          *(f"mariadb-plugin-provider-{name}"
            for name in ("bzip2", "lz4", "lzma", "lzo", "snappy"))]
# The settings of 'Files to copy', with other numbers: 3 * N + 2000 descriptors
TABLES_OPEN = 3000
DESCRIPTORS = 3 * TABLES_OPEN + 2000
EXAMPLES = TOP / "docs/examples"
FILES_TO_COPY = {
    "table-cache-20000.cnf": "etc/mysql/mariadb.conf.d/table-cache.cnf",
    "table-cache-20000.conf": "etc/systemd/system/mariadb.service.d/zz-table-cache.conf"}
ERROR_LOG = "/var/lib/mysql/deploy-test.err"
# A process that does nothing but collect the status of orphans, as init does
INIT = """
import os, time
while True:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        time.sleep(0.1)
"""
UNCHANGED = ("lib/systemd/system/mariadb.service",
             "lib/systemd/system/mariadb@.service", "etc/init.d/mariadb",
             "etc/mysql", "usr/bin/mysqld_safe", "usr/bin/mariadbd-safe")


def mirrors():
    """Where this machine's apt gets Debian and its security updates from, or
    what DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR say: two addresses.  A mirror
    of one Debian release has the others, too."""
    machine = fetch_source.machine_release()
    known = {}
    _, listed = common.answer(["apt-get", "indextargets", "--format",
                               "$(RELEASE) $(REPO_URI)", "Created-By: Packages"])
    for line in listed.splitlines():
        release, _, address = line.partition(" ")
        known.setdefault(release, address.rstrip("/"))
    found = [os.environ.get(variable) or known.get(release)
             for variable, release in (
                 ("DEBIAN_MIRROR", machine),
                 ("DEBIAN_SECURITY_MIRROR", f"{machine}-security"))]
    if not all(found):
        raise Problem(
            "apt of this machine knows no mirror of Debian; set DEBIAN_MIRROR and "
            "DEBIAN_SECURITY_MIRROR to the addresses of Debian and of its security updates")
    return found


DATA = """
INSTALL SONAME 'ha_archive';
CREATE DATABASE shop; USE shop;
CREATE TABLE t_innodb (i INT PRIMARY KEY, t TEXT, KEY (t(10))) ENGINE=InnoDB;
CREATE TABLE t_innodb_compressed (i INT PRIMARY KEY, t TEXT) ENGINE=InnoDB
  ROW_FORMAT=COMPRESSED;
{pages}
CREATE TABLE t_myisam (i INT PRIMARY KEY, t TEXT, FULLTEXT (t)) ENGINE=MyISAM;
CREATE TABLE t_aria (i INT PRIMARY KEY, t TEXT, KEY (t(10))) ENGINE=Aria;
CREATE TABLE t_aria_plain (i INT PRIMARY KEY, t TEXT) ENGINE=Aria TRANSACTIONAL=0;
CREATE TABLE t_csv (i INT NOT NULL, t TEXT NOT NULL) ENGINE=CSV;
CREATE TABLE t_archive (i INT, t TEXT) ENGINE=ARCHIVE;
CREATE TABLE t_rocksdb (i INT PRIMARY KEY, t VARCHAR(500), KEY (t)) ENGINE=ROCKSDB;
CREATE TABLE t_connect (i INT NOT NULL, t CHAR(50) NOT NULL) ENGINE=CONNECT
  TABLE_TYPE=CSV FILE_NAME='connect.csv';
CREATE TABLE t_part (i INT, t TEXT, KEY (i)) ENGINE=MyISAM
  PARTITION BY HASH (i) PARTITIONS 5;
CREATE TABLE m1 (i INT, t TEXT) ENGINE=MyISAM;
CREATE TABLE m2 LIKE m1;
CREATE TABLE t_merge (i INT, t TEXT) ENGINE=MERGE UNION=(m1, m2) INSERT_METHOD=LAST;
CREATE SEQUENCE s START WITH 5;
CREATE VIEW v AS SELECT i FROM t_innodb WHERE i < 10;
CREATE TRIGGER tr AFTER INSERT ON m1 FOR EACH ROW INSERT INTO m2 VALUES (NEW.i, 'by trigger');
CREATE PROCEDURE p() SELECT COUNT(*) FROM t_innodb;
CREATE USER reader@localhost IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO reader@localhost;
"""
TABLES = ("t_innodb", "t_innodb_compressed", "t_myisam", "t_aria",
          "t_aria_plain", "t_csv", "t_archive", "t_rocksdb", "t_connect", "t_part", "m1")
PROVIDERS = ("bzip2", "lz4", "lzma", "lzo", "snappy")


def run(command, log, failure, **options):
    """Run a command whose output goes to a log."""
    with open(log, "a", encoding="utf-8") as stream:
        print(f"\n$ {' '.join(map(str, command))}", file=stream, flush=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=stream, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode:
        tail = log.read_text(errors="replace")[-2500:]
        raise Problem(f"{failure}; the end of {log}:\n{tail}")


class Root:
    """A Debian root with name spaces of its own, and no init system."""

    booted = False
    # The packages that debootstrap adds to the minimum, and a name for the result
    packages, contents = "systemd-sysv,dbus", "systemd"

    def __init__(self, cache, log, suite, shared=()):
        """'shared' are directories that the root has, too: [(here, there)]."""
        self.cache = cache
        self.suite = suite
        self.shared = shared
        self.log = log
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="root-", dir=cache))
        self.holder = None
        self.pid = 0                    # the first process of the name space

    def __enter__(self):
        try:
            self.unpack()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def start(self):
        # When unshare ends, so do the processes and mounts in its name spaces;
        # unshare ends with this program
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child",
             sys.executable, "-c", INIT], stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, signal.SIGKILL))
        self.pid = self.wait_for(lambda: (self.children() or [0])[0], "unshare did not start")
        for command in (
                ["mount", "-t", "proc", "proc", "proc"],
                ["mount", "--rbind", "/dev", "dev"],
                ["mount", "-t", "tmpfs", "tmpfs", "run"],
                ["mount", "--bind", str(self.archives()), "var/cache/apt/archives"],
                *(["mount", "--bind", str(here), str(there).lstrip("/")]
                  for here, there in self.shared)):
            command[-1] = str(self.path / command[-1])
            run(["nsenter", "--mount", "--pid", f"--target={self.pid}",
                 *command], self.log, "cannot mount")

    def archives(self):
        path = self.cache / f"archives-{self.suite}"
        (path / "partial").mkdir(parents=True, exist_ok=True)
        return path

    def children(self):
        """The processes that the holder has started."""
        path = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def wait_for(self, question, failure):
        """The first answer of a function that is true.  Fails if the holder
        ends, or after a minute."""
        for _ in range(1200):
            answer = question()
            if answer:
                return answer
            if self.holder.poll() is not None:
                break
            time.sleep(0.05)
        raise Problem(failure)

    def unpack(self):
        suite = self.suite
        tarball = self.cache / f"{suite}-{self.contents}.tar"
        debian, security = mirrors()
        if not tarball.exists():
            say(f"debootstrap {suite} from {debian}")
            run(["debootstrap", "--variant=minbase",
                 *([f"--include={self.packages}"] if self.packages else []),
                 suite, str(self.path), debian], self.log, "debootstrap failed")
            new = tarball.with_suffix(".new")
            run(["tar", "-C", str(self.path), "-cf", str(new), "."], self.log, "tar failed")
            new.rename(tarball)
        else:
            run(["tar", "-C", str(self.path), "-xf", str(tarball)], self.log, "tar failed")
        self.path.chmod(0o755)
        self.write("etc/apt/sources.list",
                   f"deb {debian} {suite} main\n"
                   f"deb {security} {suite}-security main\n")
        if os.path.exists("/etc/resolv.conf"):
            shutil.copyfile("/etc/resolv.conf", self.path / "etc" / "resolv.conf")
        for _, there in self.shared:
            (self.path / str(there).lstrip("/")).mkdir(parents=True, exist_ok=True)
        # Without an init system, services are started only if a policy says
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 0\n", 0o755)

    def service(self, verb):
        """Start, stop or restart MariaDB."""
        self.do("/etc/init.d/mariadb", verb)

    def write(self, name, text, mode=0o644):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def command(self, *words):
        return ["nsenter", "--mount", "--pid", f"--target={self.pid}",
                "chroot", str(self.path), *self.environment(), *words]

    @staticmethod
    def environment():
        return ["/usr/bin/env", "-i", "--chdir=/",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                "DEBIAN_FRONTEND=noninteractive", "HOME=/root"]

    def do(self, *words, failure=None):
        """Run a command in the root; its output goes to the log."""
        run(self.command(*words), self.log, failure or f"'{' '.join(words)[:100]}' failed")

    def ask(self, *words, text=None, failure_is_answer=False):
        """Run a command in the root and return what it prints."""
        done = subprocess.run(self.command(*words), input=text or "",
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode and not failure_is_answer:
            raise Problem(f"'{' '.join(words)[:100]}' failed:\n" + done.stdout[-2000:])
        return done.stdout.strip()

    def sql(self, text, database=""):
        return self.ask("mariadb", "--batch", "--skip-column-names",
                        *([database] if database else []), text=text)

    def close(self):
        if self.holder:
            self.holder.kill()
            self.holder.wait()
            # The name space ends when its first process has
            for _ in range(200):
                if not self.pid or not os.path.exists(f"/proc/{self.pid}"):
                    break
                time.sleep(0.05)
        shutil.rmtree(self.path, ignore_errors=True)

    def __exit__(self, *_):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)


class BareRoot(Root):
    """What debootstrap takes for the minimum."""
    packages, contents = "", "bare"


class BootedRoot(Root):
    """A Debian root in which systemd runs, in a container."""

    booted = True

    def start(self):
        environment = dict(os.environ)
        if os.path.exists("/sys/fs/cgroup/unified"):
            # Of cgroups, Debian 13's systemd knows the second version only
            environment["SYSTEMD_NSPAWN_UNIFIED_HIERARCHY"] = "1"
        with open(self.log, "a", encoding="utf-8") as stream:
            self.holder = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--boot", "--register=no",
                 "--keep-unit", "--link-journal=no",
                 f"--machine=deploy-test-{os.getpid()}",
                 f"--directory={self.path}",
                 f"--bind={self.archives()}:/var/cache/apt/archives"],
                stdin=subprocess.DEVNULL, stdout=stream,
                stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                preexec_fn=functools.partial(end_with_parent, signal.SIGKILL))
        # systemd-nspawn has others before it has the container's first one
        self.pid = self.wait_for(
            lambda: next((pid for pid in self.children() if self.runs_systemd(pid)), 0),
            "systemd-nspawn did not start")
        self.wait_for(lambda: self.ask("systemctl", "is-system-running", failure_is_answer=True)
                      in ("running", "degraded"), "systemd did not boot")

    @staticmethod
    def runs_systemd(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text() == "systemd\n"
        except OSError:
            return False                # it has ended meanwhile

    def command(self, *words):
        return ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc",
                "--pid", "--root", *self.environment(), *words]

    def service(self, verb):
        self.do("systemctl", verb, "mariadb")

    def close(self):
        if self.holder and self.holder.poll() is None:
            self.holder.terminate()     # which shuts the container down
            try:
                self.holder.wait(60)
            except subprocess.TimeoutExpired:
                pass
        super().close()


def pinned_packages(series, version, cache):
    """Debian's packages of a version that the lists no longer hold.

    Returns a directory that is an apt repository of them.
    """
    upstream = version.split(":")[-1]
    pins = pathlib.Path(__file__).with_name(f"pinned-{series}.sha256")
    wanted = [line.split() for line in pins.read_text().splitlines() if f"_{upstream}_" in line]
    if not wanted:
        raise Problem(f"the mirror has no packages of {version} any more, "
                      f"and {pins} has no checksums of them")
    directory = cache / f"pinned-{upstream}"
    directory.mkdir(exist_ok=True)
    say(f"fetching {len(wanted)} of Debian's packages of {upstream}, which the "
        "mirror's lists no longer hold")
    for checksum, name in wanted:
        file = directory / name
        if (file.exists() and checksum == hashlib.sha256(file.read_bytes()).hexdigest()):
            continue
        reasons = [fetch_source.download_of_pool(address, "mariadb", name, checksum, directory)
                   for address in mirrors() if not file.exists()]
        if not file.exists():
            raise Problem("; ".join(reasons))
    with open(directory / "Packages", "w", encoding="utf-8") as index:
        if subprocess.run(["dpkg-scanpackages", "--multiversion", "."],
                          cwd=directory, stdout=index,
                          stderr=subprocess.DEVNULL, check=False).returncode:
            raise Problem("dpkg-scanpackages (Debian's package dpkg-dev) failed")
    return directory


class Test(Outcome):
    def __init__(self, root, series, stock, debian_version, ours):
        self.root = root
        self.series = series            # MariaDB's, for example 11.8
        self.stock = stock              # Debian's server's version
        self.debian_version = debian_version
        self.ours = ours                # [(path, server's version)]
        self.files = {}
        self.sums = {}
        self.rows = 0
        self.program = "/usr/sbin/mariadbd"

    # ------------------------------------------------------------- the data

    def fill(self):
        """More rows in every table."""
        first, self.rows = self.rows + 1, self.rows + 300
        self.root.sql("".join(
            f"INSERT INTO {table} SELECT seq, CONCAT('row ', "
            f"MD5(seq)) FROM seq_{first}_to_{self.rows};\n"
            for table in TABLES + tuple(f"t_pages_{name}" for name in PROVIDERS)), "shop")

    def create(self):
        pages = "".join(
            f"SET GLOBAL innodb_compression_algorithm={name};\n"
            f"CREATE TABLE t_pages_{name} (i INT PRIMARY KEY, t TEXT) "
            "ENGINE=InnoDB PAGE_COMPRESSED=1;\n"
            f"INSERT INTO t_pages_{name} SELECT -seq, REPEAT('x', 500) FROM seq_1_to_100;\n"
            for name in PROVIDERS)
        self.root.sql(DATA.format(pages=pages))
        self.fill()

    def checksums(self):
        tables = self.root.sql(
            "SELECT table_name FROM information_schema.tables WHERE "
            "table_schema = 'shop' AND table_type IN ('BASE TABLE', 'SEQUENCE')").split()
        text = "".join(f"CHECKSUM TABLE {table} EXTENDED;\n"
                       f"SELECT '{table}', COUNT(*) FROM {table};\n"
                       for table in sorted(tables))
        return self.root.sql(text + "SHOW CREATE VIEW v; SHOW CREATE TRIGGER "
                             "tr; SHOW GRANTS FOR reader@localhost;", "shop")

    def unsound(self):
        tables = [name for name in TABLES if name != "t_connect"]
        tables += ["t_merge", *(f"t_pages_{name}" for name in PROVIDERS)]
        answer = self.root.sql(f"CHECK TABLE {', '.join(tables)} EXTENDED", "shop")
        return "; ".join(
            line for line in answer.splitlines()
            if "\terror\t" in line or ("\tstatus\t" in line and not line.endswith("\tOK")))

    def digests(self):
        """{path: checksum} of Debian's files that must not change."""
        result = {}
        for name in UNCHANGED:
            path = self.root.path / name
            files = ([path] if path.is_file()
                     else sorted(path.rglob("*")) if path.is_dir() else [])
            for file in files:
                there = str(file.relative_to(self.root.path))
                if file.is_file() and there not in FILES_TO_COPY.values():
                    result[there] = hashlib.sha256(file.read_bytes()).hexdigest()
        return result

    # ------------------------------------------------------------ the checks

    def remember(self):
        self.sums = self.checksums()

    def verify(self, step, version, core):
        """After a step: the packages, the server and the data are right."""
        root = self.root
        states = dict(line.split("\t") for line in root.ask(
            "dpkg-query", "--show", "--showformat",
            "${Package}\\t${db:Status-Abbrev}${Version}\\n",
            "*mariadb*").splitlines())
        wrong = [f"{name} is '{states.get(name)}'" for name in
                 (*DEBIAN, core) if not states.get(name, "").startswith("ii")]
        other = ({package.NAME, package.REPLACED} - {core}).pop()
        if states.get(other, "").startswith("ii"):
            wrong.append(f"{other} is installed, too")
        audit = root.ask("dpkg", "--audit") + root.ask(
            "apt-get", "check", "-qq", failure_is_answer=True)
        self.check(f"{step}: {core} and Debian's packages are installed",
                   "; ".join(wrong) + audit)
        answer = root.sql("SELECT VERSION()")
        self.check(f"{step}: SELECT VERSION() is {version}",
                   None if answer == version else f"it is {answer}")
        program = root.ask("sh", "-c", "readlink /proc/$(pidof mariadbd)/exe")
        self.check(f"{step}: the running server is the installed one",
                   None if program == self.program else program)
        root.do("mariadb-upgrade", "--force", failure=f"{step}: mariadb-upgrade failed")
        self.check(f"{step}: CHECK TABLE", self.unsound())
        same = self.checksums() == self.sums
        self.check(f"{step}: all tables, views, triggers and grants are as "
                   "before", None if same else "they differ:\n" + "\n".join(
                       set(self.checksums().splitlines()) ^ set(self.sums.splitlines())))
        files = self.digests()
        changed = sorted(name for name in set(files) | set(self.files)
                         if files.get(name) != self.files.get(name))
        self.check(f"{step}: unit, init script and configuration "
                   f"({len(files)} files) are Debian's", ", ".join(changed))
        self.fill()
        self.remember()
        log = root.path / ERROR_LOG.lstrip("/")
        text = log.read_text(errors="replace") if log.exists() else ""
        alarms = re.findall(r"(?m)^.*(?:got signal|Assertion|\[ERROR\]).*$", text)
        if "ready for connections" not in text:
            alarms.append("there is no log")
        log.unlink(missing_ok=True)
        self.check(f"{step}: no error in the log", "; ".join(alarms[:3]))

    def ours_is_active(self, step):
        root = self.root
        root.sql("INSTALL SONAME 'table_cache_info'")
        rows = int(root.sql(
            "SELECT COUNT(*) FROM information_schema.TABLE_CACHE WHERE TABLE_SCHEMA='shop'"))
        has = root.sql("SHOW GLOBAL STATUS LIKE 'Table_open_cache_evictions'")
        self.check(f"{step}: the patched table cache is active",
                   None if rows and has else f"{rows} tables, {has!r}")
        root.sql("UNINSTALL SONAME 'table_cache_info'")
        root.sql("INSTALL SONAME 'table_cache_dump'")
        said = root.sql("SHOW GLOBAL STATUS LIKE 'Table_cache_%_status'")
        root.sql("UNINSTALL SONAME 'table_cache_dump'")
        self.check(f"{step}: the plugin for warm restarts is there",
                   None if "Table_cache_load_status" in said else repr(said))
        # Debian's plugin, which reads structures of the server
        root.sql("SET GLOBAL query_cache_type=ON; SET GLOBAL query_cache_size=1000000; "
                 "INSTALL SONAME 'query_cache_info'")
        shown = root.sql(
            "SET query_cache_type=ON; SELECT COUNT(*) FROM shop.t_aria; "
            "SELECT COUNT(*) FROM shop.t_aria WHERE i < 10; "
            "SELECT STATEMENT_TEXT FROM information_schema.QUERY_CACHE_INFO ORDER BY 1")
        root.sql("UNINSTALL SONAME 'query_cache_info'; SET GLOBAL query_cache_size=0; "
                 "SET GLOBAL query_cache_type=OFF")
        self.check(f"{step}: Debian's query_cache_info reads the query cache",
                   None if "t_aria WHERE i < 10" in shown else shown[-500:])

    # ------------------------------------------------------------- the steps

    def install(self, *words):
        self.root.do("apt-get", "install", "--yes", "--quiet",
                     "--no-install-recommends", *words)

    def follow_the_files_to_copy(self, version):
        """docs/SIZING.md, 'Files to copy', edited for TABLES_OPEN tables: few
        enough for the descriptors that a container gets."""
        root = self.root
        say("copying the files for many tables")
        numbers = {"62000": DESCRIPTORS, "22000": TABLES_OPEN * 11 // 10,
                   "20000": TABLES_OPEN}
        for name, there in FILES_TO_COPY.items():
            text = (EXAMPLES / name).read_text()
            for number, other in numbers.items():
                text = text.replace(number, str(other))
            root.write(there, text)
        root.do("systemctl", "daemon-reload")
        root.service("restart")
        limit = root.ask("sh", "-c", "grep 'open files' "
                         "/proc/$(pidof mariadbd)/limits").split()[3]
        asked = root.sql("SELECT @@table_open_cache, @@table_definition_cache, "
                         "@@open_files_limit, @@innodb_open_files").split()
        found = [limit, *asked]
        expected = list(map(str, (DESCRIPTORS, TABLES_OPEN, TABLES_OPEN * 11 // 10, DESCRIPTORS,
                                  TABLES_OPEN)))
        self.check("files to copy: systemd and the server obey them",
                   None if found == expected else f"{found}, not {expected}")
        say("killing the server")
        root.do("sh", "-c", "kill -KILL $(pidof mariadbd)")
        root.wait_for(lambda: root.ask(
            "systemctl", "show", "--property=NRestarts,ActiveState", "--value",
            "mariadb").split() == ["1", "active"],
            "systemd has not started the killed server again")
        self.verify("killed, and started again by systemd", version, package.NAME)
        for there in FILES_TO_COPY.values():
            (root.path / there).unlink()
        root.do("systemctl", "daemon-reload")
        root.service("restart")

    def install_debians_server(self):
        """With the plugins' packages, and data of all engines."""
        root = self.root
        upstream = self.debian_version.split(":")[-1]
        core = package.REPLACED
        root.write("etc/apt/preferences.d/mariadb",
                   "Package: src:mariadb\n"
                   f"Pin: version {self.debian_version}\n"
                   "Pin-Priority: 1001\n")
        root.write("etc/mysql/mariadb.conf.d/99-deploy-test.cnf",
                   "[mariadbd]\nskip-networking\ntable_open_cache=50\n"
                   f"log_error={ERROR_LOG}\n"
                   # There is no syslog
                   "[mysqld_safe]\nskip_syslog\n"
                   f"log_error={ERROR_LOG}\n")
        say(f"installing Debian's server {upstream}")
        root.do("apt-get", "update", "--quiet")
        if self.debian_version not in root.ask("apt-cache", "madison", core):
            # apt need not verify again what was fetched with its checksum
            shutil.copytree(pinned_packages(self.series, self.debian_version, root.cache),
                            root.path / "root" / "pinned")
            root.write("etc/apt/sources.list.d/pinned.list",
                       "deb [trusted=yes] file:/root/pinned ./\n")
            root.do("apt-get", "update", "--quiet")
        self.install(*DEBIAN)
        found = root.ask("dpkg-query", "--show", "--showformat", "${Version}", core)
        if found != self.debian_version:
            raise Problem(f"the mirror's {core} is {found}; the package "
                          f"is for {self.debian_version}")
        # The plugins' settings came after the server was started.  The trigger
        # of Debian's package restarts it only where there is no systemd
        root.service("restart")
        self.create()
        self.remember()
        self.files = self.digests()
        if not any(path.endswith("mariadb.service") for path in self.files):
            raise Problem("Debian's package has not installed " + UNCHANGED[0])
        self.verify("Debian's server", self.stock, core)

    def run(self):
        root, stock = self.root, self.stock
        name, core = package.NAME, package.REPLACED
        for path, _ in self.ours:
            shutil.copy(path, root.path / "root")
        self.install_debians_server()
        (first, first_version), (second, second_version) = self.ours
        say("installing our package over the running server")
        self.install(f"/root/{first.name}")
        self.verify("ours installed", first_version, name)
        self.ours_is_active("ours installed")

        say("upgrading to the next version of ours")
        self.install(f"/root/{second.name}")
        self.verify("ours upgraded", second_version, name)
        self.ours_is_active("ours upgraded")
        if root.booted:
            self.follow_the_files_to_copy(second_version)

        say("going back to Debian's")
        self.install(core)
        root.service("restart")
        self.verify("back to Debian's", stock, core)
        left = root.ask("dpkg-query", "--show", "--showformat",
                        "${db:Status-Abbrev}", name, failure_is_answer=True)
        self.check("back to Debian's: nothing of ours is left",
                   left if left.startswith(("ii", "rc")) else None)

        say("ours again, then removing all")
        self.install(f"/root/{second.name}")
        self.verify("ours installed again", second_version, name)
        root.do("apt-get", "remove", "--yes", "--quiet", name)
        running = root.ask("sh", "-c", "pidof mariadbd || true")
        self.check("ours removed: the server is shut down", running)
        files = [str(path) for path in (root.path / "usr").rglob("*")
                 if path.name in ("mariadbd", "table_cache_info.so", "table_cache_dump.so")
                 or package.NAME in path.name]
        self.check("ours removed: no file is left", ", ".join(files))
        self.install(*DEBIAN)
        root.service("start")
        self.verify("Debian's server installed anew", stock, core)
        root.service("stop")


def server_version(version, values):
    """SELECT VERSION() of the server in a package of this version."""
    return (version.split(":")[-1].replace("-", "-MariaDB-", 1)
            + re.sub(r"^-\S+", "", values["SUFFIX"]))


def build(top, trees, cache, log, suite):
    """Two versions of the package, to upgrade from one to the other."""
    output = cache / "packages"
    output.mkdir(exist_ok=True)
    named = release.release(top)
    # A build before a release, and the release
    versions = [f"{named}~1", named]
    commands = [[str(top / "BUILD" / "package"), "--base", trees.name,
                 "--release", version, "--no-tarball",
                 "--output", str(output)] for version in versions]
    if fetch_source.machine_release() == suite:
        status = max(subprocess.run(command, check=False).returncode
                     for command in reversed(commands))
    else:
        # The root has a cache of its own for what CMake finds
        found = cache / "cmake"
        found.mkdir(exist_ok=True)
        (trees / "cmake").mkdir(exist_ok=True)
        with Root(cache, log, suite, [(top, top),
                                      (found, trees / "cmake")]) as root:
            say(f"building the packages in a root of {suite}")
            root.do("apt-get", "update", "--quiet")
            status = max(subprocess.run(root.command(
                f"CCACHE_DIR={cache / 'ccache'}", "GIT_CONFIG_COUNT=1",
                "GIT_CONFIG_KEY_0=safe.directory", f"GIT_CONFIG_VALUE_0={top}",
                *command), check=False).returncode for command in reversed(commands))
    if status:
        raise Problem("BUILD/package failed; see above")
    return [next(path for path in output.glob("*.deb")
                 if f"+tc{version}_" in path.name) for version in versions]


def cache_directory(trees):
    """Where roots are made and what was downloaded is kept."""
    cache = trees / "deploy"
    cache.mkdir(parents=True, exist_ok=True)
    # Open until this program ends
    lock = os.open(cache / "lock", os.O_WRONLY | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Problem(f"another test runs in {cache}; wait for its end") from None
    for left in cache.glob("root-*"):
        # Of a run that was killed; its mounts went with its name space
        shutil.rmtree(left, ignore_errors=True)
    return cache


@contextlib.contextmanager
def booted_root(*arguments):
    """A root with systemd; None on a machine that allows no such container."""
    root = BootedRoot(*arguments)
    try:
        root.__enter__()
    except Problem as error:
        say(f"no container with systemd here: {error}")
        yield None
        return
    try:
        yield root
    finally:
        root.__exit__()


def begin(description):
    """Read the command line of a test in roots; return the directory of trees, that of
    roots, the log, and what the series' base file says."""
    parser = argparse.ArgumentParser(description=f"{description} (called by BUILD/test).")
    parser.add_argument("--trees", required=True,
                        type=lambda name: pathlib.Path(name).resolve())
    trees = parser.parse_args().trees
    if os.geteuid():
        raise Problem("making a Debian root needs root")
    cache = cache_directory(trees)
    (cache / "log").write_text("")
    return trees, cache, cache / "log", package.base_values(TOP, trees.name)


def main():
    trees, cache, log, values = begin("Test the package in a Debian root")
    paths = build(TOP, trees, cache, log, values["SUITE"])
    debian_version = (trees / "stock" / "version").read_text().strip()
    ours = [(path, server_version(common.run(
        ["dpkg-deb", "--field", path, "Version"]).strip(), values)) for path in paths]
    arguments = cache, log, values["SUITE"]
    with contextlib.ExitStack() as stack:
        root = (stack.enter_context(booted_root(*arguments))
                or stack.enter_context(Root(*arguments)))
        test = Test(root, trees.name, server_version(debian_version, values),
                    debian_version, ours)
        test.run()
    return 1 if test.failures else 0


if __name__ == "__main__":
    outcome.run(main, "deploy")
