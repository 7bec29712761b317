#!/usr/bin/env python3
"""Tests of check_tree.py and scripts/count_tests.py: each rule must catch its own violation, and a
suite that crashed, was skipped or ran nothing must not count as a success.

    check_tree_test.py [--results FILE.xml]
"""
import pathlib
import subprocess
import sys
import tempfile

import check_tree

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# A small tree that keeps every rule.
CLEAN = {
    "base/CMakeLists.txt": "hone_library(base SOURCES file.cc core/clock.cc)\n",
    "base/file.cc": '#include "base/file.h"\n\n#include "absl/status/status.h"\n',
    "base/file.h": '#pragma once\n\n#include "base/core/clock.h"\n',
    "base/core/clock.cc": '#include "base/core/clock.h"\n\nint64_t Now() { return clock_gettime(); }\n',
    "base/core/clock.h": "#pragma once\n\n#include <cstdint>\n",
    "ir/CMakeLists.txt": "hone_library(ir SOURCES expr.cc DEPS hone::base)\n",
    "ir/expr.cc": '#include "ir/expr.h"\n\n#include "base/file.h"\n',
    "ir/expr.h": "#pragma once\n",
    "runtime/CMakeLists.txt": "hone_library(runtime SOURCES arena.cc DEPS hone::base_core)\n",
    "runtime/arena.cc": '#include "base/core/clock.h"\n#include "ir/expr.h"\n',
    "tests/ir/CMakeLists.txt": "hone_test(ir SOURCES expr_test.cc DEPS hone::ir)\n",
    "tests/ir/expr_test.cc": "TEST(Expr, Adds) {}\n",
    "tests/tidy/allow.txt": "# none\n",
}

# rule -> [(path, text appended or new, expected in the message)]
BREAKS = {
    "Banned": [("ir/expr.cc", 'int n = sscanf(text, "%d", &x);\n', "scanf")],
    "Empty": [("ir/ird", "", "ir/ird:1: an empty file")],
    "Calls": [("ir/expr.h", "int Forgotten(int x);\n", "ir/expr.h:2: Forgotten is declared and never called")],
    "Floors": [
        ("ir/expr.cc", '#include "graph/graph.h"\n', "ir/expr.cc:4: ir (floor 1) includes"),
        ("graph/a.h", '#pragma once\n#include "schedule/trace.h"\n', "floor 2"),
        ("include/hone/hone.h", '#include "base/file.h"\n', "a public header"),
    ],
    "Links": [("ir/CMakeLists.txt", "target_link_libraries(hone_ir PRIVATE hone::db)\n", "links db")],
    "RuntimeBase": [
        ("runtime/arena.cc", '#include "base/file.h"\n', "base/file.h"),
        ("ir/expr.h", '#include "absl/status/status.h"\n', "ir/expr.h:2: 'absl/status/status.h' is reached"),
        ("base/core/clock.h", '#include "base/file.h"\n', "which stands on base/core/"),
    ],
    "Owners": [
        ("ir/expr.cc", "#include <sqlite3.h>\n", "belongs to db/sqlite_"),
        ("ir/expr.cc", '#include "llvm/IR/Module.h"\n', "codegen/llvm_"),
        ("ir/expr.cc", '#include "absl/time/clock.h"\n', "nobody"),
        ("ir/expr.cc", '#include "boost/any.hpp"\n', "neither ours nor a known"),
    ],
    "Kinds": [
        ("graph/a.cc", '#include "ir/cpu/cpu_target.h"\n', "'ir/cpu/cpu_target.h' is for folders cpu/"),
        ("schedule/cuda/rule.cc", '#include "schedule/cpu/cpu_rule.h"\n', "is for folders cpu/"),
        ("graph/a.cc", 'if (target.kind == "cuda") return;\n', "a case for one kind"),
        ("graph/a.cc", 'if (text.starts_with("cpu:")) return;\n', "a case for one kind"),
    ],
    "HiddenInputs": [
        ("ir/expr.cc", "auto t = std::chrono::steady_clock::now();\n", "a clock"),
        ("ir/expr.cc", "int x = rand();\n", "random numbers"),
        ("tests/ir/expr_test.cc", "std::mt19937 random;\n", "random numbers"),
        ("ir/expr.cc", "std::this_thread::sleep_for(ms);\n", "a sleep"),
        ("ir/expr.cc", "changed_.wait_for(lock, ms);\n", "a wait for time to pass"),
        ("ir/expr.cc", 'auto home = getenv("HOME");\n', "environment variable"),
        ("runtime/context.cc", "int threads = UsableCores();\n", "a control group's files"),
    ],
    "Sizes": [
        ("ir/expr.h", "\n" * 250, "251 lines, the limit is 250"),
        ("ir/expr.cc", "\n" * 500, "the limit is 500"),
        ("weights.bin", "x" * ((1 << 20) + 1), "can a script make it"),
    ],
    "Functions": [("ir/expr.cc", "int F() {\n" + "  x();\n" * 69 + "}\n", "function of 71 lines")],
    "Lists": [
        ("ir/stray.cc", "\n", "no CMakeLists.txt names it"),
        ("tests/ir/stray_test.cc", "TEST(A, B) {}\n", "no CMakeLists.txt names it"),
    ],
    "Names": [("ir/utils.h", "#pragma once\n", "a drawer"), ("ir/Expr.h", "#pragma once\n", "snake_case")],
    "Words": [
        ("ir/expr.cc", "// TO" + "DO: later\n", "a promise"),
        ("tests/ir/expr_test.cc", "TEST(Expr, DISABLED" + "_Adds) {}\n", "switched-off"),
        ("tests/ir/expr_test.cc", "  GTEST" + "_SKIP();\n", "a skip without"),
        ("README.md", "see /fa" + "rm/x\n", "a path of one machine"),
        ("README.md", "Two. O" + "f these, one.\n", "a sentence that begins with"),
        ("ir/expr.h", "/// O" + "f\n/// one\n", "a sentence that begins with"),
    ],
    "Form": [
        ("ir/expr.cc", "x" * 101 + "\n", "101 columns"),
        ("ir/expr.cc", "int x; \n", "blanks"),
        ("ir/bare.h", "int x;\n", "no #pragma once"),
    ],
}


def violations(changes):
    files = dict(CLEAN)
    for path, text in changes:
        files[path] = files.get(path, "") + text
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = pathlib.Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        return check_tree.violations(check_tree.Tree(folder))


def test_clean_tree_has_no_violation():
    assert not any(violations([]).values()), violations([])


def test_every_rule_catches_its_violation():
    assert set(BREAKS) == set(check_tree.CHECKS)
    for rule, breaks in BREAKS.items():
        for path, text, expected in breaks:
            found = violations([(path, text)])[rule]
            assert any(expected in line for line in found), (rule, path, expected, found)


def test_an_exception_needs_its_rule_path_and_reason():
    change = ("ir/expr.cc", "int x = rand();\n")
    allow = ("tests/tidy/allow.txt", "HiddenInputs ir/expr.cc because of a test\n")
    assert violations([change])["HiddenInputs"]
    assert not violations([change, allow])["HiddenInputs"]
    assert violations([change, ("tests/tidy/allow.txt", "Sizes ir/expr.cc why\n")])["HiddenInputs"]
    try:
        violations([("tests/tidy/allow.txt", "Sizes ir/expr.cc\n")])
    except SystemExit as error:
        assert "no reason given" in str(error)
    else:
        raise AssertionError("an exception without a reason was taken")


def count(entries, files, ctest_status=0):
    """Runs count_tests.py on a made-up build folder: (exit status, last line, all output)."""
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder, "test-results")
        results.mkdir()
        for name, text in files.items():
            (results / f"{name}.xml").write_text(text)
        cases = "".join(f'<testcase name="{name}" status="{status}"/>' for name, status in entries)
        pathlib.Path(folder, "test-results.junit.xml").write_text(f"<testsuite>{cases}</testsuite>")
        done = subprocess.run([sys.executable, str(SOURCE / "scripts/count_tests.py"), folder, str(ctest_status)],
                              capture_output=True, text=True)
        return done.returncode, done.stdout.strip().split("\n")[-1], done.stdout


GOOD = '<testsuites><testsuite name="A"><testcase name="x" status="run"/><testcase name="y" status="run"/>' \
       '<testcase name="z" status="run"><skipped message="a.cc:1&#10;no GPU"/></testcase></testsuite></testsuites>'
BAD = '<testsuites><testsuite name="A"><testcase name="x" status="run"><failure message="m"/></testcase>' \
      '<testcase name="y" status="run"/></testsuite></testsuites>'


def test_counter_adds_cases_and_names_skips():
    status, last, text = count([("a", "run"), ("b", "run")], {"a": GOOD, "b": GOOD})
    assert (status, last) == (0, "4 passed, 0 failed"), text
    assert "skipped 2: no GPU" in text, text


def test_counter_counts_failed_cases():
    status, last, text = count([("a", "run"), ("b", "fail")], {"a": GOOD, "b": BAD}, 8)
    assert (status, last) == (1, "3 passed, 1 failed"), text
    assert "failed: b: A.x" in text, text


def test_counter_takes_a_crash_for_a_failure():
    assert count([("a", "fail")], {}, 8)[:2] == (1, "0 passed, 1 failed")
    assert count([("a", "fail")], {"a": GOOD}, 8)[:2] == (1, "2 passed, 1 failed")
    assert count([("a", "fail")], {"a": GOOD[:40]}, 8)[:2] == (1, "0 passed, 1 failed")


def test_counter_refuses_a_run_without_tests():
    status, last, text = count([], {})
    assert status == 1 and last == "0 passed, 0 failed" and "no test ran" in text, text


if __name__ == "__main__":
    sys.exit(check_tree.run_tests(globals(), "TidyTools"))
