#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Fetch and unpack the MariaDB source that the patch set is built on.

Without --from, the source package is fetched with apt's own tools, which
verify its signature and checksums.  The machine's apt configuration is read
and never changed: a private set of source entries is made from it, with
package lists and a cache of their own.  On a Debian machine of another release
than --suite names, the private entries name that release instead of the
machine's, so the same mirrors and keys serve.  Versions are tried from the
newest to the oldest, because the source of a new security version may be
missing from the mirrors while its binaries are there.  The lists may hold no
older version, as after a point release of Debian.  Then --pinned is taken from
the same mirrors: an older version, which they often keep for some time.  apt's
lists no longer vouch for it, so --pinned-sha256 has to.

With --from, a source directory or tarball is taken instead: MariaDB's own
release, a checkout with its submodules, or a source package, unpacked or as its
.dsc file.  It is
taken again when a file of it has changed.

The source appears under its final name only when it is complete.  A source
that is there already, from the same origin, is left alone.  A new one gets an
identity, in its file .fetched, and all its files the time of now: the archive's
times are older than what was built from the source before, which would then be
taken to be up to date.
Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import functools
import hashlib
import os
import pathlib
import re
import shutil
import tempfile
import uuid

import common
from common import Problem, answer, run

say = functools.partial(print, "-- source:", flush=True)


def source_entries(etc_apt):
    """The machine's package sources, as entries for source packages.

    Returns {file name: text} for a private sources.list.d.  Both the
    one-line format (deb ...) and deb822 (Types: deb) are understood.
    """
    entries = {}
    files = [etc_apt / "sources.list"]
    parts = etc_apt / "sources.list.d"
    if parts.is_dir():
        files += sorted(parts.iterdir())
    for path in files:
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".list":
            lines = [re.sub(r"^\s*deb(-src)?\s", "deb-src ", line)
                     for line in text.splitlines() if re.match(r"\s*deb(-src)?\s", line)]
            if lines:
                entries[path.name] = "\n".join(dict.fromkeys(lines)) + "\n"
        elif path.suffix == ".sources":
            entries[path.name] = re.sub(r"(?mi)^Types:.*$", "Types: deb-src", text)
    return entries


def machine_release(os_release=pathlib.Path("/etc/os-release")):
    """The code name of the Debian release that runs here, None elsewhere."""
    text = os_release.read_text() if os_release.is_file() else ""
    fields = dict(re.findall(r'(?m)^(\w+)="?([^"\n]*)"?$', text))
    return fields.get("VERSION_CODENAME") if fields.get("ID") == "debian" \
        else None


def for_release(entries, machine, suite):
    """Entries that name another Debian release in the place of the machine's.

    Suites of the machine's release, and of stable or oldstable, become those
    of 'suite'.  Other entries, such as a vendor's own packages, may not exist
    for that release, and are left out.
    """
    own = re.compile(rf"(?:{machine}|(?:old)*stable)((?:-[a-z]+)*)")

    def rename(suites):
        return [suite + match[1] for match in map(own.fullmatch, suites) if match]

    result = {}
    for name, text in entries.items():
        parts = []
        if name.endswith(".list"):
            for line in text.splitlines():
                match = re.match(r"(deb-src (?:\[.*?\] *)?\S+ +)(\S+)(.*)", line)
                if match and rename([match[2]]):
                    parts.append(match[1] + rename([match[2]])[0] + match[3] + "\n")
        else:
            for part in re.split(r"\n\s*\n", text):
                match = re.search(r"(?mi)^Suites:(.*)$", part)
                suites = rename(match[1].split()) if match else []
                if suites:
                    parts.append(part[:match.start()] + "Suites: "
                                 + " ".join(suites) + part[match.end():] + "\n\n")
        if parts:
            result[name] = "".join(parts)
    return result


def private_apt(directory, suite):
    """Make a private apt configuration; return the environment to use it."""
    entries = source_entries(pathlib.Path("/etc/apt"))
    machine = machine_release()
    if suite and machine and machine != suite:
        entries = for_release(entries, machine, suite)
    if not entries:
        raise Problem("no package source is configured in /etc/apt; name "
                      "a source tarball or directory by --source")
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True)
    for name, text in entries.items():
        (directory / "parts" / name).write_text(text, encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": directory / "parts",
        "Dir::State::lists": directory / "lists",
        "Dir::Cache": directory / "cache",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    if os.geteuid() == 0:
        # apt's own user cannot write below a home directory
        settings["APT::Sandbox::User"] = "root"
    config = directory / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()),
                      encoding="utf-8")
    return dict(os.environ, APT_CONFIG=str(config), LC_ALL="C")


def mirrors(env):
    """The base addresses of the package sources of private_apt()."""
    _, listed = answer(["apt-get", "indextargets", "--no-release-info", "--format",
                        "$(REPO_URI)", "Created-By: Sources"], env=env)
    # A warning has spaces
    return list(dict.fromkeys(re.findall(r"(?m)^(\S+?)/?$", listed)))


def download_of_pool(address, package, name, sha256, directory, env=None):
    """Fetch a file of a source package from a mirror's pool into 'directory'.

    apt-helper does it, with the machine's proxies and other settings.  Returns
    None, or the reason why the file is not there with that checksum.
    """
    helper = shutil.which("apt-helper", path="/usr/lib/apt")
    if not helper:
        return "there is no apt-helper in /usr/lib/apt"
    letter = package[:4] if package.startswith("lib") else package[0]
    status, output = answer(
        [helper, "download-file",
         f"{address}/pool/main/{letter}/{package}/" + name.replace("+", "%2b"),
         directory / name, "SHA256:" + sha256], env=env)
    if status == 0:
        return None
    # apt-helper may leave a file that it refused
    (directory / name).unlink(missing_ok=True)
    return f"{name}: {reason_in(output)}"


def reason_in(output):
    """The first error that apt's programs name."""
    errors = re.findall(r"(?m)^(?:Err:.*\n\s+|E: )(.*)$", output)
    return errors[0].strip() if errors else "unknown reason"


def fetch_pinned(package, version, sha256, addresses, env, directory):
    """Fetch a version that the lists do not hold; return a reason if it fails.

    'sha256' is that of the version's .dsc file, which holds those of the other
    files.
    """
    description = f"{package}_{version.split(':')[-1]}.dsc"

    def download_all(address):
        reason = download_of_pool(address, package, description, sha256, directory, env)
        if reason:
            return reason
        text = (directory / description).read_text(encoding="utf-8")
        block = re.search(r"(?m)^Checksums-Sha256:\n((?: .*\n)+)", text)
        for checksum, _, name in map(str.split, block[1].splitlines()):
            reason = reason or download_of_pool(address, package, name,
                                                checksum, directory, env)
        return reason

    reasons = []
    for address in addresses:
        reason = download_all(address)
        if not reason:
            return None
        reasons.append(reason)
    return "; ".join(reasons) or "no mirror is configured"


def newer_first(versions):
    """Sort Debian version numbers, the newest first."""
    def compare(a, b):
        status, _ = answer(["dpkg", "--compare-versions", a, "lt", b])
        return 1 if status == 0 else -1
    return sorted(set(versions), key=functools.cmp_to_key(compare))


def fetch_package(package, series, suite, work, pinned=None):
    """Fetch the newest version that can be had; return (source, version).

    'pinned' is (version, SHA256 of its .dsc), or None.
    """
    for tool in ("apt-get", "apt-cache", "dpkg", "dpkg-source"):
        if not shutil.which(tool):
            raise Problem(f"'{tool}' is missing (Debian's packages apt and "
                          "dpkg-dev); or name a source tarball or directory by --source")
    env = private_apt(work / "apt", suite)
    say("reading the package lists (private configuration)")
    run(["apt-get", "update", "-q"], env=env)
    _, output = answer(["apt-cache", "showsrc", package], env=env)
    versions = newer_first(
        version for version in re.findall(r"(?m)^Version: (\S+)$", output)
        if re.match(rf"(\d+:)?{re.escape(series)}\.", version))
    if not versions and not pinned:
        raise Problem(f"the configured package sources have no '{package}' {series} source "
                      "package; name a source tarball or directory by --source")
    directory = work / "download"

    def from_lists(version):
        status, output = answer(["apt-get", "source", "--download-only", "-q",
                                 "--only-source", f"{package}={version}"],
                                env=env, cwd=directory)
        return reason_in(output) if status else None

    def from_mirrors(version):
        return fetch_pinned(package, version, pinned[1], mirrors(env), env, directory)

    ways = [(version, "about 100 MB", from_lists) for version in versions]
    if pinned:
        ways.append((pinned[0], "which the lists no longer hold, by its checksum",
                     from_mirrors))
    failures = []
    for version, what, way in ways:
        directory.mkdir()
        say(f"fetching {package} {version}, {what}")
        reason = way(version)
        if not reason:
            break
        failures.append(f"{version}: {reason}")
        say(f"the source of {version} cannot be fetched ({reason})")
        shutil.rmtree(directory)
    else:
        raise Problem("no version's source could be fetched; name a source tarball or "
                      "directory by --source:\n  " + "\n  ".join(failures))
    if failures:
        say(f"building on {version}, not on the newest version, for that reason")
    descriptions = list(directory.glob("*.dsc"))
    if len(descriptions) != 1:
        raise Problem(f"expected one .dsc file, found {len(descriptions)}")
    unpack_package(descriptions[0], work / "source")
    return work / "source", version


def unpack_package(description, target):
    """Unpack a source package, given its .dsc file."""
    say("unpacking with Debian's patches")
    run(["dpkg-source", "--extract", description, target])


def take_given(given, work):
    """Use a source directory or tarball; return (source, version)."""
    given = pathlib.Path(given).expanduser()
    target = work / "source"
    if given.is_dir():
        say(f"copying {given}")
        shutil.copytree(given, target, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    elif given.suffix == ".dsc" and given.is_file():
        unpack_package(given, target)
    elif given.is_file():
        say(f"unpacking {given}")
        target.mkdir()
        run(["tar", "--extract", "--file", given, "--directory", target,
             "--strip-components=1"])
    else:
        raise Problem(f"{given}: no such file or directory")
    if not (target / "VERSION").is_file():
        raise Problem(f"{given} has no file VERSION at its top: it is not a MariaDB source")
    for part in SUBMODULES:
        if (target / part).is_dir() and not any((target / part).iterdir()):
            raise Problem(f"{part} is empty: in the checkout, git submodule "
                          "update --init --recursive")
    add_revision(given, target)
    return target, package_version(target)


SUBMODULES = ("libmariadb", "wsrep-lib")


def add_revision(given, target):
    """Write down what a checkout is of: its copy has no .git, from which
    MariaDB's build would take that."""
    file = target / "include/source_revision.h"
    if file.exists() or not (given / ".git").exists():
        return
    status, revision = answer(["git", "-C", given, "rev-parse", "HEAD"])
    if status == 0:
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#define SOURCE_REVISION "{revision.strip()}"\n')


def package_version(source):
    """Debian's version of an unpacked source package, if its patches are
    applied; else None."""
    applied = source / ".pc/applied-patches"
    changelog = source / "debian/changelog"
    if not (applied.is_file() and applied.read_text().split() and changelog.is_file()):
        return None
    with open(changelog, encoding="utf-8", errors="replace") as file:
        match = re.match(r"\S+ \((\S+)\)", file.readline())
    return match[1] if match else None


def identity_of(given):
    """A checksum of what a source directory or tarball is: of names, sizes and
    times, which an edit changes."""
    given = pathlib.Path(given).expanduser().resolve()
    found = hashlib.sha256()
    for directory, folders, names in os.walk(given):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = os.path.join(directory, name)
            stat = os.lstat(path)
            found.update(f"{path}\0{stat.st_size} {stat.st_mtime_ns}\0"
                         .encode("utf-8", "surrogateescape"))
    if given.is_file():
        stat = given.stat()
        found.update(f"{stat.st_size} {stat.st_mtime_ns}".encode())
    return f"{given} {found.hexdigest()[:16]}"


def mark_as_new(source):
    """Give a source an identity, and its files the time of now."""
    (source / ".fetched").write_text(f"{uuid.uuid4()}\n")
    for directory, _, names in os.walk(source):
        for name in names:
            os.utime(os.path.join(directory, name), follow_symlinks=False)


def upstream_version(source):
    """The version that a source tree says it is, like 10.11.18."""
    numbers = dict(re.findall(r"(?m)^MYSQL_VERSION_(\w+)=(\S+)$",
                              (source / "VERSION").read_text()))
    return ".".join(numbers.get(part, "?") for part in ("MAJOR", "MINOR", "PATCH"))


def fetch(package, series, suite, given, destination, pinned=None):
    """Bring the source to destination/source, unless it is there."""
    destination.mkdir(parents=True, exist_ok=True)
    final = destination / "source"
    # Where the source came from: nothing is fetched twice
    origin = identity_of(given) if given else "package " + package
    origin_file = destination / "origin"
    if (final.is_dir() and (destination / "version").is_file()
            and origin_file.is_file() and origin_file.read_text().strip() == origin):
        return
    for left in destination.glob(".fetch-*"):
        shutil.rmtree(left, ignore_errors=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix=".fetch-", dir=destination))
    try:
        if given:
            source, version = take_given(given, work)
        else:
            source, version = fetch_package(package, series, suite, work, pinned)
        upstream = upstream_version(source)
        if not upstream.startswith(series + "."):
            raise Problem(f"this is MariaDB {upstream}; the patch set is for {series}")
        mark_as_new(source)
        if final.exists():
            origin_file.unlink(missing_ok=True)
            shutil.rmtree(final)
        source.rename(final)
        (destination / "version").write_text((version or upstream) + "\n")
        origin_file.write_text(origin + "\n")
        say(f"MariaDB {version or upstream} is ready")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(
        description="Fetch and unpack the MariaDB source to build on.")
    parser.add_argument("--package", default="mariadb")
    parser.add_argument("--series", required=True)
    parser.add_argument("--suite", default="", help="this machine's by default")
    parser.add_argument("--from", dest="given", default=os.environ.get("MARIADB_SOURCE", ""))
    parser.add_argument("--destination", required=True, type=pathlib.Path,
                        help="directory that gets source/ and version")
    parser.add_argument("--pinned", metavar="VERSION")
    parser.add_argument("--pinned-sha256", metavar="SHA256", help="of the .dsc file")
    arguments = parser.parse_args()
    if bool(arguments.pinned) != bool(arguments.pinned_sha256):
        parser.error("--pinned and --pinned-sha256 go together")
    fetch(arguments.package, arguments.series, arguments.suite,
          arguments.given, arguments.destination.resolve(),
          (arguments.pinned, arguments.pinned_sha256) if arguments.pinned else None)


if __name__ == "__main__":
    common.end("source", main)
