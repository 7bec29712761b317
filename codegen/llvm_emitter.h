#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

#include "codegen/index_space.h"
#include "codegen/llvm_arith.h"
#include "codegen/llvm_buffer_state.h"
#include "codegen/llvm_lane_pattern.h"
#include "codegen/llvm_loaded.h"
#include "codegen/llvm_loop_frame.h"
#include "codegen/llvm_phase_function.h"
#include "codegen/llvm_tile_region.h"
#include "ir/launch.h"
#include "ir/mma.h"
#include "ir/stmt.h"

// One phase of a loop nest → an LLVM function of the machine's kind (llvm_phase_function.h).
namespace hone::codegen {

/// Use once: make, Emit, drop. Methods are spread over the files that are named before them.
class FunctionEmitter : private OpaqueSource {
 public:
  FunctionEmitter(const ir::LoopNest& nest, const ir::Phase& phase, const ir::Target& target,
                  llvm::Module* module);

  /// Buffers to keep as plain memory of elements: their accesses overlap with different shapes.
  void set_flat(const std::set<int>& flat) { flat_ = flat; }

  /// kInvalidArgument names what the nest does wrong (a register index that is not constant, a
  /// loop of another kind of machine). If conflicts() is not empty afterwards, the code is no good:
  /// Erase it and emit again with those buffers flat.
  absl::Status Emit();
  void Erase() { function_->Erase(); }
  const std::set<int>& conflicts() const { return conflicts_; }

 private:
  using Frame = LoopFrame;
  using Slot = RegisterSlot;

  // llvm_emit_function.cc
  void EmitEntry();
  llvm::Value* TableGlobal(int buffer);

  // llvm_emit_stmt.cc
  void EmitStmt(const ir::Stmt& stmt);
  void EmitBody(const ir::StmtNode& node);
  void EmitFor(const ir::StmtNode& node);
  void EmitUnrolled(const ir::StmtNode& node);
  void EmitLoop(llvm::Value* begin, llvm::Value* end, const ir::StmtNode& node);
  void EmitPart(llvm::Value* begin, llvm::Value* end, const ir::StmtNode& node);
  bool EmitLaunched(const ir::StmtNode& node);
  void EmitVector(const ir::StmtNode& node);
  void EmitIf(const ir::StmtNode& node);
  void EmitFill(const ir::StmtNode& node);
  void EmitFail(const ir::StmtNode& node);
  void EmitSync(const ir::StmtNode& node);
  bool EmitCopy(const ir::StmtNode& node, const Affine& index);
  void EmitPrefetch(const ir::StmtNode& node);
  void EmitFillLoop(int buffer, int64_t elements, const Value& value);
  void EmitStore(const ir::StmtNode& node);
  void EmitReduceStore(const ir::StmtNode& node, const Affine& index);
  std::vector<Value> EvalValues(const ir::StmtNode& node);
  /// Runs body(true-block) only when `condition` holds.
  void Branch(llvm::Value* condition, const std::function<void()>& body);
  llvm::Instruction* Marker();
  /// After this nothing loaded before is reused: control flow joins here.
  void Boundary() {
    ++generation_;
    statement_values_.clear();
  }
  int WidestBytes(const ir::Stmt& stmt);

  // llvm_lanes.cc
  bool SetPrivate(const ir::StmtNode& vector_loop, std::vector<int>* buffers);
  void CombineLanes(const ir::StmtNode& node, const Affine& index);
  void CombineLaneByLane(const ir::StmtNode& node, const Affine& index);
  bool IsInjective(const Affine& index);
  bool EmitDot(const ir::StmtNode& node);
  llvm::Value* DotWord(const ir::Expr& load, const ir::StmtNode& node);

  // llvm_warp.cc
  void EmitLanes(const ir::StmtNode& node);
  void EmitMma(const ir::StmtNode& node);
  const std::vector<llvm::Value*>& Fetched(int buffer, const Affine& row, int count,
                                           const std::function<std::vector<llvm::Value*>()>& fetch);
  const std::vector<llvm::Value*>& Matrices(int buffer, const Affine& row, int count, bool turned);
  /// A lane's words of a factor of bytes whose terms lie apart, from this term on.
  const std::vector<llvm::Value*>& LaneBytes(const ir::MmaLoop& mma, bool of_first, int64_t term);
  /// The index of a load where variables have these values.
  Affine Placed(const ir::Expr& load, const std::vector<std::pair<int, ir::Expr>>& values);
  void RunMma(const ir::MmaLoop& mma);

  // llvm_wgmma.cc
  void EmitWgmma(const ir::StmtNode& node);
  void AwaitProducts(const ir::StmtNode& node);
  PhaseFunction::GroupFactor FactorOf(const ir::WgmmaLoop& loop, const ir::Expr& load);
  void BindWarps();
  void EmitBox(const ir::StmtNode& node);
  bool EmitBoxSync(const ir::StmtNode& node);
  llvm::Value* Number(const ir::Expr& expr);
  llvm::Value* SwizzledPointer(int buffer, const Affine& index);

  // llvm_tiles.cc
  size_t EmitTilesFromZero(const std::vector<ir::Stmt>& body, size_t first);
  bool EmitTileRegion(const ir::StmtNode& node, bool from_zero);
  void EmitTile(const ir::StmtNode& node);
  TileRegion::Place TilePlace(int buffer, const ir::Expr& index, const ir::TileProduct& p, int row);
  void PlanTiles(const ir::StmtNode& node);
  int FactorTile(const ir::TileProduct& p, bool second);
  void HoistTileSites(size_t first, llvm::Instruction* before);
  void ConfigureTiles();

  // llvm_emit_expr.cc
  Value Eval(const ir::Expr& expr);
  Value EvalGeneric(const ir::Expr& expr);
  Value EvalSelect(const ir::Expr& expr);
  Value EvalGuarded(const ir::Expr& expr, const Value& condition);
  Value EvalBinary(const ir::Expr& expr);
  Value EvalCast(const ir::Expr& expr);
  std::optional<Value> HalfByteAsFloat(const ir::Expr& expr);
  Affine Opaque(const ir::Expr& expr) override;
  bool IsPure(const ir::Expr& expr) override;

  // llvm_expand.cc
  std::optional<Value> LoadExpanded(const ir::Expr& expr);

  // llvm_invariants.cc
  std::optional<Value> Invariant(const ir::Expr& expr);
  bool InvariantLoads(const ir::Expr& expr, std::vector<LoopFrame::InvariantLoad>* loads);
  const std::set<int>& WrittenIn(const ir::StmtNode& loop);

  // llvm_address.cc
  Value Materialise(const Affine& a, ir::DType dtype);
  llvm::Value* MaterialiseScalar(const Affine& a);
  llvm::Value* MaterialiseVector(const Affine& a, unsigned bits);
  llvm::Value* MaterialiseBool(const Affine& a);
  llvm::Value* AtomValue(int id);
  void SetAtomValue(const Affine& atom, llvm::Value* value);
  llvm::Value* MakeAtomValue(const Atom& atom);
  llvm::Value* LaneConstants(const Affine& a, unsigned bits);
  llvm::Value* Pointer(int buffer, const Affine& index);
  /// Without regard to a swizzle.
  llvm::Value* PlainPointer(int buffer, const Affine& index);
  llvm::Value* HoistedPointer(int buffer, std::vector<Term> terms);
  llvm::Value* Displaced(llvm::Value* pointer, int64_t bytes);
  llvm::Align AlignOf(int buffer, const Affine& index) const;
  LanePattern PatternOf(const Affine& index);

  // llvm_memory.cc
  Value Load(int buffer, const Affine& index);
  Value LoadMemory(int buffer, const Affine& index);
  Value LoadScalar(int buffer, const Affine& index);
  llvm::Value* LoadWhere(llvm::Value* wanted, llvm::Value* at, llvm::Type* type, llvm::Align align);
  Value LoadContiguous(int buffer, const Affine& base);
  std::optional<Value> LoadNarrow(int buffer, const LanePattern& pattern);
  Value LoadShuffled(int buffer, const LanePattern& pattern);
  bool IsShortStride(const LanePattern& pattern) const;
  llvm::Value* LoadPiece(llvm::Type* type, llvm::Value* pointer, ir::DType dtype,
                         const LanePattern& pattern, int64_t first, int64_t width);
  Value LoadGathered(int buffer, const Affine& index);
  llvm::Value* LoadFromByteTable(int buffer, const Affine& index);
  bool TableConstant(int buffer, const Affine& index, Value* result);
  void Store(int buffer, const Affine& index, const Value& value);
  void StoreMemory(int buffer, const Affine& index, const Value& value);
  void StoreLanes(int buffer, const Affine& index, const LanePattern& pattern, llvm::Value* raw);
  llvm::Value* LanePointers(int buffer, const Affine& index);
  llvm::Value* ActiveMask();
  llvm::Value* WithGuard(llvm::Value* mask);
  bool InBounds(int buffer, const ir::Interval& range, int64_t elements) const;
  const ir::Buffer& Of(int buffer) const { return nest_.buffers[static_cast<size_t>(buffer)]; }
  BufferState& StateOf(int buffer) { return states_[static_cast<size_t>(buffer)]; }

  // llvm_transpose.cc
  bool LoadTransposed(const ir::Expr& load, const Affine& index, Value* result);
  int64_t ColumnsOf(const ir::Expr& load, const Affine& index);
  std::vector<Value> LoadStrip(int buffer, const Affine& first, int64_t stride, int64_t columns);

  // llvm_registers.cc
  bool IsRegister(int buffer) const { return Of(buffer).scope == ir::Scope::kRegister; }
  Slot* FindSlot(int buffer, const LanePattern& pattern);
  Slot* FindPrivateSlot(int buffer, int64_t offset);
  llvm::AllocaInst* NewAlloca(llvm::Type* type);
  Value LoadRegister(int buffer, const Affine& index);
  void StoreRegister(int buffer, const Affine& index, const Value& value);
  Value FromFlat(llvm::Value* raw, ir::DType dtype, int lanes);
  llvm::Value* ToFlat(const Value& value);
  llvm::Type* FlatType(ir::DType dtype, int lanes);
  llvm::Value* FlatPointer(int buffer, int64_t offset);
  Value LoadFlat(int buffer, const LanePattern& pattern);
  void StoreFlat(int buffer, const LanePattern& pattern, const Value& value);
  void FillRegister(int buffer, int64_t elements, const Value& value);
  bool RegisterPattern(int buffer, const Affine& index, LanePattern* pattern);
  void Fail(std::string message);

  const ir::LoopNest& nest_;
  const ir::Phase& phase_;
  llvm::Module* module_;
  llvm::IRBuilder<> builder_;
  const std::unique_ptr<PhaseFunction> function_;
  Arith arith_;
  IndexSpace index_;
  const ir::Launch launch_;
  absl::Status status_;
  std::set<int> flat_;
  std::set<int> conflicts_;

  llvm::Function* inner_ = nullptr;  // holds the code
  std::set<int> used_;               // ids of the buffers the phase uses

  std::vector<BufferState> states_;
  std::vector<Frame> frames_;
  std::vector<UnrolledLoop> unrolled_;  // around the current place, outermost first
  std::vector<Strip> strips_;           // of the innermost of them
  std::vector<llvm::Value*> atom_values_;
  std::unordered_map<LoadKey, AvailableLoad, LoadKeyHash> available_;
  int64_t generation_ = 0;
  int64_t hoisted_generation_ = -1;  // counts down: nothing loaded elsewhere is reused
  int branches_ = 0;                 // around the current place
  int64_t stores_ = 0;               // emitted so far

  VectorLoop vector_;
  llvm::Value* mask_ = nullptr;   // lanes on, by enclosing Ifs and selects; null: all
  llvm::Value* guard_ = nullptr;  // scalar condition of the enclosing select arm; null: true
  std::map<std::pair<const ir::ExprNode*, std::pair<llvm::Value*, llvm::Value*>>, Value>
      statement_values_;
  std::unordered_map<const ir::ExprNode*, bool> pure_;
  std::unordered_map<const ir::StmtNode*, int> widest_;
  std::unordered_map<const ir::StmtNode*, std::set<int>> written_;
  std::unordered_map<llvm::Value*, Affine> opaque_;
  std::vector<llvm::Instruction*> markers_;
  int thread_x_ = -1, thread_y_ = -1;  // variables of the threads side by side; -1: none
  std::optional<Affine> warp_;         // the second one's value, the same for all lanes
  std::vector<FetchedMatrices> fetched_;
  std::optional<TileRegion> region_;  // around the current place
  std::vector<TileSite> tile_sites_;
};

}  // namespace hone::codegen
