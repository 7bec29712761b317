"""Weights that a package holds as constants, and whether they are still what they were."""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

_SAMPLES = 4  # words of each weight that every call looks at


class Frozen:
    """The weights at their positions among a graph's arguments, as they were at the export.

    Each call sees other tensors, other memory (load_state_dict(assign=True), `p.data = t`) and every
    change that PyTorch counts (`p.add_()`, optimizers, load_state_dict). Writes that PyTorch does
    not count, through `p.data` or NumPy, are seen by four words of each weight: enough for what
    changes whole weights, not for a single element.
    """

    def __init__(self, weights: Mapping[int, torch.Tensor]):
        self._kept = [(i, weakref.ref(tensor, self._forget), tensor._version, tensor.data_ptr())
                      for i, tensor in weights.items()]
        # Views: they keep the addresses ours, whoever else lets go of them.
        self.memory = {i: tensor.detach() for i, tensor in weights.items()}
        self._words = [word for tensor in self.memory.values() for word in _words(tensor)]
        self._values = [word.value for word in self._words]
        self.dead = False

    def _forget(self, _: Any) -> None:
        """A weight is gone, and with it who calls with it."""
        self.dead = True
        self.memory, self._words, self._values = {}, [], []

    def known(self, arguments: Sequence[Any]) -> bool:
        """Whether these are the tensors, changed or not."""
        return not self.dead and all(arguments[i] is tensor() for i, tensor, *_ in self._kept)

    def same(self, arguments: Sequence[Any]) -> bool:
        """Whether these are the tensors, unchanged."""
        for i, tensor, version, place in self._kept:
            argument = arguments[i]
            if (argument is not tensor() or argument._version != version or
                    argument.data_ptr() != place):
                return False
        return not self.dead and [word.value for word in self._words] == self._values


def stamp_of(weights: Iterable[torch.Tensor]) -> tuple[Any, ...]:
    """Equal for weights that Frozen takes for the same."""
    return tuple((id(tensor), tensor._version, tensor.data_ptr(),
                  *(word.value for word in _words(tensor))) for tensor in weights)


def may_freeze(tensor: Any) -> bool:
    """Whether changes of it can be seen."""
    return (isinstance(tensor, torch.Tensor) and not tensor.is_inference() and
            tensor.device.type == "cpu" and tensor.layout == torch.strided)


def _words(tensor: torch.Tensor) -> list[Any]:
    """Some words of a dense tensor's memory, read where they are."""
    count = tensor.numel() * tensor.element_size()
    if not tensor.is_contiguous() or count == 0:
        return []
    start = tensor.data_ptr()
    if count < 8:
        return [ctypes.c_uint8.from_address(start + i) for i in range(count)]
    last = count - 8
    offsets = sorted({last * i // (_SAMPLES - 1) for i in range(_SAMPLES)})
    return [ctypes.c_uint64.from_address(start + offset) for offset in offsets]
