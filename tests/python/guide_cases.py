"""docs/PYTHON.md: its Python blocks, in order, as one program."""
import contextlib
import io
import pathlib
import re
import unittest

import guide_page

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/PYTHON.md"


class GuideTest(unittest.TestCase):
    def test_the_blocks_of_the_page_run(self):
        text = re.sub(r"\bseconds=\d+", "seconds=2", PAGE.read_text(encoding="utf-8"))
        ran, names = 0, {"__name__": "guide"}
        for block in guide_page.blocks(text, PAGE.name):
            if block.language != "python" or block.skip:
                continue
            code = compile("\n" * block.line + "\n".join(block.lines), str(PAGE), "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)  # pylint: disable=exec-used
            ran += 1
        self.assertGreater(ran, 5)
