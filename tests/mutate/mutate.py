#!/usr/bin/env python3
"""Breaks lines of the lowering in turn; each broken tree must fail a test:

    mutate.py --source DIR --work DIR [--jobs N] [--only WORD]...

Works in its own copy of the tree, WORK, built in WORK/build/ci like scripts/test.sh does (both are
kept, so that a second run only builds what changed). Prints a table and ends with 1 when a mutant survives, 2 when it
cannot tell (the list is stale, a mutant does not compile, the unbroken tree fails).
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

LISTS = [pathlib.Path(__file__).resolve().with_name(name)
         for name in ("lowering.mutants", "gpu.mutants")]
FOLDERS = "base;ir;schedule;codegen"
PROGRAMS = ("ir_test", "ptx_test", "schedule_test", "codegen_test")  # the quickest first
LEAST_TIMEOUT_S = 60


@dataclasses.dataclass
class Mutant:
    path: str
    what: str
    old: str = None
    new: str = None


def read_mutants(text):
    """The list's mutants in order; ValueError for a line that belongs to none."""
    mutants = []
    for number, line in enumerate(text.split("\n"), 1):
        head = re.fullmatch(r"mutant (\S+): (.+)", line)
        if head:
            mutants.append(Mutant(*head.groups()))
        elif line.startswith("- ") and mutants and mutants[-1].old is None:
            mutants[-1].old = line[2:]
        elif line.startswith("+ ") and mutants and mutants[-1].new is None:
            mutants[-1].new = line[2:]
        elif line and not line.startswith("#"):
            raise ValueError(f"line {number} belongs to no mutant: {line}")
    for m in mutants:
        if m.old is None or m.new is None or m.old == m.new:
            raise ValueError(f"{m.path}: {m.what}: needs an old line and a different new one")
    return mutants


def broken(mutant, text):
    """The file's text with the mutant; ValueError unless its line stands there exactly once."""
    lines = text.split("\n")
    places = [k for k, line in enumerate(lines) if line == mutant.old]
    if len(places) != 1:
        raise ValueError(f"{mutant.path} has {len(places)} lines '{mutant.old.strip()}'; "
                         f"'{mutant.what}' needs exactly one: mend the list")
    lines[places[0]] = mutant.new
    return "\n".join(lines)


def copy_tree(source, target):
    """Makes `target` equal to the tracked and new files of `source`; what is equal stays untouched."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "-c", "-o", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\0")
    names = {n for n in listed if n and (source / n).is_file()}
    for folder, subfolders, files in os.walk(target):
        folder = pathlib.Path(folder)
        if folder == target and "build" in subfolders:
            subfolders.remove("build")
        for file in files:
            if (folder / file).relative_to(target).as_posix() not in names:
                (folder / file).unlink()
    for name in sorted(names):
        to, data = target / name, (source / name).read_bytes()
        if to.is_file() and to.read_bytes() == data:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, to)


class Builder:
    def __init__(self, source, jobs):
        self.source, self.build, self.jobs = source, source / "build" / "ci", jobs
        # What scripts/test.sh has compiled comes from ccache.
        self.environment = dict(os.environ, CCACHE_BASEDIR=str(source))

    def configure(self):
        subprocess.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DHONE_WERROR=ON",
                        f"-DHONE_FOLDERS={FOLDERS}"],
                       check=True, stdout=subprocess.DEVNULL, env=self.environment)

    def make(self, program):
        """None, or what the compiler said."""
        done = subprocess.run(["cmake", "--build", self.build, "-j", str(self.jobs),
                               "--target", program], capture_output=True, text=True,
                              env=self.environment)
        return None if done.returncode == 0 else done.stdout[-3000:]

    def run(self, program, timeout_s):
        """None when every test passed, else the first that did not."""
        command = [self.build / "tests" / program, "--gtest_fail_fast", "--gtest_brief=1"]
        try:
            done = subprocess.run(command, cwd=self.build / "tests", timeout=timeout_s,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                                  text=True)
        except subprocess.TimeoutExpired:
            return f"{program}: no end after {timeout_s:.0f} s"
        if done.returncode == 0:
            return None
        failed = re.search(r"\[  FAILED  \] ([\w/.]+)", done.stdout)
        if failed:
            return failed.group(1)
        return f"{program}: died with {done.returncode}"


def judge(mutant, builder, timeouts_s):
    """(the test that fails or None, seconds); the file is restored."""
    file = builder.source / mutant.path
    text = file.read_text(encoding="utf-8")
    start = time.monotonic()
    file.write_text(broken(mutant, text), encoding="utf-8")
    try:
        for program in PROGRAMS:
            error = builder.make(program)
            if error:
                raise ValueError(f"{mutant.path}: {mutant.what}: does not compile:\n{error}")
            killer = builder.run(program, timeouts_s[program])
            if killer:
                return killer, time.monotonic() - start
    finally:
        file.write_text(text, encoding="utf-8")
    return None, time.monotonic() - start


def unbroken(builder):
    """How long each test program may take."""
    timeouts_s = {}
    for program in PROGRAMS:
        error = builder.make(program)
        if error:
            raise ValueError(f"the tree does not build:\n{error}")
        start = time.monotonic()
        failed = builder.run(program, 900)
        if failed:
            raise ValueError(f"the tree fails {failed} before any line is broken")
        timeouts_s[program] = max(LEAST_TIMEOUT_S, 4 * (time.monotonic() - start))
    return timeouts_s


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", action="append", default=[],
                        help="only mutants whose file or description contains this")
    args = parser.parse_args()
    try:
        mutants = [m for list_ in LISTS for m in read_mutants(list_.read_text(encoding="utf-8"))]
        for m in mutants:
            broken(m, (args.source / m.path).read_text(encoding="utf-8"))
        if args.only:
            mutants = [m for m in mutants if any(w in m.path + m.what for w in args.only)]
        work = args.work.resolve()
        builder = Builder(work, args.jobs)
        builder.source.mkdir(parents=True, exist_ok=True)
        copy_tree(args.source.resolve(), builder.source)
        builder.configure()
        timeouts_s = unbroken(builder)
        print(f"{'line broken in':38} {'seconds':>7}  {'killed by':44} what is wrong then", flush=True)
        survivors = 0
        for m in mutants:
            killer, seconds = judge(m, builder, timeouts_s)
            survivors += killer is None
            print(f"{m.path:38} {seconds:7.0f}  {killer or 'NOTHING: IT SURVIVES':44} {m.what}",
                  flush=True)
    except ValueError as error:
        print(f"mutate.py: {error}", file=sys.stderr)
        return 2
    print(f"{len(mutants) - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
