"""README.md's block of Python, and docs/PYTHON.md: its blocks, in order, as one program. Those of the section about torch.compile
are a program of their own, which torch_cases.py runs."""
import contextlib
import io
import pathlib
import re
import unittest

import guide_page

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGE, README = SOURCE / "docs/PYTHON.md", SOURCE / "README.md"


def shortened(page):
    return re.sub(r"\bseconds=\d+", "seconds=2", page.read_text(encoding="utf-8"))


def run(block, page, names):
    code = compile("\n" * block.line + "\n".join(block.lines), str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)  # pylint: disable=exec-used


def run_blocks(torch):
    """How many blocks of the page ran."""
    text = shortened(PAGE)
    ran, names = 0, {"__name__": "guide"}
    heads = [number for number, line in guide_page.prose(text) if line.startswith("## ")]
    lines = text.split("\n")
    for block in guide_page.blocks(text, PAGE.name):
        head = lines[max((n for n in heads if n < block.line), default=1) - 1]
        if block.language != "python" or block.skip or ("torch" in head) != torch:
            continue
        run(block, PAGE, names)
        ran += 1
    return ran


class GuideTest(unittest.TestCase):
    def test_the_blocks_of_the_page_run(self):
        self.assertGreater(run_blocks(torch=False), 5)

    def test_the_second_block_of_the_readme_is_python_and_runs(self):
        block, names = guide_page.blocks(shortened(README), README.name)[1], {"__name__": "guide"}
        self.assertEqual((block.language, block.skip), ("python", ""))
        run(block, README, names)
        self.assertEqual(names["y"].shape, (1, 10))
