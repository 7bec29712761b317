#!/usr/bin/env python3
"""PyTorch's own samples of its operators (OpInfo: forward; f32, i64, bool) by the backend hone beside
eager PyTorch, against the table torch_operators.txt, both ways: what it names passes, and nothing else.

    HONE_BIN=BUILD/bin torch_operators.py [--write] [--only REGEX] [--types f32,i64,bool] [--groups N]
        [--samples N]

An operator passes with a type if all of its first samples (--samples, 0: all of them) are compiled, none
falls back, and results equal eager's: integers and bools exactly, f32 within 1e-4. A line of the table whose
operator is gone, or has no samples, is wrong too, where all operators ran. --write writes the table, with --only or
--types the lines and types of it that ran. --groups ends after N packages, for a look.
"""
import argparse
import itertools
import operator
import pathlib
import re
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
# pylint: disable=wrong-import-position
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import hone.pytorch
from hone.pytorch.export import export
from hone.pytorch.graph import Graph
from hone.pytorch.observe import observe
from hone.pytorch.options import Options
from hone.pytorch.refusal import Refusal
from hone.pytorch.variant import Variant

TABLE = pathlib.Path(__file__).with_name("torch_operators.txt")
TYPES = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}
SAMPLES = 3
GROUP = 16  # cases in one package
SEED = 20


def name_of(info):
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


class Case:
    """The first samples of one operator with one type."""

    def __init__(self, info, kind, count=SAMPLES):
        self.kind, self.name = kind, name_of(info)
        self.calls = []  # (function of tensors, tensors)
        torch.manual_seed(SEED)
        samples = info.sample_inputs("cpu", TYPES[kind], requires_grad=False)
        for sample in itertools.islice(samples, count or None):
            leaves, shape = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
            places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

            def call(*tensors, op=info.op, leaves=leaves, shape=shape, places=places):
                given = list(leaves)
                for place, tensor in zip(places, tensors):
                    given[place] = tensor
                first, args, kwargs = pytree.tree_unflatten(given, shape)
                # A view is nothing to compute: a copy of it is.
                return [leaf.clone() for leaf in pytree.tree_leaves(op(first, *args, **kwargs))
                        if isinstance(leaf, torch.Tensor)]
            call.__name__ = info.name.replace(".", "_")
            self.calls.append((call, [leaves[place] for place in places]))

    def __str__(self):
        return f"{self.name} {self.kind}"


def graph_of(cases):
    """(module, arguments, want, owner of each result) of all calls side by side. What eager PyTorch
    refuses is no sample."""
    graph, arguments, want, results, owners = torch.fx.Graph(), [], [], [], []
    calls = [(case, call, tensors) for case in cases for call, tensors in case.calls]
    places = [[graph.placeholder(f"x{i}_{j}") for j in range(len(tensors))]
              for i, (_, _, tensors) in enumerate(calls)]
    for (case, call, tensors), nodes in zip(calls, places):
        values = call(*[tensor.clone() for tensor in tensors])
        node = graph.call_function(call, tuple(nodes))
        arguments += tensors
        for i, value in enumerate(values):
            results.append(graph.call_function(operator.getitem, (node, i)))
            want.append(value)
            owners.append(case)
    graph.output(tuple(results))
    return torch.fx.GraphModule(torch.nn.Module(), graph), arguments, want, owners


def exports(case):
    """Why the case cannot be exported, or ""."""
    try:
        module, arguments, want, _ = graph_of([case])
        if not want:
            return "no samples with results"
        seen = observe(module, arguments)
        with tempfile.TemporaryDirectory(prefix="hone-") as folder:
            export(module, arguments, range(len(arguments)), seen, f"{folder}/x.onnx", dense=True)
    except Refusal as refusal:
        return str(refusal)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def compiled(cases):
    """{case: why it fails, or ""}; a group that is refused is halved until it is one case."""
    module, arguments, want, owners = graph_of(cases)
    graph = Graph(module, Options.of({"log": False}))
    try:
        got = graph(*arguments)
        [variant] = graph.rows()
        why = "" if isinstance(variant, Variant) else str(variant.why)
    except Exception as error:  # pylint: disable=broad-except
        why = f"{type(error).__name__}: {str(error)[:300]}"
    if why and len(cases) > 1:
        middle = len(cases) // 2
        return {**compiled(cases[:middle]), **compiled(cases[middle:])}
    told = {case: why for case in cases}
    if not why:
        for case, one, other in zip(owners, got, want):
            try:
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)
            except AssertionError as error:
                told[case] = f"WRONG: {str(error).strip().splitlines()[0]}"
    return told


def all_cases(wanted, kinds, count=SAMPLES):
    """Those whose names and types the function `wanted` takes, with so many samples."""
    for kind in kinds:
        for info in op_db:
            if TYPES[kind] not in info.supported_dtypes("cpu") or not wanted(name_of(info), kind):
                continue
            try:
                case = Case(info, kind, count)
            except Exception as error:  # pylint: disable=broad-except
                print(f"no samples: {info.name} {kind}: {error}", file=sys.stderr)
                continue
            yield case


def read_table():
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    return {name: set(kinds) for name, *kinds in (line.split() for line in lines if line and line[0] != "#")}


def write_table(passes):
    head = ("# Operators of PyTorch whose samples (OpInfo) the backend hone compiles and answers as eager\n"
            "# does, by type. Made by torch_operators.py --write.\n")
    lines = [f"{name} {' '.join(kind for kind in TYPES if kind in kinds)}\n"
             for name, kinds in sorted(passes.items()) if kinds]
    TABLE.write_text(head + "".join(lines), encoding="utf-8")


def run(cases, groups=0, tell=print):
    """{case: why it fails, or ""}."""
    told, group, made, began = {}, [], 0, time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            if why := exports(case):
                told[case] = why
                tell(f"no  {case}: {why}")
            else:
                group.append(case)
            if len(group) == GROUP:
                told.update(finish(group, tell))
                made, group = made + 1, []
                tell(f"--  {len(told)} cases, {time.monotonic() - began:.0f} s")
                if made == groups:
                    return told
        if group:
            told.update(finish(group, tell))
    return told


def finish(group, tell):
    told = compiled(group)
    for case, why in told.items():
        tell(f"{'no ' if why else 'yes'} {case}{': ' if why else ''}{why}")
    return told


def wrong_of(told, known, whole):
    """What the table says otherwise, in words; whole: all operators ran."""
    for case, why in told.items():
        if (case.kind in known.get(case.name, set())) == bool(why):
            yield f"{case}: {why or 'it passes'}"
    if whole:
        ran = {(case.name, case.kind) for case in told}
        for name, kinds in known.items():
            yield from (f"{name} {kind}: it has no samples" for kind in sorted(kinds) if (name, kind) not in ran)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    args = parser.parse_args()
    known = read_table()
    told = run(all_cases(lambda *case: re.search(args.only, " ".join(case)), args.types.split(","), args.samples),
               args.groups, lambda line: print(line, flush=True))
    whole = not args.only and not args.groups and args.types == ",".join(TYPES)
    wrong = list(wrong_of(told, known, whole))
    for each in wrong:
        print(f"the table is wrong of {each}")
    if args.write:
        table = {} if whole else known
        for case, why in told.items():
            kinds = table.setdefault(case.name, set())
            (kinds.discard if why else kinds.add)(case.kind)
        write_table(table)
        wrong = []
    print(f"{sum(not why for why in told.values())} of {len(told)} pass; {len(wrong)} not as in the table")
    return 1 if wrong or not told else 0


if __name__ == "__main__":
    sys.exit(main())
