#include "tests/ptx/groups.h"

#include <bit>
#include <charconv>
#include <string_view>

#include "fmt/core.h"

namespace hone::ptx {
namespace {

constexpr int kRows = 64, kTerms = 16, kMostColumns = 256;

/// N of "m64nNk16"; 0: another shape.
int ColumnsOf(std::string_view shape) {
  if (!shape.starts_with("m64n") || !shape.ends_with("k16")) return 0;
  const std::string_view digits = shape.substr(4, shape.size() - 7);
  int columns = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && columns % 8 == 0 && columns >= 8 && columns <= kMostColumns ? columns : 0;
}

std::string CheckMultiply(const Instruction& in) {
  const std::vector<std::string>& p = in.parts;
  const bool name = p.size() == 7 && p[1] == "sync" && p[2] == "aligned" && ColumnsOf(p[3]) > 0 &&
                    p[4] == "f32" && (p[5] == "f16" || p[5] == "bf16") && p[6] == p[5];
  if (!name) return "only m64nNk16 of f16 or bf16 and f32 is known";
  const std::vector<Operand>& o = in.operands;
  // d, a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b.
  if (o.size() != 8) return "eight operands are known, both factors in shared memory";
  const auto sums = static_cast<size_t>(ColumnsOf(p[3]) / 2);
  if (o[0].kind != Operand::Kind::kVector || o[0].parts.size() != sums)
    return "another number of registers";
  for (const Operand& part : o[0].parts) {
    if (part.kind != Operand::Kind::kRegister) return "sums are registers";
  }
  const auto is = [&](size_t k, uint64_t least, uint64_t most) {
    return o[k].kind == Operand::Kind::kImmediate && o[k].bits >= least && o[k].bits <= most;
  };
  if (!is(4, 1, 1) || !is(5, 1, 1)) return "factors are not negated";
  return is(6, 0, 1) && is(7, 0, 1) ? "" : "a matrix is transposed or not";
}

}  // namespace

bool IsOfGroups(const Instruction& in) { return in.opcode == "wgmma"; }

std::string CheckGroups(const Instruction& in) {
  const std::vector<std::string>& p = in.parts;
  if (!p.empty() && p[0] == "mma_async") return CheckMultiply(in);
  const bool aligned = p.size() == 3 && p[1] == "sync" && p[2] == "aligned";
  if (aligned && (p[0] == "fence" || p[0] == "commit_group"))
    return in.operands.empty() ? "" : "it has no operands";
  if (aligned && p[0] == "wait_group") {
    const bool count = in.operands.size() == 1 && in.operands[0].kind == Operand::Kind::kImmediate;
    return count ? "" : "it waits for no number";
  }
  return "only fence, mma_async, commit_group and wait_group are known";
}

GroupForm GroupFormOf(const Instruction& in) {
  return {ColumnsOf(in.parts[3]), in.parts[5] == "bf16"};
}

std::optional<GroupDescriptor> GroupDescriptor::Of(uint64_t bits, std::string* why) {
  // matrix-start-address, leading dimension byte offset and stride dimension byte offset are
  // encoded as (x & 0x3FFFF) >> 4.
  const auto field = [&](int low) { return ((bits >> low) & 0x3fffU) << 4; };
  const GroupDescriptor made{field(0), field(16), field(32)};
  constexpr uint64_t kUsed = uint64_t{0x3fff} | uint64_t{0x3fff} << 16 | uint64_t{0x3fff} << 32 |
                             uint64_t{7} << 49 | uint64_t{3} << 62;
  if ((bits & ~kUsed) != 0) *why = fmt::format("descriptor {:#x} has bits of no field", bits);
  if (((bits >> 49) & 7U) != 0) *why = "a base offset other than 0 is not known";
  if (bits >> 62 != 1) *why = "only a swizzle of 128 bytes is known";
  return why->empty() ? std::optional(made) : std::nullopt;
}

// "Strides" of "Asynchronous Warpgroup Level Matrix Shared Memory Layout". K-major: eight rows of
// 128 bytes, the next eight a stride further; the leading offset is not used. MN-major: eight k of
// 64 numbers side by side, the next eight k a stride, the next 64 numbers a leading offset further.
// The swizzle takes the address as it is: bits 4 to 6 are changed by bits 7 to 9.
uint64_t GroupDescriptor::AddressOf(int i, int k, bool across) const {
  const auto row = static_cast<uint64_t>(i), term = static_cast<uint64_t>(k);
  const uint64_t plain =
      across ? start + row / 64 * leading + term / 8 * stride + term % 8 * 128 + row % 64 * 2
             : start + row / 8 * stride + row % 8 * 128 + term * 2;
  return plain ^ ((plain >> 7 & 7U) << 4);
}

// "Register Fragments": of 16 rows each warp has those of its number; threads of four have a row,
// and two neighbouring columns of each eight; then the row eight further.
GroupPlace PlaceOfSum(size_t thread, size_t number) {
  const auto t = static_cast<int>(thread), n = static_cast<int>(number);
  const int lane = t % 32;
  return {.row = t / 32 * 16 + lane / 4 + n / 2 % 2 * 8,
          .column = n / 4 * 8 + lane % 4 * 2 + n % 2};
}

float NumberOfHalf(bool bf16, uint16_t bits) {
  if (bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

}  // namespace hone::ptx
