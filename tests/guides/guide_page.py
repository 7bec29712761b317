"""A page of documentation: its blocks, links and options, and what a console session must print.

A fenced block marked `console` is a session that can be typed as it stands:

    $ hone zoo mlp            a command; a `\\` at its end continues it in the next line
    wrote mlp.onnx            what it prints; numbers and identifiers may differ, words may not
    ...                       any number of lines; at the end of a line: any rest of it
    [exit 3]                  the exit status, where it is not 0

`skip=WHY` on the fence line keeps a block from being run; its commands are still checked for
syntax. A block of any language with `file=NAME` is written to that file for the commands below it.
"""
import dataclasses
import re

# Why a block cannot be run in a test: what it needs.
SKIP_REASONS = ("build", "cluster", "gpu", "install", "network", "root", "systemd", "time")
MAX_SECONDS = 4  # a longer `--seconds` is shortened to this

FENCE = re.compile(r"^(```+)\s*(.*)$")
SECONDS = re.compile(r"(--seconds[ =])(\d+(?:\.\d+)?)([smh]?)\b")
IDENTIFIER = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\d+(?:\.\d+)?")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"`([^`\n]+)`")


class PageError(ValueError):
    """A page that cannot be understood; the message begins with PAGE:LINE."""


@dataclasses.dataclass
class Step:
    command: str
    line: int
    expected: list = dataclasses.field(default_factory=list)
    exit_status: int = 0


@dataclasses.dataclass
class Block:
    language: str
    line: int
    lines: list
    skip: str = ""
    file: str = ""

    def steps(self, page):
        """The commands of a console block with what they print."""
        steps, continued = [], False
        for number, line in enumerate(self.lines, self.line + 1):
            exit_line = re.fullmatch(r"\[exit (\d+)\]", line)
            if continued:
                steps[-1].command += "\n" + re.sub(r"^> ", "", line)
            elif line.startswith("$ "):
                steps.append(Step(line[2:], number))
            elif not steps:
                raise PageError(f"{page}:{number}: a console block begins with `$ COMMAND`")
            elif exit_line:
                steps[-1].exit_status = int(exit_line[1])
            else:
                steps[-1].expected.append(line)
            continued = bool(steps) and (continued or line.startswith("$ ")) and line.endswith("\\")
        for step in steps:
            while step.expected and not step.expected[-1].strip():
                step.expected.pop()
        return steps


def parse_fence(words, page, line):
    block = Block(words[0] if words else "", line, [])
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "skip" and value in SKIP_REASONS:
            block.skip = value
        elif key == "file" and re.fullmatch(r"[\w.-]+", value):
            block.file = value
        elif block.language == "console":
            raise PageError(f"{page}:{line}: '{word}' on a console block; known are "
                            f"skip={'|'.join(SKIP_REASONS)} and file=NAME")
    return block


def blocks(text, page):
    """All fenced blocks of a page, in order."""
    found, fence = [], None
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match[1]
            found.append(parse_fence(match[2].split(), page, number))
        elif fence is not None and line.rstrip() == fence:
            fence = None
        elif fence is not None:
            found[-1].lines.append(line)
    if fence is not None:
        raise PageError(f"{page}:{found[-1].line}: this block is never closed")
    return found


def prose(text):
    """The lines outside fenced blocks, as (number, line)."""
    inside = None
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if inside is None and match:
            inside = match[1]
        elif inside is not None:
            inside = None if line.rstrip() == inside else inside
        else:
            yield number, line


def shorten(command):
    """The command with `--seconds` of at most MAX_SECONDS."""
    def limited(match):
        seconds = float(match[2]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[3]]
        return match[0] if seconds <= MAX_SECONDS else f"{match[1]}{MAX_SECONDS}"
    return SECONDS.sub(limited, command)


def plain(line):
    """A line without what differs between two runs: numbers, identifiers, widths of blanks."""
    line = IDENTIFIER.sub("#", line)
    return re.sub(r"\s+", " ", NUMBER.sub("#", line)).strip()


def difference(expected, printed):
    """Why the lines `printed` are not what the lines `expected` say, or None."""
    wanted = [line for line in map(plain, expected) if line]
    given = [line for line in map(plain, printed) if line]
    reached = {0}  # where in `given` the next wanted line may stand
    for line in wanted:
        if line == "...":
            reached = set(range(min(reached), len(given) + 1))
            continue
        fits = {at + 1 for at in reached if at < len(given) and fits_line(line, given[at])}
        if not fits:
            at = min(reached)
            return f"expected `{line}`, got `{given[at] if at < len(given) else 'the end'}`"
        reached = fits
    if len(given) in reached:
        return None
    return f"a line that the page does not have: `{given[max(reached)]}`"


def fits_line(wanted, given):
    return given.startswith(wanted[:-3].rstrip()) if wanted.endswith("...") else wanted == given


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them, and its own `<a id=...>`."""
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for _, line in prose(text):
        match = re.match(r"^#{1,6}\s+(.*?)\s*#*$", line)
        if match:
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            candidate, number = slug, 0
            while candidate in found:
                number += 1
                candidate = f"{slug}-{number}"
            found.add(candidate)
    return found


def links(text):
    """(line number, target) of every link that leads to this tree."""
    for number, line in prose(text):
        for match in LINK.finditer(CODE_SPAN.sub("", line)):
            target = match[1] or match[2]
            if not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield number, target


def code_lines(text, page):
    """(line number, code) of all that is written as code: spans, and lines of blocks and sessions."""
    for number, line in prose(text):
        if line.startswith("    ") and not re.match(r"\s+([-*]|\d+\.) ", line):
            yield number, re.sub(r"^\s+(\$ )?", "", line)
            continue
        for match in CODE_SPAN.finditer(line):
            yield number, match[1]
    for block in blocks(text, page):
        if block.language == "console":
            for step in block.steps(page):
                yield step.line, step.command.replace("\\\n", " ")
        elif block.language in ("sh", "bash"):
            yield from enumerate(block.lines, block.line + 1)
