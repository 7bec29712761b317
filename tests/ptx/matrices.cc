#include "tests/ptx/matrices.h"

#include <bit>
#include <vector>

namespace hone::ptx {
namespace {

constexpr int kM = 16, kN = 8, kK = 16;

float Number(bool bf16, uint32_t word, int half) {
  const auto bits = static_cast<uint16_t>(word >> (16 * half));
  if (bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

bool IsVector(const Operand& o, size_t parts) {
  return o.kind == Operand::Kind::kVector && o.parts.size() == parts;
}

std::string CheckLdmatrix(const Instruction& in) {
  const std::vector<std::string>& p = in.parts;
  const size_t trans = p.size() > 4 && p[4] == "trans" ? 1 : 0;
  const bool name = p.size() == 6 + trans && p[0] == "sync" && p[1] == "aligned" &&
                    p[2] == "m8n8" && (p[3] == "x1" || p[3] == "x2" || p[3] == "x4") &&
                    p[4 + trans] == "shared" && p[5 + trans] == "b16";
  if (!name) return "only ldmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}.shared.b16 is known";
  if (!IsVector(in.operands[0], static_cast<size_t>(FormOf(in).count)))
    return "another number of registers";
  return in.operands[1].kind == Operand::Kind::kAddress ? "" : "no address";
}

std::string CheckMma(const Instruction& in) {
  const std::vector<std::string>& p = in.parts;
  const auto byte = [](const std::string& type) { return type == "s8" || type == "u8"; };
  const bool form =
      p.size() == 9 && p[0] == "sync" && p[1] == "aligned" && p[3] == "row" && p[4] == "col";
  const bool reals = form && p[2] == "m16n8k16" && p[5] == "f32" &&
                     (p[6] == "f16" || p[6] == "bf16") && p[7] == p[6] && p[8] == "f32";
  const bool bytes =
      form && p[2] == "m16n8k32" && p[5] == "s32" && byte(p[6]) && byte(p[7]) && p[8] == "s32";
  if (!reals && !bytes) {
    return "only mma.sync.aligned.m16n8k16.row.col of f16 or bf16 and f32 and m16n8k32 of u8 or s8 "
           "and s32 are known";
  }
  const bool operands = IsVector(in.operands[0], 4) && IsVector(in.operands[1], 4) &&
                        IsVector(in.operands[2], 2) && IsVector(in.operands[3], 4);
  return operands ? "" : "another number of registers";
}

}  // namespace

bool IsOfMatrices(const Instruction& in) { return in.opcode == "ldmatrix" || in.opcode == "mma"; }

std::string CheckMatrices(const Instruction& in) {
  return in.opcode == "mma" ? CheckMma(in) : CheckLdmatrix(in);
}

MatrixForm FormOf(const Instruction& in) {
  MatrixForm form;
  for (const std::string& part : in.parts) {
    if (part.size() == 2 && part[0] == 'x') form.count = part[1] - '0';
    form.transposed = form.transposed || part == "trans";
    form.bf16 = form.bf16 || part == "bf16";
  }
  if (in.opcode == "mma" && in.parts[2] == "m16n8k32") {
    form.bytes = true;
    form.a_signed = in.parts[6] == "s8";
    form.b_signed = in.parts[7] == "s8";
  }
  return form;
}

// Section "Matrix Fragments for mma.m16n8k16 with floating point type": groupID = %laneid >> 2,
// threadID_in_group = %laneid % 4; the i-th element of a fragment is half i % 2 of word i / 2.
void MultiplyAccumulate(bool bf16, WarpRegisters* r) {
  float a[kM][kK], b[kK][kN];
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    const auto at = static_cast<size_t>(lane);
    for (int i = 0; i < 8; ++i) {
      const bool upper = i < 2 || (i >= 4 && i < 6);
      const int row = upper ? group : group + 8;
      const int column = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
      a[row][column] = Number(bf16, r->a[at][static_cast<size_t>(i / 2)], i % 2);
    }
    for (int i = 0; i < 4; ++i) {
      const int row = in_group * 2 + (i & 1) + (i < 2 ? 0 : 8);
      b[row][group] = Number(bf16, r->b[at][static_cast<size_t>(i / 2)], i % 2);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    const auto at = static_cast<size_t>(lane);
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8, column = in_group * 2 + (i & 1);
      double sum = static_cast<double>(r->c[at][static_cast<size_t>(i)]);
      for (int k = 0; k < kK; ++k)
        sum += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
      r->d[at][static_cast<size_t>(i)] = static_cast<float>(sum);
    }
  }
}

// Section "Matrix Fragments for mma.m16n8k32": A is four words of four bytes, a0 to a15 with the
// row groupID for a0 to a3 and a8 to a11, else groupID + 8, and the column threadID_in_group * 4 +
// (i & 3), plus 16 from a8 on. B is b0 to b7 with the row threadID_in_group * 4 + (i & 3), plus 16
// from b4 on, and the column groupID. C and D are as for m16n8k16.
void MultiplyAccumulateBytes(bool a_signed, bool b_signed, WarpRegisters* r) {
  constexpr int kBytesK = 32;
  const auto number = [](uint32_t word, int i, bool is_signed) {
    const uint32_t byte = (word >> (8 * (i & 3))) & 0xffU;
    return is_signed && byte > 127 ? static_cast<int64_t>(byte) - 256 : static_cast<int64_t>(byte);
  };
  int64_t a[kM][kBytesK], b[kBytesK][kN];
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    const auto at = static_cast<size_t>(lane);
    for (int i = 0; i < 16; ++i) {
      const bool upper = i < 4 || (i >= 8 && i < 12);
      const int row = upper ? group : group + 8;
      const int column = in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
      a[row][column] = number(r->a[at][static_cast<size_t>(i / 4)], i, a_signed);
    }
    for (int i = 0; i < 8; ++i) {
      const int row = in_group * 4 + (i & 3) + (i < 4 ? 0 : 16);
      b[row][group] = number(r->b[at][static_cast<size_t>(i / 4)], i, b_signed);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    const auto at = static_cast<size_t>(lane);
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? group : group + 8, column = in_group * 2 + (i & 1);
      auto sum = static_cast<int64_t>(r->integer_c[at][static_cast<size_t>(i)]);
      for (int k = 0; k < kBytesK; ++k) sum += a[row][k] * b[k][column];
      r->integer_d[at][static_cast<size_t>(i)] = static_cast<uint32_t>(sum);
    }
  }
}

}  // namespace hone::ptx
