#!/usr/bin/env python3
"""The programs that CTest entries run, relative to the build folder, for `cmake --build --target`:
reads `ctest --show-only=json-v1` on standard input. Nothing where an entry is not of a program that
hone_test() made, since it may run anything.

    test_programs.py BUILD

CTest itself names no program that is not built yet; <BUILD>/test-programs.txt does, which CMake writes.
"""
import json
import pathlib
import sys

lines = pathlib.Path(sys.argv[1], "test-programs.txt").read_text(encoding="utf-8").splitlines()
program_of = dict(line.split(" ", 1) for line in lines)
entries = [test["name"] for test in json.load(sys.stdin)["tests"]]
if all(entry in program_of for entry in entries):
    print(*sorted({program_of[entry] for entry in entries}))
