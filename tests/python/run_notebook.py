"""Executes a notebook in a kernel of this Python, in this folder: run_notebook.py NOTEBOOK

Each `seconds=N` is shortened to 2. Prints a line for each cell of code: the types of its outputs, how many were displayed (not printed,
not the cell's value), and how the text of each of these begins as it stands at the end.
"""
import re
import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
for cell in notebook.cells:
    cell.source = re.sub(r"\bseconds=\d+", "seconds=2", cell.source)
nbclient.NotebookClient(notebook, timeout=120).execute()
for cell in notebook.cells:
    if cell.cell_type == "code":
        shown = [output.data.get("text/plain", "") for output in cell.outputs
                 if output.output_type == "display_data"]
        print(*sorted({kind for output in cell.outputs
                       for kind in output.get("data", [output.output_type])}),
              f"displayed={len(shown)}", *(text[:2] for text in shown))
