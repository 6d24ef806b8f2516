# SPDX-License-Identifier: GPL-2.0-only
"""What is wrong in the documents: names that nothing in the source has, numbers
that nobody has measured, and too much text.

Names
=====
A document names functions, variables, types and files between backquotes.  When
the code gets another name there, the document keeps the old one, and nobody
finds it.  Here each such name is searched for

1. in the repository, except in its documents;
2. in MariaDB's source, if it is there: the patched tree has both.

Names are

- words that contain '_', or stand at '()' or '::': take_victim(), Open_tables.
  A word that begins or ends with '_' is a part of a name: THR_LOCK_*;
- files with one of the SUFFIXES, with or without directories;
- FILE:FUNCTION(), which says in addition that FILE has FUNCTION.

Letters are compared without regard to case, as the server compares the names of
variables.  Examples, which are indented or fenced, are not looked at.

Numbers
=======
README and the pages of the parts say what the patches gain and cost.  A sentence,
list item or row of a table there with a number of such a unit (UNITS) refers to
PERFORMANCE.md#SCENARIO, and that scenario has the number, rounded as on the page.
"""

import os
import pathlib
import re
import subprocess

SUFFIXES = "cc|c|h|inl|ic|py|patch|cmake|packages|suppressions|test|inc|svg"
CODE = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FILE = re.compile(rf"[\w./+-]*[\w-]\.(?:{SUFFIXES})(?![\w.-]|\()")
PLACE = re.compile(rf"([\w./+-]+\.(?:{SUFFIXES})):(?:~?\w+::)*(~?\w+)\(\)")
# Where MariaDB's names are that documents mention; not all 600 MB
FOLDERS = ("client", "cmake", "extra/mariabackup", "include", "mysys", "plugin",
           "scripts", "sql", "storage/innobase", "storage/maria",
           "storage/myisam", "storage/perfschema", "mysql-test/main",
           "mysql-test/suite/innodb", "mysql-test/suite/sys_vars")
# Prefixes under which the server shows variables that the source has without
SHOWN_AS = ("Innodb_",)


def paragraphs(text):
    """Yield (number of the line, text) for the paragraphs of a document in Markdown that
    are no examples."""
    number, fenced = 1, False
    for paragraph in re.split(r"(\n\s*\n)", text):
        fences = len(re.findall(r"(?m)^```", paragraph))
        if not fenced and not fences and not paragraph.startswith("    "):
            yield number, paragraph
        fenced ^= fences % 2 == 1
        number += paragraph.count("\n")


def codes(text):
    """Yield (number of the line, what is between backquotes)."""
    for number, paragraph in paragraphs(text):
        for code in CODE.finditer(paragraph):
            yield (number + paragraph.count("\n", 0, code.start()),
                   re.sub(r"\s+", " ", code[1]))


def words_of(code):
    """The names of functions, variables and types in a piece of code."""
    for file in FILE.findall(code):
        code = code.replace(file, " ")
    return {match[0] for match in WORD.finditer(code)
            if "_" in match[0].strip("_") or match[0][0] == "_" or match[0][-1] == "_"
            or code[match.end():].startswith(("()", "::"))
            or code[:match.start()].endswith("::")}


def files_of(code):
    """The files that a piece of code names, without patterns and examples."""
    return {file.removeprefix("./") for file in FILE.findall(code)
            if not re.search(r"[*{}<>$]|SERIES|(^|/)foo\.", code) and not file.startswith("/")}


class Source:
    """The repository, and MariaDB's source where it is."""

    def __init__(self, top, tree=None):
        self.top = top
        self.tree = tree
        self.files = {}                 # {name: [path]}
        text = []
        for path in self.below(top, ("out", ".git")):
            self.files.setdefault(path.name, []).append(path)
            text.append(str(path.relative_to(top)))
            if path.suffix not in (".md", ".svg", ".gz"):
                text.append(path.read_text(errors="replace"))
        self.words = {word.lower() for word in WORD.findall("\n".join(text))}
        if tree:
            for path in self.below(tree, (".git",)):
                self.files.setdefault(path.name, []).append(path)

    @staticmethod
    def below(top, without):
        for folder, folders, names in os.walk(top):
            if pathlib.Path(folder) == top:
                folders[:] = [each for each in folders if each not in without]
            for name in names:
                yield pathlib.Path(folder, name)

    def has_file(self, name):
        """Whether there is this file, or for FILE.patch such a patch."""
        return any(path.parts[-len(pathlib.PurePath(name).parts):]
                   == pathlib.PurePath(name).parts
                   for path in self.files.get(pathlib.PurePath(name).name, ()))

    def place(self, file, function):
        """Whether a file has a function: the new one, or the patched one."""
        parts = pathlib.PurePath(file).parts
        return any(re.search(rf"(?<!\w){re.escape(function)}\(",
                             path.read_text(errors="replace"))
                   for path in self.files.get(parts[-1], ())
                   if path.parts[-len(parts):] == parts)

    def words_like(self, names):
        """The words of MariaDB's source that have one of these names in them."""
        folders = [str(self.tree / name) for name in FOLDERS
                   if self.tree and (self.tree / name).is_dir()]
        if not names or not folders:
            return set()
        found = subprocess.run(
            ["grep", "-rhoiEI", rf"\w*({'|'.join(names)})\w*", *folders],
            text=True, errors="replace", stdout=subprocess.PIPE, check=False)
        return {word.lower() for word in found.stdout.split()}

    def unknown(self, names):
        """Those that neither the repository nor MariaDB's source has."""
        def left_of(names, words):
            return {name for name in names if not (
                any(name.lower() in word for word in words)
                if name.strip("_") != name else name.lower() in words
                or any(name.startswith(shown)
                       and name.lower()[len(shown):] in words for shown in SHOWN_AS))}
        left = left_of(names, self.words)
        return left_of(left, self.words_like(left))


def problems(source, documents, elsewhere=()):
    """Yield a sentence for each name in documents, {name: text}, that is
    nowhere; 'elsewhere' has names of other programs'."""
    wanted = {}
    for document, text in sorted(documents.items()):
        for number, code in codes(text):
            for word in words_of(code):
                wanted.setdefault(word, f"{document}:{number}")
            for file in files_of(code):
                if not source.has_file(file) and file not in elsewhere:
                    yield f"{document}:{number}: no file {file}"
            for file, function in PLACE.findall(code):
                if source.has_file(file) and not source.place(file, function):
                    yield f"{document}:{number}: {file} has no {function}()"
    for word in sorted(source.unknown(wanted) - set(elsewhere)):
        yield f"{wanted[word]}: nothing has the name {word}"


def has_anchor(text, anchor):
    """Whether a link to #ANCHOR of a document in Markdown leads somewhere."""
    seen = {}
    for heading in re.findall(r"(?m)^#+ +(.*)$", text):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        if anchor == (f"{slug}-{count}" if count else slug):
            return True
    return f'<a id="{anchor}">' in text


# ------------------------------------------------------------------- numbers

UNITS = r"×|%|MiB|KiB|times\b|ms\b|us\b|s\b"
NUMBER = r"(?<![\w.,/-])\d[\d,]*(?:\.\d+)?"
CLAIM = re.compile(rf"({NUMBER})\s?(?:{UNITS})")


def statements(text):
    """Yield (number of the line, text) of each sentence's paragraph, list item and row of a
    table, without code."""
    text = re.sub(r"(?s)<!--.*?-->", lambda each: "\n" * each[0].count("\n"), text)
    for number, paragraph in paragraphs(text):
        for part in re.split(r"\n(?=\||- |\d+\. )", paragraph):
            yield number, re.sub(r"`[^`]*`", " ", part)
            number += part.count("\n") + 1


def value(text):
    return float(text.replace(",", ""))


def sections(performance):
    """{scenario: its numbers} of docs/PERFORMANCE.md."""
    result = {}
    for name, rows in re.findall(r'(?s)<a id="([^"]+)"></a>(.*?)(?=<a id=|\n\n)', performance):
        rows = re.sub(r"\]\([^)]*\)", "]", rows)
        result[name] = {value(found) for found in re.findall(NUMBER, rows)}
    return result


def has(known, number):
    """Whether one of the known numbers is this one, when it is rounded."""
    half = 0.5 * 10 ** -len(number.partition(".")[2])
    return any(abs(each - value(number)) <= half * 1.0001 for each in known)


def unmeasured(documents, performance):
    """Yield a sentence for each number in documents, {name: text}, that the scenario
    to which its sentence refers does not have."""
    known = sections(performance)
    for document, text in sorted(documents.items()):
        for line, statement in statements(text):
            names = re.findall(r"PERFORMANCE\.md#([\w.-]+)", statement)
            for name in names:
                if name not in known:
                    yield f"{document}:{line}: PERFORMANCE has no section {name}"
            bare = re.sub(r"\]\([^)]*\)", "]", statement)
            for number in CLAIM.findall(bare):
                if not any(has(known.get(name, ()), number) for name in names):
                    yield (f"{document}:{line}: {number} is in no result of "
                           + (", ".join(names) or
                              "PERFORMANCE.md#SCENARIO, which is not named"))


# ---------------------------------------------------------------------- size

LIMITS = (("README.md", 90), ("docs/parts/", 150), ("docs/", 250),
          ("CHANGELOG.md", 150), ("SECURITY.md", 90))     # lines
README_WORDS = 900
BYTES = 180_000                 # of README and docs


def too_large(documents):
    """Yield a sentence for each document that has too much text."""
    for document, text in sorted(documents.items()):
        limit = next(limit for start, limit in LIMITS if document.startswith(start))
        if text.count("\n") > limit:
            yield f"{document}: {text.count(chr(10))} lines, more than {limit}"
    words = len(documents.get("README.md", "").split())
    if words > README_WORDS:
        yield f"README.md: {words} words, more than {README_WORDS}"
    size = sum(len(text.encode()) for document, text in documents.items()
               if document.startswith(("README", "docs/")))
    if size > BYTES:
        yield f"README.md and docs: {size} bytes, more than {BYTES}"
