"""docs/PYTHON.md: its Python blocks, in order, as one program. Those of the section about torch.compile
are a program of their own, which torch_cases.py runs."""
import contextlib
import io
import pathlib
import re
import unittest

import guide_page

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/PYTHON.md"


def run_blocks(torch):
    """How many blocks of the page ran."""
    text = re.sub(r"\bseconds=\d+", "seconds=2", PAGE.read_text(encoding="utf-8"))
    ran, names = 0, {"__name__": "guide"}
    heads = [number for number, line in guide_page.prose(text) if line.startswith("## ")]
    lines = text.split("\n")
    for block in guide_page.blocks(text, PAGE.name):
        head = lines[max((n for n in heads if n < block.line), default=1) - 1]
        if block.language != "python" or block.skip or ("torch" in head) != torch:
            continue
        code = compile("\n" * block.line + "\n".join(block.lines), str(PAGE), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)  # pylint: disable=exec-used
        ran += 1
    return ran


class GuideTest(unittest.TestCase):
    def test_the_blocks_of_the_page_run(self):
        self.assertGreater(run_blocks(torch=False), 5)
