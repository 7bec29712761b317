#!/usr/bin/env python3
"""Scripts name targets that exist in what they configure: a preset may leave the tests' targets out."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest


def commands(text):
    """Lines of a script with continued ones joined."""
    return re.sub(r"\\\n\s*", " ", text).splitlines()


class ScriptTargetsTest(unittest.TestCase):
    def test_targets_exist_in_the_build_that_the_script_configures(self):
        asked = {}  # options of CMake -> targets, with the scripts that name them
        for path in sorted((SOURCE / "scripts").glob("*.sh")):
            options = None
            for line in commands(path.read_text()):
                if re.match(r"proof_\w+\(\)", line):
                    options = None
                found = re.search(r"cmake --preset release\b([^#>]*)", line)
                if found:
                    options = tuple(re.findall(r"-D\S+", found[1]))
                found = re.search(r"cmake --build .*--target ([^$>|]*)", line)
                if found and options is not None:
                    for target in found[1].split(" -- ")[0].split():
                        asked.setdefault(options, {}).setdefault(target, path.name)
        self.assertIn("hone-builder-whole", {t for targets in asked.values() for t in targets})
        for options, targets in asked.items():
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["cmake", "--preset", "release", "-B", folder, *options], cwd=SOURCE, check=True,
                               stdout=subprocess.DEVNULL)
                known = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True,
                                       capture_output=True, text=True).stdout
                known = {line.split(":")[0] for line in known.splitlines()}
            for target, script in targets.items():
                self.assertTrue(target in known, f"{script} builds {target}, which is not there with "
                                f"{' '.join(options) or 'no options'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path)
    given = parser.parse_args()
    SOURCE = given.source
    ran = unittest.TextTestRunner(verbosity=2).run(
        unittest.defaultTestLoader.loadTestsFromTestCase(ScriptTargetsTest))
    if given.results:
        inside = "" if ran.wasSuccessful() else '<failure message="see above"/>'
        given.results.write_text('<testsuites><testsuite name="script_targets"><testcase name="targets" '
                                 f'status="run">{inside}</testcase></testsuite></testsuites>\n')
    sys.exit(not ran.wasSuccessful())
