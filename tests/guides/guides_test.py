#!/usr/bin/env python3
"""Holds README.md and docs/ to what they claim: every console block is run as it stands (see
guide_page.py for its form), every relative link and anchor resolves, every path named exists, and
every option named of hone, honed and hone-worker is in its --help, the pages that
scripts/reference.py makes are up to date, and README.md is short.

    guides_test.py --source DIR --bin FOLDER [--page PAGE] [--results FILE.xml]

Each page has an empty folder of its own, which is also the home of its user, and the programs of
FOLDER in its PATH. What runs on in the background is ended with the page.
"""
import argparse
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time

import guide_page
from guide_page import PageError

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/tidy"), str(SOURCE / "scripts")]
import reference  # pylint: disable=wrong-import-position
from check_tree import write_results  # pylint: disable=wrong-import-position

PROGRAMS = ("hone", "honed", "hone-worker")
PATH = re.compile(r"^(?:base|bench|client|codegen|compiler|costmodel|db|docs|examples|graph|include|ir"
                  r"|measure|packaging|proto|python|runtime|schedule|scripts|search|server|tests|worker)/([\w./-]*(/|\.\w+))?$")
# Pages for developers of Hone, which name options of test programs and of times past.
FOR_DEVELOPERS = re.compile(r"^(CONTRIBUTING\.md|bench/.*|docs/PROGRESS\.md|docs/LIMITS\.md|docs/decisions/.*)$")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
STEP_SECONDS = 60
README_WORDS = 900
HOME = "/home/you"  # stands in pages for the folder that a session begins in


def pages(source, folders=True):
    """Pages whose sessions are run; with `folders` all whose links are followed."""
    found = [source / "README.md", *sorted((source / "docs").glob("*.md"))]
    if folders:
        found += [source / "CONTRIBUTING.md", *sorted((source / "docs").glob("*/*.md")),
                  *sorted((source / "bench").glob("**/*.md"))]
    return [path for path in found if path.exists()]


class Session:
    """The shell of one page: a folder, and what `cd` and `export` leave between commands."""

    def __init__(self, folder, programs):
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.state = folder / "state"
        self.state.write_text(f"cd {shlex.quote(str(self.home))}\n", encoding="utf-8")
        self.environment = {
            "PATH": f"{programs}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"), "LC_ALL": "C"}
        self.groups, self.ports = [], {}

    def with_free_ports(self, text):
        """The text with a free port of this machine in place of each port of loopback."""
        def free(match):
            if match[1] not in self.ports:
                with socket.create_server(("127.0.0.1", 0)) as server:
                    self.ports[match[1]] = str(server.getsockname()[1])
            return "127.0.0.1:" + self.ports[match[1]]
        return re.sub(r"127\.0\.0\.1:(\d+)", free, text)

    def run(self, command):
        """What the command prints, as lines, and its exit status."""
        command = self.with_free_ports(command)
        script = (f". {shlex.quote(str(self.state))}\n{command}\nhone_status=$?\n"
                  f"{{ export -p; echo \"cd $(printf %q \"$PWD\")\"; }} > {shlex.quote(str(self.state))}\n"
                  "exit $hone_status\n")
        output = self.folder / f"output-{len(self.groups)}"  # what runs on writes its own
        with open(output, "w", encoding="utf-8") as out:
            process = subprocess.Popen(["bash", "-c", script], cwd=self.home, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            self.groups.append(process.pid)
            try:
                status = process.wait(timeout=STEP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = f"no end within {STEP_SECONDS} s"
        printed = output.read_text(encoding="utf-8", errors="replace")
        return printed.replace(str(self.home), HOME).split("\n"), status

    def close(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = [group for group in self.groups if self.signal(group, number)]
            for _ in range(100):
                if not any(self.signal(group, 0) for group in left):
                    return
                time.sleep(0.05)

    @staticmethod
    def signal(group, number):
        try:
            os.killpg(group, number)
            return True
        except ProcessLookupError:
            return False


def check_syntax(command, where):
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    return [f"{where}: {done.stderr.strip()}"] if done.returncode else []


def follow(path, name, programs, counts):
    """Runs the sessions of a page; the failures. Ends with the first, which the others may need."""
    blocks = guide_page.blocks(path.read_text(encoding="utf-8"), name)
    with tempfile.TemporaryDirectory(prefix="hone-guide-") as folder:
        session = Session(pathlib.Path(folder), programs)
        try:
            for block in blocks:
                if block.file:
                    (session.home / block.file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
                if block.language in ("sh", "bash"):
                    wrong = check_syntax("\n".join(block.lines), f"{name}:{block.line}")
                    counts["syntax"] += 1
                elif block.language == "console":
                    wrong = follow_block(block, name, session, counts)
                else:
                    wrong = []
                if wrong:
                    return wrong
        finally:
            session.close()
    return []


def follow_block(block, name, session, counts):
    steps = block.steps(name)
    for step in steps:
        wrong = check_syntax(step.command, f"{name}:{step.line}")
        if wrong:
            return wrong
    if block.skip:
        counts[f"skip={block.skip}"] = counts.get(f"skip={block.skip}", 0) + 1
        return []
    counts["run"] += 1
    for step in steps:
        command = guide_page.shorten(step.command)
        began = time.monotonic()
        printed, status = session.run(command)
        print(f"{name}:{step.line}: {time.monotonic() - began:.1f} s: {command}", flush=True)
        why = guide_page.difference(step.expected, printed)
        if status != step.exit_status:
            why = f"ended with {status}, the page says {step.exit_status}"
        if why:
            return [f"{name}:{step.line}: `{command}`: {why}\n" + "\n".join(printed)]
    return []


def check_links(source):
    texts, anchors = {}, {}
    for path in pages(source):
        texts[path.resolve()] = path.read_text(encoding="utf-8")
    for path, text in texts.items():
        name = path.relative_to(source)
        for number, target in guide_page.links(text):
            file, _, anchor = target.partition("#")
            goal = (path.parent / file).resolve() if file else path
            if not goal.exists():
                yield f"{name}:{number}: the link {target} leads nowhere"
            elif anchor and goal.suffix == ".md":
                if goal not in anchors:
                    anchors[goal] = guide_page.anchors(goal.read_text(encoding="utf-8"))
                if anchor not in anchors[goal]:
                    yield f"{name}:{number}: {target}: no heading has that anchor"
        for number, code in guide_page.code_lines(text, name):
            if PATH.match(code) and not (source / code).exists():
                yield f"{name}:{number}: there is no {code}"


def check_words(source):
    """The first page is short."""
    words = len((source / "README.md").read_text(encoding="utf-8").split())
    if words > README_WORDS:
        yield f"README.md:1: {words} words; {README_WORDS} at most"


class Options:
    """What --help of each program and command says."""

    def __init__(self, programs):
        self.programs = programs
        self.known = {program: self.ask(program) for program in PROGRAMS}
        # The commands are the rows of the first list of `hone --help`.
        self.commands = re.findall(r"^  ([a-z]+)\s", self.text("hone"), re.M)
        for command in self.commands:
            self.known[f"hone {command}"] = self.ask("hone", command)
        self.all = set().union(*self.known.values())

    def text(self, *words):
        done = subprocess.run([self.programs / words[0], *words[1:], "--help"], capture_output=True,
                              text=True, check=False, timeout=30)
        return done.stdout + done.stderr

    def ask(self, *words):
        return set(OPTION.findall(self.text(*words))) | {"--help", "--version"}

    def unknown(self, code):
        """What `code`, one line of it, names wrongly."""
        for part in re.split(r"\|\||&&|[|;]|\$\(", code):
            words = part.split()
            while words and (re.match(r"^(sudo|exec|time|timeout|\d+|env|\w+=.*)$", words[0])):
                words.pop(0)
            if not words:
                continue
            program = pathlib.PurePath(words[0]).name
            if program in PROGRAMS and "error:" not in part:
                yield from self.unknown_words(program, words[1:])
            elif words[0].startswith("--"):
                for option in OPTION.findall(words[0]):
                    if option not in self.all:
                        yield f"no program of Hone has {option}"

    def unknown_words(self, program, words):
        known, name = self.known[program], program
        if program == "hone" and words and re.fullmatch(r"[a-z]+", words[0]):
            name = f"hone {words[0]}"
            if words[0] not in self.commands and words[0] != "help":
                yield f"there is no command `{name}`"
                return
            known = self.known.get(name, known)
        for word in words:
            for option in OPTION.findall(word) if word.startswith("--") else []:
                if option not in known:
                    yield f"`{name}` has no option {option}"


def check_options(source, programs):
    options = Options(programs)
    for path in pages(source):
        name = path.relative_to(source)
        if FOR_DEVELOPERS.match(str(name)):
            continue
        for number, code in guide_page.code_lines(path.read_text(encoding="utf-8"), name):
            for what in options.unknown(code):
                yield f"{name}:{number}: {what}"


def check(source, programs, only=None):
    """{case: [failures]} and what was run and skipped."""
    counts, found = {"run": 0, "syntax": 0}, {}
    for path in pages(source, folders=False):
        name = str(path.relative_to(source))
        if only in (None, name):
            found[name] = lines_of(lambda path=path, name=name: follow(path, name, programs, counts))
    if only is None:
        found["Links"] = lines_of(lambda: check_links(source))
        found["Words"] = lines_of(lambda: check_words(source))
        found["Options"] = lines_of(lambda: check_options(source, programs))
        found["Reference"] = lines_of(lambda: reference.stale(source, programs))
    return found, counts


def lines_of(rule):
    try:
        return list(rule())
    except PageError as error:
        return [str(error)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--page", help="run the sessions of this page alone (docs/TUNING.md)")
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    found, counts = check(args.source.resolve(), args.bin.resolve(), args.page)
    for name, lines in found.items():
        for line in lines:
            print(f"{line} [{name}]")
    print("blocks: " + ", ".join(f"{number} {what}" for what, number in sorted(counts.items())))
    if args.results:
        write_results(args.results, "Guides", found)
    bad = sum(bool(lines) for lines in found.values())
    print(f"{len(found) - bad} hold, {bad} do not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
