"""Operators that PyTorch's exporter says in ONNX otherwise than PyTorch computes them, said exactly:
what is too large for an integer, NaN, infinities, signed zeros, and quotients that a rounding decides.

It needs onnxscript: import it where that is known to be there. No `annotations` of __future__: the
exporter reads the types.
"""
import math
from collections.abc import Callable
from typing import Any, Optional

import torch
from onnxscript import ir
from onnxscript.function_libs.torch_lib.ops import common, core
from onnxscript.function_libs.torch_lib.tensor_typing import TFloat, TReal, TTensor
from onnxscript.onnx_opset import opset18 as op
from onnxscript.onnx_types import BOOL

_F32, _I32, _I64 = ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.INT64
_THROUGH = {ir.DataType.INT8: _I32, ir.DataType.INT16: _I32, ir.DataType.UINT8: _I64}


def _like(value: float, tensor: Any) -> Any:
    return op.Constant(value=ir.tensor(value, dtype=tensor.dtype))


def _cast(given: Any, dtype: int) -> Any:
    """To integers as x86 does it, and PyTorch with it: what does not fit, and NaN, is the least one."""
    wanted = ir.DataType(dtype) if dtype in list(ir.DataType) else None
    bits = {_I32: 31, _I64: 63}.get(_THROUGH.get(wanted, wanted))
    if bits is None or not given.dtype.is_floating_point():
        return common.cast_to(given, dtype)
    if given.dtype not in (_F32, ir.DataType.DOUBLE):
        given = op.Cast(given, to=_F32)
    through = _THROUGH.get(wanted, wanted)
    fits = op.And(op.GreaterOrEqual(given, _like(-2.0 ** bits, given)),
                  op.Less(given, _like(2.0 ** bits, given)))
    least = op.Constant(value=ir.tensor(-2 ** bits, dtype=through))
    whole = op.Where(fits, op.Cast(given, to=through), least)
    return whole if through == wanted else op.Cast(whole, to=dtype)


def _to_copy(self: TTensor, dtype: int = -1, layout: str = "", device: str = "",
             pin_memory: bool = False, non_blocking: bool = False, memory_format: str = "") -> TTensor:
    return op.Identity(self) if dtype == -1 else _cast(self, dtype)


def _convert_element_type(a: TTensor, dtype: int) -> TTensor:
    return _cast(a, dtype)


def _sign(self: TTensor) -> TTensor:
    if not self.dtype.is_floating_point():
        return core.aten_sign(self)
    zero = _like(0.0, self)
    return op.Sub(op.CastLike(op.Greater(self, zero), self), op.CastLike(op.Less(self, zero), self))


def _negative(x: Any) -> Any:
    """Whether a float has the sign, as -0.0 has."""
    zero, one = _like(0.0, x), _like(1.0, x)
    return op.Or(op.Less(x, zero), op.And(op.Equal(x, zero), op.Less(op.Div(one, x), zero)))


def _signbit(self: TTensor) -> BOOL:
    return _negative(self) if self.dtype.is_floating_point() else core.aten_signbit(self)


def _heaviside(self: TReal, values: TReal) -> TReal:
    zero = op.CastLike(0, self)
    return op.Where(op.Equal(self, zero), values, op.CastLike(op.Greater(self, zero), self))


def _log_sigmoid(self: TFloat) -> TFloat:
    return op.Neg(op.Softplus(op.Neg(self)))


def _logaddexp(self: TFloat, other: TFloat) -> TFloat:
    apart = op.Softplus(op.Neg(op.Abs(op.Sub(self, other))))
    equal = op.Equal(self, other)  # infinities too, which have no difference
    return op.Add(op.Max(self, other), op.Where(equal, _like(math.log(2), self), apart))


def _logaddexp2(self: TFloat, other: TFloat) -> TFloat:
    two = _like(math.log(2), self)
    apart = op.Div(op.Softplus(op.Neg(op.Mul(op.Abs(op.Sub(self, other)), two))), two)
    equal = op.Equal(self, other)
    return op.Add(op.Max(self, other), op.Where(equal, _like(1.0, self), apart))


def _atan2(self: TFloat, other: TFloat) -> TFloat:
    y, x = op.Abs(self), op.Abs(other)
    slope = op.Where(op.Equal(y, x), _like(1.0, y), op.Div(y, x))  # two infinities are equal
    slope = op.Where(op.And(op.Equal(y, _like(0.0, y)), op.Equal(x, x)), y, slope)
    angle = op.Atan(slope)
    angle = op.Where(_negative(other), op.Sub(_like(math.pi, y), angle), angle)
    return op.Where(_negative(self), op.Neg(angle), angle)


def _other_sign(rest: Any, divisor: Any) -> Any:
    """Whether a rest is not zero and has the other sign than its divisor."""
    zero = _like(0.0, rest)
    apart = op.Xor(op.Less(rest, zero), op.Less(divisor, zero))
    return op.And(op.Not(op.Equal(rest, zero)), apart)


def _rest(x: Any, divisor: Any) -> Any:
    """As Python's % of floats."""
    rest = op.Mod(x, divisor, fmod=1)
    return op.Where(_other_sign(rest, divisor), op.Add(rest, divisor), rest)


def _floored(x: Any, divisor: Any) -> Any:
    """As Python's // of floats, which is not the floor of a rounded quotient."""
    rest = op.Mod(x, divisor, fmod=1)
    quotient = op.Div(op.Sub(x, rest), divisor)
    one = _like(1.0, x)
    quotient = op.Where(_other_sign(rest, divisor), op.Sub(quotient, one), quotient)
    floor = op.Floor(quotient)
    above = op.Greater(op.Sub(quotient, floor), _like(0.5, x))
    floor = op.Where(above, op.Add(floor, one), floor)
    zero, rounded = _like(0.0, x), op.Div(x, divisor)
    floor = op.Where(op.Equal(quotient, zero), op.Mul(zero, rounded), floor)
    return op.Where(op.Equal(divisor, zero), rounded, floor)


def _remainder(self: TTensor, other: TTensor) -> TTensor:
    return op.Mod(self, other) if self.dtype.is_integer() else _rest(self, other)


def _remainder_scalar(self: TTensor, other: float) -> TTensor:
    return _remainder(self, op.Constant(value=ir.tensor(other, dtype=self.dtype)))


def _remainder_scalar_tensor(self: float, other: TTensor) -> TTensor:
    return _remainder(op.Constant(value=ir.tensor(self, dtype=other.dtype)), other)


def _floor_divide(self: TTensor, other: TTensor) -> TTensor:
    if self.dtype.is_integer():
        return core.aten_floor_divide(self, other)
    return _floored(self, other)


def _div_mode(self: TReal, other: TReal, rounding_mode: Optional[str] = None) -> TReal:
    if rounding_mode == "floor":
        return _floor_divide(self, other)
    if rounding_mode == "trunc" and self.dtype.is_integer():
        return op.Div(self, other)
    return core.aten_div_mode(self, other, rounding_mode)


_aten, _prims = torch.ops.aten, torch.ops.prims
TABLE: dict[Any, Callable[..., Any]] = {
    _aten._to_copy.default: _to_copy, _prims.convert_element_type.default: _convert_element_type,
    _aten.sign.default: _sign, _aten.sgn.default: _sign, _aten.signbit.default: _signbit,
    _aten.heaviside.default: _heaviside, _aten.log_sigmoid.default: _log_sigmoid,
    _aten.logaddexp.default: _logaddexp, _aten.logaddexp2.default: _logaddexp2,
    _aten.atan2.default: _atan2, _aten.remainder.Tensor: _remainder,
    _aten.remainder.Scalar: _remainder_scalar,
    _aten.remainder.Scalar_Tensor: _remainder_scalar_tensor, _prims.remainder.default: _remainder,
    _aten.floor_divide.default: _floor_divide, _aten.div.Tensor_mode: _div_mode,
    _aten.div.Scalar_mode: _div_mode}
