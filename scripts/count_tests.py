#!/usr/bin/env python3
"""Adds up the cases of one CTest run: count_tests.py BUILD_DIR CTEST_EXIT_STATUS

Every CTest entry writes its cases to BUILD_DIR/test-results/ENTRY.xml (GoogleTest's XML). An entry
without that file counts as one case; an entry that failed although its cases passed (a crash at
exit, a leak report, a timeout) counts as one failure more. The last line is "N passed, N failed".
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def cases_of(path):
    """(passed, failed names, {skip reason: count}) of one GoogleTest XML file."""
    passed, failed, skipped = 0, [], collections.Counter()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.get("status") == "notrun":
                continue
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(f"{suite.get('name')}.{case.get('name')}")
            elif skip is not None:
                skipped[(skip.get("message") or skip.text or "no reason").strip().split("\n")[-1]] += 1
            else:
                passed += 1
    return passed, failed, skipped


def main():
    build, ctest_status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    passed, failed, skipped = 0, [], collections.Counter()
    junit = build / "test-results.junit.xml"
    entries = ElementTree.parse(junit).getroot().iter("testcase") if junit.exists() else []
    for entry in entries:
        name, ok = entry.get("name"), entry.get("status") == "run"
        path = build / "test-results" / f"{name}.xml"
        try:
            entry_passed, entry_failed, entry_skipped = cases_of(path)
        except (OSError, ElementTree.ParseError):
            entry_passed, entry_failed, entry_skipped = (1 if ok else 0), [], {}
        passed += entry_passed
        failed += [f"{name}: {case}" for case in entry_failed]
        skipped.update(entry_skipped)
        if not ok and not entry_failed:
            failed.append(f"{name}: ended with an error (crash, leak or timeout); see its output above")
    if ctest_status != 0 and not failed:
        failed.append(f"ctest: exit status {ctest_status}")
    for reason, count in sorted(skipped.items()):
        print(f"skipped {count}: {reason}")
    for line in failed:
        print(f"failed: {line}")
    if passed + len(failed) == 0:
        print("no test ran")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
