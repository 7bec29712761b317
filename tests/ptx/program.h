#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// PTX text as data, read after NVIDIA's "Parallel Thread Execution ISA". It knows the instructions
// that arith.cc and machine.cc name and no others.
namespace hone::ptx {

/// 'p' predicate, 'b' bits, 'u' unsigned, 's' signed, 'f' floating point, 'h' two f16; 0: none.
struct Type {
  char kind = 0;
  int bits = 0;
  int bytes() const { return bits / 8; }
  bool operator==(const Type&) const = default;
};

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

/// What an instruction's name says besides types, space, comparison and rounding.
enum Flag : uint32_t {
  kWide = 1 << 0,
  kHi = 1 << 1,
  kLo = 1 << 2,
  kSat = 1 << 3,
  kFtz = 1 << 4,
  kNan = 1 << 5,
  kUni = 1 << 6,
  kSync = 1 << 7,
  kAligned = 1 << 8,
  kNc = 1 << 9,
  kToSpace = 1 << 10,  // cvta.to
  kClamp = 1 << 11,
  kWrap = 1 << 12,
  kLeft = 1 << 13,
  kRight = 1 << 14,
  kUp = 1 << 15,
  kDown = 1 << 16,
  kBfly = 1 << 17,
  kIdx = 1 << 18,
  kCta = 1 << 19,
  kAnd = 1 << 20,
  kOr = 1 << 21,
  kXor = 1 << 22,
  kCg = 1 << 23,  // past the first level of cache
  kCa = 1 << 24,  // through all levels of cache
  kAsync = 1 << 25,
  kCommitGroup = 1 << 26,
  kWaitGroup = 1 << 27,
  kWaitAll = 1 << 28,
};

enum class Rounding : uint8_t { kNone, kNearest, kZero, kDown, kUp };

struct Operand {
  enum class Kind : uint8_t {
    kRegister,   ///< `reg`
    kImmediate,  ///< `bits`
    kSymbol,     ///< a variable's address: `name`, `offset`
    kAddress,    ///< [register or variable + `offset`]: `reg` or, where that is -1, `name`
    kVector,     ///< {parts}
    kPair,       ///< part|part
    kSpecial,    ///< %tid.x: `name`
    kLabel,      ///< `target`
    kSink,       ///< _
  };
  Kind kind = Kind::kSink;
  int reg = -1;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string name;
  int target = -1;  ///< an instruction of the kernel
  bool negated = false;
  std::vector<Operand> parts;
};

struct Instruction {
  std::string text;    ///< as it stands
  std::string opcode;  ///< "ld"
  int line = 0;
  uint32_t flags = 0;
  Type type, second;  ///< in the order of the name: cvt.type.second
  Space space = Space::kGeneric;
  Rounding rounding = Rounding::kNone;
  bool to_integer = false;  ///< .rni, .rzi, .rmi, .rpi
  int vector = 1;
  std::string compare;
  std::vector<std::string> parts;  ///< of the names of ldmatrix and mma: all behind the opcode
  std::vector<Operand> operands;
  int guard = -1;
  bool guard_negated = false;

  bool Has(Flag flag) const { return (flags & flag) != 0; }
};

/// Memory that the text declares, or (.extern .shared) that the launch gives.
struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  int64_t alignment = 1;
  int64_t bytes = 0;
  std::vector<uint8_t> initial;  ///< empty: unset
};

struct Kernel {
  std::string name;
  std::vector<Variable> parameters;
  std::vector<Variable> variables;  ///< .shared and .local of its own
  std::vector<Type> registers;
  std::vector<Instruction> body;
  int threads[3] = {0, 0, 0};  ///< .reqntid; 0: not said
};

struct Program {
  std::string target;
  std::vector<Variable> variables;
  std::vector<Variable> given;  ///< shared memory that launches give, all of it one array
  std::map<std::string, Kernel> kernels;
};

/// kInvalidArgument names the line and what is not known there.
absl::StatusOr<Program> ParsePtx(std::string_view text);

}  // namespace hone::ptx
