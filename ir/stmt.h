#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/descriptor.h"
#include "ir/expr.h"
#include "ir/workload.h"

namespace hone::ir {

/// How a loop runs. kUnrolled bodies are emitted once per iteration with the variable a constant.
/// kVector: the variable is the lane (extent = lanes; any extent 2..64). kParallel: outermost of a
/// phase, the range is split over threads; several beside each other number their iterations on.
/// kStep: outermost, one phase launch per iteration (a scan's t, or outer sequential loop), barrier
/// between. kDot: innermost, 2 or 4 iterations that add products to one element: one instruction
/// where the Target has it for them, else as kUnrolled. kMma: a tile that a GPU's warp multiplies
/// together (ir/mma.h). kTile: one that a CPU's core multiplies in tile registers
/// (ir/tile_product.h). kWgmma: one that four warps begin to multiply (ir/wgmma.h). kBox: a copy
/// that one thread begins (ir/box_copy.h). The GPU kinds run in the interpreter and the CUDA
/// emitter.
enum class LoopKind : uint8_t {
  kSerial,
  kUnrolled,
  kVector,
  kParallel,
  kStep,
  kDot,
  kMma,
  kTile,
  kWgmma,
  kBox,
  kBlockX,
  kBlockY,
  kBlockZ,
  kThreadX,
  kThreadY
};
std::string_view ToString(LoopKind kind);

enum class Scope : uint8_t {
  kArgument,  ///< passed in HoneCall.buffers at `argument`
  kScratch,   ///< this thread's scratch memory, at byte offset `scratch_offset`
  kRegister,  ///< vectors kept in registers; every index must be constant after unrolling (vector
              ///< lanes aside)
  kTable,     ///< immediate values
  kShared,    ///< GPU shared memory
};

/// Memory seen by a loop nest. Indices are flat element offsets from its start.
struct Buffer {
  std::string name = {};
  Scope scope = Scope::kArgument;
  DType dtype = DType::kF32;
  int64_t elements = 0;
  bool read_only = false;
  int argument = -1;               ///< kArgument: slot in HoneCall.buffers
  int64_t scratch_offset = 0;      ///< kScratch: bytes, 64-aligned
  int64_t alignment = 4;           ///< kArgument: bytes the base pointer is known to be aligned to
  std::vector<double> table = {};  ///< kTable
  /// kShared: k128: pieces of 16 bytes are exchanged within each 128, which those who know the
  /// memory alone see; indices are as without.
  Swizzle swizzle = Swizzle::kNone;
};

enum class StmtKind : uint8_t { kBlock, kFor, kIf, kStore, kFill, kSync, kFail, kPrefetch };

struct StmtNode;
using Stmt = std::shared_ptr<const StmtNode>;

/// One statement; fields by kind:
///   kBlock  body: statements in order
///   kFor    var in [0, extent), loop, body
///   kIf     condition (bool; may depend on a vector lane: then everything inside runs under that
///   mask: masked
///           lanes are neither loaded nor stored and contribute the combiner's identity), body
///   kStore  buffers[k][index] = values[k], or with a combiner other than kNone
///           buffers[k][index] = combine(buffers[k][index], values[k]). When the values depend on a
///           vector lane and the index does not, lanes are combined first. One flat index for all
///           buffers (tuples share it).
///   kFill   buffer[0..elements) = the combiner's identity (or value for kNone); register and
///   scratch tiles kSync   barrier of the threads of a GPU block kFail   ends the phase at once
///   with a result other than 0 (in `extent`; kPhaseBadIndex<<16 | input); under a masked If
///           when any lane is on
///   kPrefetch  a hint: the line of buffers[0][index] will be read soon. The index may lie outside
///           of the buffer; nothing is read, so interpreters pass over it
struct StmtNode {
  StmtKind kind = StmtKind::kBlock;
  std::vector<Stmt> body = {};
  int var = -1;
  int64_t extent = 0;
  LoopKind loop = LoopKind::kSerial;
  Expr condition = {};
  std::vector<int> buffers = {};
  Expr index = {};
  std::vector<Expr> values = {};
  Combiner combiner = Combiner::kNone;
  int map = -1;  ///< of a loop of kind kBox: number of LoopNest::maps
};

Stmt Block(std::vector<Stmt> body);
Stmt For(int var, int64_t extent, LoopKind kind, Stmt body);
Stmt If(Expr condition, Stmt body);
Stmt Store(int buffer, Expr index, Expr value, Combiner combiner = Combiner::kNone);
Stmt StoreTuple(std::vector<int> buffers, Expr index, std::vector<Expr> values, Combiner combiner);
/// Fills the first `elements` of a buffer (stored in `extent`) with value.
Stmt Fill(int buffer, int64_t elements, Expr value);
Stmt Sync();
/// If(Not(index in range), Fail(kPhaseBadIndex << 16 | input)): how lowering refuses an index that
/// was read from an input.
Stmt Fail(int32_t result);
Stmt Prefetch(int buffer, Expr index);

/// The buffers that a statement and all inside of it read or write.
std::set<int> BuffersOf(const Stmt& stmt);

/// One parallel region: code between two barriers.
struct Phase {
  std::string symbol = {};      ///< unique in the object; set by the packager's prefix + number
  Stmt body = {};               ///< outermost: at most one kStep, then kParallel loops in a row
  int64_t parallel_extent = 1;  ///< iterations of the parallel loops together
  int threads = 1;              ///< most threads worth using (from the Trace's `parallel`)
  int64_t scratch_bytes = 0;    ///< per thread
};

/// A run of phases with a barrier after each, repeated (scan: repeats = T; `step` counts).
struct KernelStep {
  int first = 0;
  int count = 1;
  int64_t repeats = 1;
  bool operator==(const KernelStep&) const = default;
};

/// What lowering gives and codegen takes: buffers by id (Expr Load ids and Store buffers index this
/// list). Arguments are ordered: inputs, constants, prologue results, outputs, workspace tensors.
struct LoopNest {
  std::vector<Buffer> buffers = {};
  std::vector<Phase> phases = {};
  std::vector<KernelStep> steps = {};
  int num_vars = 0;
  std::vector<Descriptor> maps = {};  ///< tensors of which boxes are copied (ir/box_copy.h)
};

/// Text for goldens, `hone explain` and error messages; one statement a line, two spaces of
/// indentation.
std::string ToText(const LoopNest& nest);
std::string ToText(const Stmt& stmt, const LoopNest& nest);

}  // namespace hone::ir
