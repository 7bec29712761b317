#!/usr/bin/env python3
"""Sorts what the thread sanitizer reported:

    tsan_reports.py FOLDER

libgrpc is not instrumented, so the sanitizer does not see what orders a call's callbacks, and calls
each hand-over between gRPC's threads a race. A report is set aside where an access is gRPC's or
protobuf's own: the innermost frame that is not of the C++ library's; and where one access is the
making of a reactor in its handler, the other in one of its callbacks, which come after the handler
has returned it, and what is raced for is the reactor itself. All others are printed; ends with 1
when there are any. A race of our own code inside two callbacks is therefore reported, one of gRPC's
on our messages is not.
"""
import pathlib
import re
import sys

ACCESS = re.compile(r"^  (?:Previous )?(?:[Aa]tomic )?(?:[Rr]ead|[Ww]rite) of size|^  (?:Previous )?[Aa]tomic")
FRAME = re.compile(r"^    #\d+ (.*)$")
LIBRARY = re.compile(r"/include/c\+\+/|libsanitizer|libstdc\+\+|libtsan")
NOT_OURS = re.compile(r"libgrpc|libgpr|/grpcpp/|/google/protobuf/|generated/proto/|libprotobuf")


# A reactor of that class is made by the handler of its call; one of its callbacks.
MADE = re.compile(r"\bmake_shared<(?:\w+::)*(\w+)[,>]")
HANDLER = re.compile(r"::RunHandler\(")
CALLBACK = re.compile(r"::(\w+)::On(?:Done|Cancel|ReadDone|WriteDone)\(")


def innermost(frames):
    """The first frame that is not the C++ library's or the sanitizer's; "" without one."""
    return next((f for f in frames if not LIBRARY.search(f)), "")


def accesses(report):
    """The frames of both accesses."""
    found, inside = [], False
    for line in report.splitlines():
        if ACCESS.match(line):
            found.append([])
            inside = True
        elif inside and (frame := FRAME.match(line)):
            found[-1].append(frame[1])
        else:
            inside = False
    return found


def classes(pattern, frames):
    return {found[1] for frame in frames for found in pattern.finditer(frame)}


def makes_what_is_called(made, called, place):
    return (any(HANDLER.search(frame) for frame in made)
            and bool(classes(MADE, made) & classes(CALLBACK, called) & classes(MADE, place)))


def place_of(report):
    """Where the memory that is raced for was allocated; none for what is not on the heap."""
    _, found, rest = report.partition("  Location is heap block")
    return rest.split("\n\n")[0].splitlines() if found else []


def is_grpcs(report):
    both = accesses(report)
    if any(not frames or NOT_OURS.search(innermost(frames)) for frames in both):
        return True
    place = place_of(report)
    return len(both) == 2 and (makes_what_is_called(*both, place)
                               or makes_what_is_called(*reversed(both), place))


def main():
    ours, aside = [], 0
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        for report in path.read_text(encoding="utf-8", errors="replace").split("=" * 18 + "\n"):
            if "WARNING: ThreadSanitizer" not in report:
                continue
            if accesses(report) and is_grpcs(report):
                aside += 1
            else:
                ours.append(report)
    for report in ours:
        print(report)
    print(f"{len(ours)} reports, {aside} of gRPC's own hand-overs set aside")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
