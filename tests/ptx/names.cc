#include "tests/ptx/names.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "fmt/core.h"

#include "tests/ptx/groups.h"
#include "tests/ptx/matrices.h"

namespace hone::ptx {
namespace {

constexpr uint32_t kNoFlags = 0;

/// An opcode: how many operands, what its name may say.
struct Form {
  int least = 0, most = 0;
  uint32_t flags = kNoFlags;
  bool compares = false, rounds = false, types = true, spaces = false;
};

const std::map<std::string_view, Form>& Forms() {
  static const std::map<std::string_view, Form> forms = {
      {"abs", {2, 2, kFtz}},
      {"add", {3, 3, kSat | kFtz, false, true}},
      {"and", {3, 3}},
      {"bar", {1, 2, kSync | kAligned | kCta, false, false, false}},
      {"barrier", {1, 2, kSync | kAligned | kCta, false, false, false}},
      {"bfe", {4, 4}},
      {"bfi", {5, 5}},
      {"bra", {1, 1, kUni, false, false, false}},
      {"brev", {2, 2}},
      {"clz", {2, 2}},
      {"cnot", {2, 2}},
      {"copysign", {3, 3}},
      {"cp",
       {0, 4, kAsync | kCa | kCg | kCommitGroup | kWaitGroup | kWaitAll, false, false, false,
        true}},
      {"cvt", {2, 3, kSat | kFtz, false, true}},
      {"cvta", {2, 2, kToSpace, false, false, true, true}},
      {"div", {3, 3, kFtz, false, true}},
      {"fence", {0, 0, kNoFlags, false, false, false}},
      {"fma", {4, 4, kSat | kFtz, false, true}},
      {"ldmatrix", {2, 2, kNoFlags, false, false, false}},
      {"ld", {2, 2, kNc | kCg, false, false, true, true}},
      {"mad", {4, 4, kWide | kHi | kLo}},
      {"max", {3, 3, kFtz | kNan}},
      {"mbarrier", {2, 3, kNoFlags, false, false, false}},
      {"min", {3, 3, kFtz | kNan}},
      {"mma", {4, 4, kNoFlags, false, false, false}},
      {"mov", {2, 2}},
      {"mul", {3, 3, kWide | kHi | kLo | kSat | kFtz, false, true}},
      {"neg", {2, 2, kFtz}},
      {"not", {2, 2}},
      {"or", {3, 3}},
      {"popc", {2, 2}},
      {"prmt", {4, 4}},
      {"rcp", {2, 2, kFtz, false, true}},
      {"rem", {3, 3}},
      {"ret", {0, 0, kUni, false, false, false}},
      {"selp", {4, 4}},
      {"setp", {3, 4, kFtz | kAnd | kOr | kXor, true}},
      {"shf", {4, 4, kLeft | kRight | kWrap | kClamp}},
      {"shfl", {5, 5, kSync | kUp | kDown | kBfly | kIdx}},
      {"shl", {3, 3}},
      {"shr", {3, 3}},
      {"sqrt", {2, 2, kFtz, false, true}},
      {"st", {2, 2, kNoFlags, false, false, true, true}},
      {"sub", {3, 3, kSat | kFtz, false, true}},
      {"wgmma", {0, 8, kNoFlags, false, false, false}},
      {"xor", {3, 3}},
  };
  return forms;
}

const std::map<std::string_view, uint32_t>& Flags() {
  static const std::map<std::string_view, uint32_t> flags = {
      {"wide", kWide},
      {"hi", kHi},
      {"lo", kLo},
      {"sat", kSat},
      {"ftz", kFtz},
      {"NaN", kNan},
      {"uni", kUni},
      {"sync", kSync},
      {"aligned", kAligned},
      {"nc", kNc},
      {"to", kToSpace},
      {"clamp", kClamp},
      {"wrap", kWrap},
      {"l", kLeft},
      {"r", kRight},
      {"up", kUp},
      {"down", kDown},
      {"bfly", kBfly},
      {"idx", kIdx},
      {"cta", kCta},
      {"and", kAnd},
      {"or", kOr},
      {"xor", kXor},
      {"cg", kCg},
      {"ca", kCa},
      {"async", kAsync},
      {"commit_group", kCommitGroup},
      {"wait_group", kWaitGroup},
      {"wait_all", kWaitAll},
  };
  return flags;
}

bool IsComparison(std::string_view word) {
  static const std::set<std::string_view> words = {
      "eq", "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
      "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan",
  };
  return words.contains(word);
}

/// rn, rz, rm, rp and, to integers, rni, rzi, rmi, rpi.
bool ReadRounding(std::string_view word, Instruction* in) {
  static const std::map<std::string_view, Rounding> modes = {{"rn", Rounding::kNearest},
                                                             {"rz", Rounding::kZero},
                                                             {"rm", Rounding::kDown},
                                                             {"rp", Rounding::kUp}};
  in->to_integer = word.size() == 3 && word[2] == 'i';
  const auto found = modes.find(in->to_integer ? word.substr(0, 2) : word);
  if (found == modes.end()) return false;
  in->rounding = found->second;
  return true;
}

bool ReadPart(std::string_view word, const Form& form, Instruction* in) {
  const bool by_parts = in->opcode == "fence" || in->opcode == "mbarrier" ||
                        (in->opcode == "cp" && (word == "bulk" || !in->parts.empty()));
  if (IsOfMatrices(*in) || IsOfGroups(*in) || by_parts) {
    in->parts.emplace_back(word);
    return true;
  }
  if (form.compares && in->compare.empty() && IsComparison(word)) {
    in->compare = std::string(word);
    return true;
  }
  if (form.rounds && in->rounding == Rounding::kNone && ReadRounding(word, in)) return true;
  if (form.spaces) {
    if (const std::optional<Space> space = SpaceNamed(word)) {
      in->space = *space;
      return true;
    }
    if ((in->opcode == "ld" || in->opcode == "st") && (word == "v2" || word == "v4")) {
      in->vector = word[1] - '0';
      return true;
    }
  }
  const auto flag = Flags().find(word);
  if (flag != Flags().end() && (form.flags & flag->second) != 0) {
    in->flags |= flag->second;
    return true;
  }
  const std::optional<Type> type = form.types ? TypeNamed(word) : std::nullopt;
  if (!type || in->second.kind != 0) return false;
  (in->type.kind == 0 ? in->type : in->second) = *type;
  return true;
}

std::string Joined(const Instruction& in) {
  std::string text;
  for (const std::string& part : in.parts) text += "." + part;
  return text;
}

bool AreAddresses(const Instruction& in, std::initializer_list<size_t> which) {
  return std::ranges::all_of(which, [&](size_t k) {
    return k < in.operands.size() && in.operands[k].kind == Operand::Kind::kAddress;
  });
}

// cp.async.bulk.tensor.2d… [to], [map, {column, row}], [barrier].
std::string CheckBulk(const Instruction& in) {
  if (Joined(in) != ".bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes")
    return "of bulk copies only those of boxes of matrices are known";
  const bool known = in.operands.size() == 3 && AreAddresses(in, {0, 1, 2}) &&
                     in.operands[1].parts.size() == 1 &&
                     in.operands[1].parts[0].kind == Operand::Kind::kVector &&
                     in.operands[1].parts[0].parts.size() == 2;
  return known ? "" : "it names no place, map, two coordinates and barrier";
}

std::string CheckBarrier(const Instruction& in) {
  const std::string name = Joined(in);
  const size_t count = in.operands.size();
  if (name == ".init.shared::cta.b64")
    return count == 2 && AreAddresses(in, {0}) ? "" : "it names no barrier and count";
  if (name == ".arrive.expect_tx.shared::cta.b64")
    return count == 3 && AreAddresses(in, {1}) ? "" : "it names no barrier and bytes";
  if (name == ".try_wait.parity.shared::cta.b64")
    return count == 3 && AreAddresses(in, {1}) ? "" : "it names no barrier and parity";
  return "only init, arrive.expect_tx and try_wait.parity are known";
}

// cp.async.ca|cg.shared.global [to], [from], bytes {, read}; cp.async.commit_group;
// cp.async.wait_group N; cp.async.wait_all (PTX ISA, "Data Movement and Conversion Instructions:
// Asynchronous copy").
std::string CheckCopy(const Instruction& in, int count) {
  if (!in.parts.empty()) return CheckBulk(in);
  const uint32_t kind = in.flags & ~static_cast<uint32_t>(kAsync);
  if (!in.Has(kAsync)) return "only asynchronous copies are known";
  const auto immediate = [&](size_t k) { return in.operands[k].kind == Operand::Kind::kImmediate; };
  if (kind == kCommitGroup || kind == kWaitAll) return count == 0 ? "" : "it has no operands";
  if (kind == kWaitGroup) return count == 1 && immediate(0) ? "" : "it waits for no number";
  if ((kind != kCa && kind != kCg) || in.space != Space::kGlobal)
    return "only copies from global to shared memory are known";
  if (count < 3 || !immediate(2)) return "it says not how many bytes";
  const uint64_t bytes = in.operands[2].bits;
  const bool known = bytes == 16 || (kind == kCa && (bytes == 4 || bytes == 8));
  return known ? "" : "16 bytes, through all levels of cache also 4 or 8";
}

}  // namespace

std::optional<Type> TypeNamed(std::string_view word) {
  if (word == "pred") return Type{'p', 1};
  if (word == "f16x2") return Type{'h', 32};
  static const std::set<std::string_view> names = {"b8",  "b16", "b32", "b64", "u8",
                                                   "u16", "u32", "u64", "s8",  "s16",
                                                   "s32", "s64", "f16", "f32", "f64"};
  if (!names.contains(word)) return std::nullopt;
  const int bits = word.size() == 2 ? 8 : (word[1] - '0') * 10 + (word[2] - '0');
  return Type{word[0], bits};
}

std::optional<Space> SpaceNamed(std::string_view word) {
  if (word == "global") return Space::kGlobal;
  if (word == "shared") return Space::kShared;
  if (word == "local") return Space::kLocal;
  if (word == "param") return Space::kParam;
  if (word == "const") return Space::kConst;
  return std::nullopt;
}

bool IsSpecial(std::string_view name) {
  static const std::set<std::string_view> names = {
      "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
      "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
  return names.contains(name);
}

std::string ReadName(std::string_view name, Instruction* in) {
  in->opcode = std::string(name.substr(0, name.find('.')));
  const auto form = Forms().find(in->opcode);
  if (form == Forms().end()) return in->opcode;
  size_t at = name.find('.');
  while (at != std::string_view::npos) {
    const size_t end = name.find('.', at + 1);
    const std::string_view word =
        name.substr(at + 1, end == std::string_view::npos ? std::string_view::npos : end - at - 1);
    if (!ReadPart(word, form->second, in)) return "." + std::string(word);
    at = end;
  }
  return {};
}

std::string CheckForm(const Instruction& in) {
  const Form& form = Forms().find(in.opcode)->second;
  const auto count = static_cast<int>(in.operands.size());
  if (count < form.least || count > form.most)
    return fmt::format("{} operands, not {} to {}", count, form.least, form.most);
  if (form.types && in.type.kind == 0) return "it names no type";
  if (in.opcode == "cp") return CheckCopy(in, count);
  if (IsOfMatrices(in)) return CheckMatrices(in);
  if (IsOfGroups(in)) return CheckGroups(in);
  if (in.opcode == "fence") {
    const std::string name = Joined(in);
    const bool known =
        name == ".proxy.async.shared::cta" || name == ".mbarrier_init.release.cluster";
    return known ? "" : "only fence.proxy.async.shared::cta and for a barrier's begin is known";
  }
  if (in.opcode == "mbarrier") return CheckBarrier(in);
  if (in.opcode == "cvt" && (count == 3) != (in.type.kind == 'h'))
    return "another number of sources";
  if (form.compares && in.compare.empty()) return "it compares nothing";
  const bool is_float = in.type.kind == 'f';
  if ((in.opcode == "div" || in.opcode == "sqrt" || in.opcode == "rcp") && is_float &&
      in.rounding == Rounding::kNone)
    return "only correctly rounded forms are known";
  if (in.opcode == "fma" && in.rounding == Rounding::kNone) return "it names no rounding";
  const bool multiplies = in.opcode == "mul" || in.opcode == "mad";
  if (multiplies && !is_float && (in.flags & (kWide | kHi | kLo)) == 0)
    return "an integer product says which half";
  if ((in.opcode == "mad" || in.opcode == "shf") && is_float) return "not for floating point";
  return {};
}

}  // namespace hone::ptx
