#!/usr/bin/env python3
"""The programs that CTest entries run, relative to the build folder, for `cmake --build --target`:
reads `ctest --show-only=json-v1` on standard input. Nothing where an entry is a script, which may
run anything.

    test_programs.py BUILD
"""
import json
import os
import sys

build = os.path.realpath(sys.argv[1]) + "/"
commands = {test["command"][0] for test in json.load(sys.stdin)["tests"]}
if all(command.startswith(build) for command in commands):
    print(*sorted(command.removeprefix(build) for command in commands))
