#!/usr/bin/env python3
"""The list of mutants fits the tree, and mutate.py tells a killed mutant from a survivor:

    mutate_test.py [--results FILE.xml]
"""
import pathlib
import sys
import tempfile

import mutate

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "tidy"))
import check_tree  # noqa: E402  (beside this folder)

LEAST_MUTANTS = 20


class FakeBuilder:
    """A tree of one file; `passes` says whether the tests pass on its text."""

    def __init__(self, folder, text, passes, compiles=lambda text: True):
        self.source, self.passes, self.compiles = pathlib.Path(folder), passes, compiles
        self.file = self.source / "a.cc"
        self.file.write_text(text)
        self.ran = []

    def make(self, program):
        return None if self.compiles(self.file.read_text()) else "no"

    def run(self, program, timeout_s):
        self.ran.append(program)
        return None if self.passes(self.file.read_text(), program) else f"{program}.Case"


TIMEOUTS_S = {program: 1 for program in mutate.PROGRAMS}
MUTANT = mutate.Mutant("a.cc", "one too many", "x = n;", "x = n + 1;")
TEXT = "int x;\nx = n;\nx = n;  // again\n"


def refused(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError("was not refused")


def test_every_mutant_fits_the_tree():
    mutants = [m for list_ in mutate.LISTS
               for m in mutate.read_mutants(list_.read_text(encoding="utf-8"))]
    assert len(mutants) >= LEAST_MUTANTS, len(mutants)
    assert len({(m.path, m.old) for m in mutants}) == len(mutants), "a line is broken twice"
    for m in mutants:
        mutate.broken(m, (SOURCE / m.path).read_text(encoding="utf-8"))


def test_a_mutant_replaces_its_line_only():
    assert mutate.broken(MUTANT, TEXT) == "int x;\nx = n + 1;\nx = n;  // again\n"


def test_a_line_that_is_not_there_once_is_refused():
    assert "has 0 lines" in refused(lambda: mutate.broken(MUTANT, "x = m;\n"))
    assert "has 2 lines" in refused(lambda: mutate.broken(MUTANT, "x = n;\nx = n;\n"))


def test_the_list_is_read_line_by_line():
    text = "# note\n\nmutant a/b.cc: too short\n-   old();\n+   new();\n"
    assert mutate.read_mutants(text) == [
        mutate.Mutant("a/b.cc", "too short", "  old();", "  new();")]
    assert "line 1" in refused(lambda: mutate.read_mutants("- old\n"))
    assert "needs" in refused(lambda: mutate.read_mutants("mutant a.cc: x\n- old\n"))
    assert "needs" in refused(lambda: mutate.read_mutants("mutant a.cc: x\n- old\n+ old\n"))


def test_a_killed_mutant_names_its_test():
    with tempfile.TemporaryDirectory() as folder:
        builder = FakeBuilder(folder, TEXT, lambda text, program: "n + 1" not in text)
        killer, _ = mutate.judge(MUTANT, builder, TIMEOUTS_S)
        assert killer == mutate.PROGRAMS[0] + ".Case", killer
        assert builder.ran == [mutate.PROGRAMS[0]] and builder.file.read_text() == TEXT


def test_the_second_program_may_kill():
    with tempfile.TemporaryDirectory() as folder:
        builder = FakeBuilder(folder, TEXT, lambda text, program: program == mutate.PROGRAMS[0])
        assert mutate.judge(MUTANT, builder, TIMEOUTS_S)[0] == mutate.PROGRAMS[1] + ".Case"


def test_a_survivor_is_told():
    with tempfile.TemporaryDirectory() as folder:
        builder = FakeBuilder(folder, TEXT, lambda text, program: True)
        assert mutate.judge(MUTANT, builder, TIMEOUTS_S)[0] is None
        assert builder.ran == list(mutate.PROGRAMS) and builder.file.read_text() == TEXT


def test_what_does_not_compile_kills_nothing():
    with tempfile.TemporaryDirectory() as folder:
        builder = FakeBuilder(folder, TEXT, lambda text, program: True,
                              lambda text: "n + 1" not in text)
        said = refused(lambda: mutate.judge(MUTANT, builder, TIMEOUTS_S))
        assert "does not compile" in said and builder.file.read_text() == TEXT


if __name__ == "__main__":
    sys.exit(check_tree.run_tests(globals(), "Mutate"))
