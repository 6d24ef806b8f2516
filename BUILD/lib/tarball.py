# SPDX-License-Identifier: GPL-2.0-only
"""Make a binary tarball that runs wherever it is unpacked.

MariaDB's own install rules fill it, and its directories are those of MariaDB's
binary tarballs: bin, lib, lib/plugin, man, scripts, share.  The build has
Debian's directories compiled in, below the base directory; lib/mysql and
share/mysql (on 11.8 share/mariadb) are links that lead from these to the ones
above.

The libraries that the programs need are in lib, and the programs look there
first ($ORIGIN in their RUNPATH, written by patchelf).  Of the system they need
the C and C++ libraries, of the versions that host_versions() tells, and for two
plugins what HOST_LIBRARIES names.
"""

import os
import pathlib
import re
import shutil

from common import Problem, answer, run

# Of all series: cmake --install passes over one that a series does not have.
# Left out are the tests, and S3, Kerberos and HashiCorp, whose libraries bring
# half a distribution
COMPONENTS = ("Server", "Server_Scripts", "ManPagesServer", "Client",
              "ManPagesClient", "ClientPlugins", "backup", "Backup",
              "SupportFiles", "Common", "Readme", "provider-bzip2",
              "provider-lz4", "provider-lzma", "provider-lzo", "provider-snappy")
# glibc has to be that of the kernel's loader; PAM and Kerberos load modules of
# the system, which fit the system's own libraries alone; and these may be in C++,
# of a newer version than a bundled one would be
HOST_LIBRARIES = re.compile(
    r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|nsl|anl|stdc\+\+|gcc_s)"
    r"|libpam|libaudit|libcap-ng"
    r"|lib(gssapi_krb5|krb5|k5crypto|krb5support|com_err|keyutils))\.so\..*")
# With ARCHIVE, BLACKHOLE or FEDERATEDX built in, mariadb-upgrade would remove
# them from mysql.plugin, and the server of other packages would lack them then
NEEDED = ("bin/mariadbd", "bin/mariadb", "bin/mariadb-backup",
          "scripts/mariadb-install-db", "lib/plugin/ha_archive.so", "lib/plugin/ha_blackhole.so",
          "lib/plugin/ha_federatedx.so")


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(4) == b"\x7fELF"


def libraries_of(listing):
    """{name: path} of what ldd prints.  A library that is missing has no path."""
    found = {}
    for line in listing.splitlines():
        match = re.match(r"\s*(\S+) => (?:(/\S+)|not found)", line)
        if match:
            found[match[1]] = match[2]
    return found


def bundled(listing):
    """Of what ldd prints, the libraries that belong into the tarball."""
    missing = [name for name, path in libraries_of(listing).items() if not path]
    if missing:
        raise Problem("these libraries are missing on this machine: " + ", ".join(missing))
    return {name: path for name, path in libraries_of(listing).items()
            if not HOST_LIBRARIES.fullmatch(name)}


def merge(source, target):
    """Move what is in one directory into another."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        entry.rename(target / entry.name)
    source.rmdir()


def arrange(installed, tree):
    """Give what cmake --install wrote below a root MariaDB's directories."""
    usr = installed / "usr"
    merge(usr / "sbin", usr / "bin")
    # mariadb-install-db looks for the server there
    (usr / "sbin").symlink_to("bin")
    (usr / "scripts").mkdir()
    for name in ("mariadb-install-db", "mysql_install_db"):
        if (usr / "bin" / name).is_symlink() or (usr / "bin" / name).exists():
            (usr / "bin" / name).rename(usr / "scripts" / name)
    # With the names of Debian's directories the build finds them
    for own in (usr / "share" / "mysql", usr / "share" / "mariadb"):
        if own.is_dir() and not own.is_symlink():
            merge(own, usr / "share")
            own.symlink_to(".")
    merge(usr / "lib" / "mysql" / "plugin", usr / "lib" / "plugin")
    (usr / "lib" / "mysql").rmdir()
    (usr / "lib" / "mysql").symlink_to(".")
    for name in ("mariadb-server", "docs"):
        if (usr / name).is_dir():
            merge(usr / name, usr)
    usr.rename(tree)


def add_libraries(tree):
    """Copy the libraries, and let everything look for them in lib."""
    elf = [path for path in tree.rglob("*") if is_elf(path)]
    wanted = {}
    for path in elf:
        wanted.update(bundled(run(["ldd", path])))
    for name, path in wanted.items():
        shutil.copyfile(path, tree / "lib" / name)
        (tree / "lib" / name).chmod(0o644)
    for path in [*elf, *(tree / "lib" / name for name in wanted)]:
        up = os.path.relpath(tree / "lib", path.parent)
        run(["patchelf", "--set-rpath", "$ORIGIN" if up == "." else f"$ORIGIN/{up}", path])
    add_licenses(tree, wanted)
    return sorted(wanted)


def add_licenses(tree, wanted):
    """The copyright files of the Debian packages that the libraries are from."""
    for path in wanted.values():
        real = os.path.realpath(path)
        package = next(filter(None, (owner(name).split(":")[0] for name in (
            path, real, real.removeprefix("/usr")))), None)
        if not package:
            continue
        target = tree / "licenses" / package
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", target)


def owner(path):
    """What dpkg says about a file, '' if it does not know it."""
    status, said = answer(["dpkg-query", "--search", path])
    return "" if status else said


def host_versions(tree):
    """{"GLIBC": "2.31", "GLIBCXX": "3.4.28"}: the oldest C and C++ libraries that have
    all that the tarball's files ask for."""
    newest = {}
    for path in tree.rglob("*"):
        if is_elf(path):
            for library, version in re.findall(r"\b(GLIBC|GLIBCXX)_([\d.]+)",
                                               run(["objdump", "-p", path])):
                newest[library] = max(newest.get(library, (0,)),
                                      tuple(map(int, version.split("."))))
    return {library: ".".join(map(str, version)) for library, version in newest.items()}


def make(build, name, output, deploy):
    """Make output/NAME.tar.gz of a build tree; 'deploy' is put in as it is.
    Returns its path, the bundled libraries, and host_versions()."""
    work = output / f".{name}"
    target = output / f"{name}.tar.gz"
    new = target.with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    try:
        for component in COMPONENTS:
            run(["cmake", "--install", build, "--strip", "--component", component],
                env={**os.environ, "DESTDIR": str(work / "root")})
        tree = work / name
        arrange(work / "root", tree)
        libraries = add_libraries(tree)
        shutil.copyfile(deploy, tree / pathlib.Path(deploy).name)
        dump = "plugin/table_cache_dump"
        own = (f"lib/{dump}.so",) if (build.parent / "source" / dump).is_dir() else ()
        for needed in (*NEEDED, *own):
            if not (tree / needed).exists():
                raise Problem(f"the tarball would have no {needed}")
        versions = host_versions(tree)
        run(["tar", "-C", work, "--create", "--gzip", "--file", new, "--owner=0",
             "--group=0", "--sort=name", name])
        new.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        new.unlink(missing_ok=True)
    return target, libraries, versions
