#!/usr/bin/env python3
"""Tests of guides_test.py and guide_page.py: a page with a broken command, output, link, anchor,
path or option must fail, so must a stale page of reference, and a good tree must not.

    guide_page_test.py [--results FILE.xml]

The programs that the pages run are small scripts with the names of Hone's.
"""
import pathlib
import sys
import tempfile

import guide_page
import guides_test
import reference  # guides_test knows where this and the next one are
from check_tree import run_tests

HONE = """#!/bin/sh
case "$*" in
--help) printf 'Commands:\\n  tune   Search\\n  bench  Time\\n  inspect  Look\\n\\nOptions:\\n  -h, --help  Print\\n' ;;
"tune --help") printf 'Options:\\n  --seconds S  How long\\n  --db LOG  The log\\n' ;;
"inspect --help") printf 'Options:\\n  --bind IN  A constant\\n' ;;
"bench --help") printf 'Options:\\n  --profile  Each kernel\\n' ;;
"tune model.onnx --seconds"*) echo "tuned for $4 s: 1.85 x in $(basename "$PWD")"; echo x > tune.db ;;
bench*) test -f tune.db || { echo "no log" >&2; exit 3; }; printf 'us   kernel\\n12.5 conv\\n' ;;
*) exit 2 ;;
esac
"""
DAEMON = "#!/bin/sh\necho '  --connect ADDRESS  Where honed is'\n"

GOOD = """# A page

## Tune, then bench

See [the other](docs/OTHER.md#a-part) and [here](#tune-then-bench), `docs/OTHER.md` and `--profile`.

```console
$ mkdir -p place && cd place
$ hone bench
no log
[exit 3]
$ hone tune model.onnx --seconds 60
tuned for 60 s: 1.23 x in place
$ hone bench \\
>   --profile
...
99.5  conv
$ cat ../notes.txt
remember
$ pwd
/home/you/place
```
"""
NOTES = "```text file=notes.txt\nremember\n```\n\n"
SKIPPED = "```console skip=systemd\n$ systemctl enable --now honed\n```\n"
POOL = '{{"MaxPool", 8, 1, 1, 2, MaxPool},\n {"Unique", 11, 1, 1, 4, DataDependent}}'
OTHER = "# Other\n\n### A *part*\n\nRun `hone-worker --connect tuner`.\n"


def failures(readme=None, other=OTHER, stale=None):
    """What the test says of a small tree with these pages: {case: [lines]} without empty ones."""
    with tempfile.TemporaryDirectory() as folder:
        source, programs = pathlib.Path(folder, "source"), pathlib.Path(folder, "bin")
        (source / "docs").mkdir(parents=True)
        programs.mkdir()
        for name, text in (("hone", HONE), ("honed", DAEMON), ("hone-worker", DAEMON)):
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        (source / "README.md").write_text(NOTES + (readme or GOOD), encoding="utf-8")
        (source / "docs/OTHER.md").write_text(other, encoding="utf-8")
        (source / "docs/TROUBLESHOOTING.md").write_text("## What programs end with\n", encoding="utf-8")
        (source / "graph/onnx_import").mkdir(parents=True)
        (source / "graph/onnx_import/import.h").write_text("kNewestOpset = 28;", encoding="utf-8")
        (source / "graph/onnx_import/pool.cc").write_text(POOL, encoding="utf-8")
        (source / "docs/reference").mkdir()
        for path, text in reference.pages(source, programs).items():
            path.write_text(text, encoding="utf-8")
        if stale:
            path = source / "docs/reference" / stale[0]
            path.write_text(path.read_text(encoding="utf-8").replace(*stale[1:]), encoding="utf-8")
        found, counts = guides_test.check(source, programs)
    return {name: lines for name, lines in found.items() if lines}, counts


def assert_fails(case, expected, old, new):
    assert old in GOOD, old
    found, _ = failures(GOOD.replace(old, new))
    assert any(expected in line for line in found.get(case, [])), (case, expected, found)


def test_a_page_that_is_true_passes():
    found, counts = failures(GOOD + SKIPPED)
    assert not found, found
    assert counts["run"] == 1 and counts["skip=systemd"] == 1, counts


def test_a_broken_command_fails():
    assert_fails("README.md", "ended with 2, the page says 0", "hone tune model", "hone tuna model")
    assert_fails("README.md", "ended with 0, the page says 3", "$ cat ../notes.txt\nremember",
                 "$ cat ../notes.txt\nremember\n[exit 3]")
    assert_fails("README.md", "unexpected EOF", "$ cat ../notes.txt", "$ cat '../notes.txt")
    found, _ = failures(GOOD + SKIPPED.replace("honed", "$(honed"))
    assert "README.md" in found, "syntax of a skipped block"


def test_another_output_fails():
    assert_fails("README.md", "expected `tuned for # h", "tuned for 60 s", "tuned for 60 h")
    assert_fails("README.md", "expected `missing`, got `the end`", "\nremember", "\nremember\nmissing")
    assert_fails("README.md", "expected `# conv`, got `us kernel`", "--profile\n...\n", "--profile\n")
    assert_fails("README.md", "does not have: `remember`", "notes.txt\nremember", "notes.txt")


def test_numbers_and_identifiers_may_differ():
    same = guide_page.difference
    assert same(["1.5 us  [1.2, -3e-05] 1x112 bba4ffe75cc1"], ["22 us [0, 7] 3x4 0123456789abcdef"]) is None
    assert same(["model: 15.5 -> ..."], ["model: 3 -> 4 ms"]) is None
    assert same(["a", "...", "b", "...", "c"], ["a", "b", "x", "b", "c"]) is None
    assert same(["deadbeef"], ["decade"]) is not None
    assert same(["..."], []) is None


def test_unknown_words_on_a_fence_fail():
    for words in ("skip=weather", "quick", "file=../x"):
        found, _ = failures(GOOD.replace("```console", "```console " + words))
        assert any("README.md:" in line for line in found["README.md"]), (words, found)
    found, _ = failures(GOOD + "```console\nhone bench\n```\n")
    assert "begins with `$ COMMAND`" in found["README.md"][0], found
    found, _ = failures(GOOD + "```console\n$ hone bench\n")
    assert "never closed" in found["README.md"][0], found


def test_broken_links_anchors_and_paths_fail():
    assert_fails("Links", "leads nowhere", "docs/OTHER.md#a-part", "docs/ANOTHER.md")
    assert_fails("Links", "no heading has that anchor", "#a-part", "#b-part")
    assert_fails("Links", "no heading has that anchor", "(#tune", "(#tuned")
    assert_fails("Links", "there is no docs/NONE.md", "`docs/OTHER.md`", "`docs/NONE.md`")


def test_a_long_first_page_fails():
    found, _ = failures(GOOD + "word " * 900)
    assert found["Words"] == ["README.md:1: 965 words; 900 at most"], found


def test_unknown_options_and_commands_fail():
    assert_fails("Options", "no program of Hone has --profiles", "`--profile`", "`--profiles`")
    assert_fails("Options", "`hone tune` has no option --profile", "`--profile`", "`hone tune --profile`")
    assert_fails("Options", "there is no command `hone tuna`", "`--profile`", "`hone tuna x`")
    found, _ = failures(other=OTHER.replace("--connect", "--conect"))
    assert any("`hone-worker` has no option --conect" in line for line in found["Options"]), found
    found, _ = failures(GOOD + SKIPPED.replace("systemctl enable", "sudo hone bench").replace("--now", "--quick"))
    assert any("`hone bench` has no option --quick" in line for line in found["Options"]), found


def test_a_stale_page_of_reference_fails():
    for stale, expected in ((("commands.md", "How long", "How much"), "--seconds S  How long"),
                            (("operators.md", "8 to 28", "7 to 28"), "| MaxPool | 8 to 28 | pooling |")):
        found, _ = failures(stale=stale)
        assert expected in "".join(found["Reference"]), (stale, found)


def test_long_runs_are_shortened():
    assert guide_page.shorten("hone tune m --seconds 60 -o f") == "hone tune m --seconds 4 -o f"
    assert guide_page.shorten("hone tune m --seconds=2m") == "hone tune m --seconds=4"
    assert guide_page.shorten("hone bench m --seconds 2") == "hone bench m --seconds 2"


def test_ports_of_loopback_are_free_ones():
    with tempfile.TemporaryDirectory() as folder:
        session = guides_test.Session(pathlib.Path(folder), pathlib.Path("/bin"))
        first, second, other = session.with_free_ports("127.0.0.1:1 127.0.0.1:1 127.0.0.1:2").split()
    assert first == second != other and "127.0.0.1:1 " not in f"{first} ", (first, second, other)


def test_what_runs_in_the_background_ends_with_its_page():
    page = GOOD.replace("$ cat ../notes.txt", "$ sleep 300 &\n$ cat ../notes.txt")
    session = guides_test.Session
    ended = []
    close = session.close
    session.close = lambda self: (close(self), ended.extend(self.signal(g, 0) for g in self.groups))
    try:
        found, _ = failures(page)
    finally:
        session.close = close
    assert not found and ended and not any(ended), (found, ended)


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "GuidesTools"))
