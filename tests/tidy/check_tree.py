#!/usr/bin/env python3
"""Checks the source tree against the rules of docs/ARCHITECTURE.md:

    check_tree.py --source DIR [--build DIR] [--results FILE.xml]

Every rule is one case; a violation is printed as FILE:LINE: what is wrong. Exceptions with their
reasons stand in tests/tidy/allow.txt.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import quoteattr

import house_rules as rules

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
SKIPPED_FOLDERS = re.compile(r"^(build.*|out|venv|__pycache__|\..*)$")
CODE = (".h", ".cc")


class Tree:
    """The text files of a source tree: path (relative, with slashes) -> lines."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.paths, self.lines = [], {}
        for folder, subfolders, names in os.walk(self.root):
            subfolders[:] = sorted(f for f in subfolders if not SKIPPED_FOLDERS.match(f))
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                relative = path.relative_to(self.root).as_posix()
                self.paths.append(relative)
                if path.suffix in (".h", ".cc", ".py", ".sh", ".txt", ".md", ".cmake", ".proto"):
                    self.lines[relative] = path.read_text(encoding="utf-8").split("\n")
        self.allowed = self._read_allowed()

    def code(self, *suffixes):
        return [p for p in self.lines if p.endswith(suffixes or CODE)]

    def includes(self, path):
        """(line number, quoted?, name) of every include."""
        for number, line in enumerate(self.lines[path], 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1) == '"', match.group(2)

    def resolve(self, name):
        """The path in the tree that an include means, or None."""
        for candidate in (name, "include/" + name):
            if candidate in self.lines:
                return candidate
        return None

    def _read_allowed(self):
        """allow.txt: `RULE PATH REASON...` -> {(rule, path)}; a line without a reason is refused."""
        allowed = set()
        for line in self.lines.get("tests/tidy/allow.txt", []):
            fields = line.split(None, 2)
            if not fields or fields[0].startswith("#"):
                continue
            if len(fields) < 3:
                raise SystemExit(f"tests/tidy/allow.txt: no reason given: {line}")
            allowed.add((fields[0], fields[1]))
        return allowed


def top_folder(path):
    return path.split("/", 1)[0]


def without_comments(line):
    return re.sub(r"//.*$", "", line)


def check_floors(tree):
    for path in tree.code():
        mine = rules.FLOORS.get(top_folder(path))
        for number, quoted, name in tree.includes(path):
            theirs = rules.FLOORS.get(top_folder(name))
            if path.startswith("include/hone/") and quoted and not name.startswith("hone/"):
                yield f"{path}:{number}: a public header includes '{name}'"
            if mine is None or theirs is None or top_folder(name) == top_folder(path):
                continue
            if theirs >= mine:
                yield (f"{path}:{number}: {top_folder(path)} (floor {mine}) includes '{name}' "
                       f"(floor {theirs}); only lower floors may be seen")


def check_links(tree):
    for path in tree.lines:
        folder = top_folder(path)
        if not path.endswith("CMakeLists.txt") or folder not in rules.FLOORS:
            continue
        for number, line in enumerate(tree.lines[path], 1):
            for other in re.findall(r"\bhone(?:::|_)(\w+)", line.split("#")[0]):
                other = next((f for f in rules.FLOORS if other == f or other.startswith(f + "_")), None)
                if other and other != folder and rules.FLOORS[other] >= rules.FLOORS[folder]:
                    yield f"{path}:{number}: {folder} links {other}, which is no lower floor"


def check_runtime_base(tree):
    """What runtime and base/core reach through includes is their own floor and the standard library."""
    for start, inside in (("runtime/", rules.RUNTIME_BASE), ("base/core/", "base/core/")):
        todo = [p for p in tree.code() if p.startswith(start)]
        seen = set(todo)
        while todo:
            path = todo.pop()
            for number, quoted, name in tree.includes(path):
                target = tree.resolve(name)
                third_party = any(re.match(pattern, name) for pattern, _ in rules.OWNERS)
                if third_party or (quoted and (target is None or not re.match(inside, target))):
                    yield f"{path}:{number}: '{name}' is reached from {start}, which stands on {inside}"
                elif target and target not in seen:
                    seen.add(target)
                    todo.append(target)


def check_owners(tree):
    for path in tree.code():
        if top_folder(path) not in rules.FLOORS and not path.startswith("include/"):
            continue
        for number, quoted, name in tree.includes(path):
            if tree.resolve(name):
                continue
            owner = next((o for pattern, o in rules.OWNERS if re.match(pattern, name)), None)
            if owner is None and quoted:
                yield f"{path}:{number}: '{name}' is neither ours nor a known dependency"
            elif owner and not re.match(owner, path):
                yield f"{path}:{number}: '{name}' belongs to {owner} alone"


def check_kinds(tree):
    for path in tree.code():
        if top_folder(path) not in rules.FLOORS or re.match(rules.KIND_REGISTRIES, path):
            continue
        for number, _, name in tree.includes(path):
            kind = re.match(rf"\w+/{rules.KINDS}/", name)
            if kind and f"/{kind[1]}/" not in path:
                yield f"{path}:{number}: '{name}' is for folders {kind[1]}/ and their registries alone"
        if re.match(rf"\w+/{rules.KINDS}/", path):
            continue
        for number, line in enumerate(tree.lines[path], 1):
            if re.search(rules.KIND_CASE, without_comments(line)):
                yield f"{path}:{number}: a case for one kind; ask its interface: {line.strip()}"


def check_hidden_inputs(tree):
    for path in tree.code():
        for number, line in enumerate(tree.lines[path], 1):
            code = without_comments(line)
            if not re.match(rules.MAY_KEEP_TIME, path):
                for pattern, what in rules.HIDDEN_INPUTS:
                    if re.search(pattern, code):
                        yield f"{path}:{number}: {what} outside base: {line.strip()}"
            if re.search(rules.ENVIRONMENT, code) and not re.match(rules.MAY_READ_ENVIRONMENT, path):
                yield f"{path}:{number}: environment variable below main: {line.strip()}"
            if re.search(rules.CONTROL_GROUP, code) and re.match(rules.MAY_NOT_READ_CONTROL_GROUP, path):
                yield f"{path}:{number}: a control group's files below the C API: {line.strip()}"


def check_sizes(tree):
    for path, lines in tree.lines.items():
        limit = rules.MAX_LINES.get(pathlib.PurePath(path).suffix)
        count = len(lines) - (lines[-1] == "")
        if limit and count > limit:
            yield f"{path}:1: {count} lines, the limit is {limit}"
    for path in tree.paths:
        size = (tree.root / path).stat().st_size
        if size > rules.MAX_FILE_BYTES:
            yield f"{path}:1: {size} bytes; can a script make it?"


def check_functions(tree):
    """Formatted code: a function outside a class opens on a line at column 0 and closes with '}'."""
    opening = re.compile(r"^(?!namespace|struct|class|enum|union|extern|using|#|//|\}|TEST|INSTANTIATE)\S.*$")
    for path in tree.code(".cc"):
        start = None
        for number, line in enumerate(tree.lines[path], 1):
            if line.rstrip() == "}" and start:
                if number - start + 1 > rules.MAX_FUNCTION_LINES:
                    yield f"{path}:{start}: function of {number - start + 1} lines, the limit is {rules.MAX_FUNCTION_LINES}"
                start = None
            elif opening.match(line) and "(" in line and not path.startswith("tests/"):
                start = number


def check_lists(tree):
    """Every source file is named in the CMakeLists.txt of its folder or of one above."""
    for path in tree.code(".cc"):
        folder = pathlib.PurePosixPath(path).parent
        named = False
        for above in [folder, *folder.parents]:
            cmake = (above / "CMakeLists.txt").as_posix()
            relative = pathlib.PurePosixPath(path).relative_to(above).as_posix()
            if re.search(r"(^|[\s\"/])" + re.escape(relative) + r"($|[\s\")])",
                         "\n".join(tree.lines.get(cmake, []))):
                named = True
                break
        if not named:
            yield f"{path}:1: no CMakeLists.txt names it, so it is never built"
    for path in tree.code(".cc"):
        if path.startswith("tests/") and re.search(r"^TEST(_F|_P)?\(", "\n".join(tree.lines[path]), re.M):
            if not path.endswith("_test.cc"):
                yield f"{path}:1: has tests; its name must end with _test.cc"


def check_names(tree):
    for path in tree.paths:
        stem = pathlib.PurePosixPath(path).stem
        parts = set(pathlib.PurePosixPath(path).parts[:-1]) | {stem}
        if parts & rules.DRAWERS:
            yield f"{path}:1: a drawer; name the noun"
        if path.endswith(CODE) and not re.match(r"^[a-z0-9_]+$", stem):
            yield f"{path}:1: file names are snake_case"


def check_words(tree):
    for path, lines in tree.lines.items():
        for number, line in enumerate(lines, 1):
            for pattern, what in rules.FORBIDDEN_WORDS:
                if re.search(pattern, line):
                    yield f"{path}:{number}: {what}: {line.strip()}"


def check_form(tree):
    for path in tree.code():
        lines = tree.lines[path]
        if path.endswith(".h") and "#pragma once" not in lines and path != "include/hone/hone.h":
            yield f"{path}:1: no #pragma once"
        for number, line in enumerate(lines, 1):
            if len(line) > rules.MAX_COLUMNS and "http" not in line and 'R"' not in line:
                yield f"{path}:{number}: {len(line)} columns, the limit is {rules.MAX_COLUMNS}"
            if "\t" in line or line != line.rstrip():
                yield f"{path}:{number}: a tab or blanks at the end"


def check_banned(tree):
    for path in tree.code():
        for number, line in enumerate(tree.lines[path], 1):
            for pattern, what in rules.BANNED_CALLS:
                if re.search(pattern, without_comments(line)):
                    yield f"{path}:{number}: {what}: {line.strip()}"


def check_empty(tree):
    for path in tree.paths:
        if (tree.root / path).stat().st_size == 0:
            yield f"{path}:1: an empty file"


def check_calls(tree):
    """A free function that a header of ours declares is called somewhere, be it in a test."""
    function = re.compile(r"^(?=\S)(?!using|typedef|friend|#|//|return|class|struct|enum|template|extern)[\w:<>,&*\[\] ]*?[\w>&*\]] [&*]?(\w+)\(")
    declared, used = {}, set()
    for path in tree.code():
        for number, line in enumerate(tree.lines[path], 1):
            code = without_comments(line)
            names = re.findall(r"\b[A-Z]\w*\b", code)
            own = function.match(code)
            if own and path.endswith(".h") and top_folder(path) in rules.FLOORS:
                declared.setdefault(own[1], f"{path}:{number}")
            if own:  # a declaration, or where the function is defined
                names.remove(own[1]) if own[1] in names else None
            used.update(names)
    for name, where in declared.items():
        if name[0].isupper() and name not in used:
            yield f"{where}: {name} is declared and never called"


def check_linking(tree, build):
    """Only hone-builder links LLVM; the runner and the runtime link nothing of third parties."""
    heavy = {"LLVM", "xgboost", "absl", "spdlog", "protobuf", "sqlite3", "zip", "fmt", "crypto"}
    forbidden = {"libexec/hone/hone-runner": heavy, "bin/hone": {"LLVM"}, "bin/honed": {"LLVM"},
                 "bin/hone-worker": {"LLVM"}}
    for program, libraries in forbidden.items():
        path = pathlib.Path(build, program)
        if not path.exists():
            continue
        shown = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True)
        for needed in re.findall(r"NEEDED.*\[lib([^\]]+)\]", shown.stdout):
            if any(needed.startswith(library) for library in libraries):
                yield f"{program}:1: links lib{needed}"


CHECKS = {
    "Floors": check_floors, "Links": check_links, "RuntimeBase": check_runtime_base,
    "Owners": check_owners, "Kinds": check_kinds, "HiddenInputs": check_hidden_inputs, "Sizes": check_sizes,
    "Functions": check_functions, "Lists": check_lists, "Names": check_names, "Words": check_words,
    "Form": check_form, "Banned": check_banned, "Empty": check_empty, "Calls": check_calls,
}


def violations(tree, build=None):
    """{rule: [lines]} after the exceptions of allow.txt."""
    found = {name: list(check(tree)) for name, check in CHECKS.items()}
    if build:
        found["Linking"] = list(check_linking(tree, build))
    return {name: [line for line in lines if (name, line.split(":", 1)[0]) not in tree.allowed]
            for name, lines in found.items()}


def write_results(path, suite, results):
    """GoogleTest's XML, as scripts/count_tests.py reads it. results: {case: [failure lines]}."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"<testsuites><testsuite name={quoteattr(suite)}>\n")
        for case, lines in results.items():
            out.write(f"<testcase name={quoteattr(case)} status=\"run\">")
            if lines:
                message = "\n".join(lines)
                out.write(f"<failure message={quoteattr(message)}/>")
            out.write("</testcase>\n")
        out.write("</testsuite></testsuites>\n")


def run_tests(tests, suite):
    """Runs the functions test_* of a module's globals, writes --results, prints the count; gives
    the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results")
    args = parser.parse_args()
    results = {}
    for name, test in sorted(tests.items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            results[name] = []
        except (AssertionError, ValueError) as error:
            results[name] = [str(error) or "assertion failed"]
        for line in results[name]:
            print(f"{name}: {line}")
    if args.results:
        write_results(args.results, suite, results)
    bad = sum(bool(lines) for lines in results.values())
    print(f"{len(results) - bad} passed, {bad} failed")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--build")
    parser.add_argument("--results")
    args = parser.parse_args()
    found = violations(Tree(args.source), args.build)
    for name, lines in found.items():
        for line in lines:
            print(f"{line} [{name}]")
    if args.results:
        write_results(args.results, "Tidy", found)
    bad = sum(bool(lines) for lines in found.values())
    print(f"{len(found) - bad} rules hold, {bad} do not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
