#include <algorithm>

#include "fmt/core.h"

#include "codegen/llvm_emitter.h"
#include "ir/index/simplify.h"
#include "ir/tile_product.h"

// Products of tiles (ir/tile_product.h): while loops of nothing else run, the sums stay in
// registers; tiles of the factors are loaded where they are wanted and no register holds them.
namespace hone::codegen {

using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;
using ir::StmtNode;
using ir::TileProduct;

namespace {

bool IsTile(const StmtNode& node) {
  return node.kind == StmtKind::kFor && node.loop == LoopKind::kTile;
}

bool HasTile(const StmtNode& node) {
  return IsTile(node) ||
         std::ranges::any_of(node.body, [](const Stmt& inner) { return HasTile(*inner); });
}

/// Whether products of tiles are all that is done, to sums that the serial loops do not move.
bool IsRegion(const StmtNode& node, std::vector<int>* serial) {
  if (IsTile(node)) {
    const std::optional<TileProduct> p = ir::FindTileProduct(node);
    return p && std::ranges::none_of(
                    *serial, [&](int var) { return ir::DependsOnVar(p->store->index, var); });
  }
  const bool loop = node.kind == StmtKind::kFor;
  if (loop && node.loop != LoopKind::kSerial && node.loop != LoopKind::kUnrolled) return false;
  if (!loop && node.kind != StmtKind::kBlock) return false;
  const bool moves = loop && node.loop == LoopKind::kSerial;
  if (moves) serial->push_back(node.var);
  const bool all = !node.body.empty() && std::ranges::all_of(node.body, [&](const Stmt& inner) {
    return IsRegion(*inner, serial);
  });
  if (moves) serial->pop_back();
  return all;
}

/// Elements of a buffer that a statement gives zeros, or adds products of tiles to, and nothing
/// else.
struct Touched {
  int buffer = -1;  ///< -1: it does something else
  int64_t elements = 0;
  const ir::Expr* first = nullptr;  ///< index of the first one, where variables inside are 0
};

Touched Several(const StmtNode& node, Touched (*of)(const StmtNode&)) {
  Touched all;
  for (const Stmt& inner : node.body) {
    const Touched next = of(*inner);
    if (next.buffer < 0 || (all.buffer >= 0 && next.buffer != all.buffer)) return {};
    all = {next.buffer, all.elements + next.elements,
           all.first == nullptr ? next.first : all.first};
  }
  return all;
}

Touched Zeroed(const StmtNode& node) {
  if (node.kind == StmtKind::kStore) {
    const bool zero = node.combiner == ir::Combiner::kNone && node.values.size() == 1 &&
                      ir::Equal(node.values[0], ir::Const(node.values[0]->dtype, 0));
    return zero ? Touched{node.buffers[0], 1, &node.index} : Touched{};
  }
  if (node.kind != StmtKind::kFor && node.kind != StmtKind::kBlock) return {};
  Touched inside = Several(node, Zeroed);
  if (node.kind == StmtKind::kFor) inside.elements *= node.extent;
  return inside;
}

/// Serial loops add to the same sums again.
Touched Summed(const StmtNode& node) {
  if (IsTile(node)) {
    const std::optional<TileProduct> p = ir::FindTileProduct(node);
    return p ? Touched{p->store->buffers[0], p->rows * p->columns, &p->store->index} : Touched{};
  }
  const bool loop = node.kind == StmtKind::kFor &&
                    (node.loop == LoopKind::kSerial || node.loop == LoopKind::kUnrolled);
  if (!loop && node.kind != StmtKind::kBlock) return {};
  Touched inside = Several(node, Summed);
  if (loop && node.loop == LoopKind::kUnrolled) inside.elements *= node.extent;
  return inside;
}

/// Binds the variables of all loops in a statement to 0.
void BindZeros(const StmtNode& node, IndexSpace* index) {
  if (node.kind == StmtKind::kFor) index->Bind(node.var, Affine(0));
  for (const Stmt& inner : node.body) BindZeros(*inner, index);
}

/// The shape of a tile of the first or the second factor.
struct Shape {
  int64_t rows, row_bytes;
};
Shape ShapeOf(const TileProduct& p, bool second) {
  if (second) return {p.groups, p.columns * ir::kTileWordBytes};
  return {p.rows, p.groups * ir::kTileWordBytes};
}
constexpr int64_t kSumBytes = 4;

/// A register for each shape of the factors.
void PlanFactors(const StmtNode& node, TileRegion* region) {
  if (!IsTile(node)) {
    for (const Stmt& inner : node.body) PlanFactors(*inner, region);
    return;
  }
  const TileProduct p = *ir::FindTileProduct(node);
  for (const bool second : {false, true}) {
    const Shape shape = ShapeOf(p, second);
    bool known = false;
    for (size_t k = 0; k < region->factors.size(); ++k)
      known = known || region->Fits(k, second, shape.rows, shape.row_bytes);
    if (!known) region->AddFactor(second, shape.rows, shape.row_bytes);
  }
}

/// What is left holds the second factors of one pass, so that all rows find them; then first
/// factors, so that one is loaded while another is multiplied.
void ShareOutTiles(TileRegion* region) {
  const auto of = [&](bool second) {
    const auto found = std::ranges::find(region->factors, second, &TileRegion::Factor::is_second);
    return region->sums.size() + static_cast<size_t>(found - region->factors.begin());
  };
  const size_t first = of(false), second = of(true);
  size_t seconds = 1;
  while (region->sums.size() + region->factors.size() < ir::kTileRegisters) {
    const bool more = seconds++ < region->seconds.size();
    const size_t like = more ? second : first;
    region->AddFactor(more, region->shapes.rows[like], region->shapes.row_bytes[like]);
  }
}

}  // namespace

// The tile's element at its first row, column and term, and the step from row to row (of the second
// factor: from group to group).
TileRegion::Place FunctionEmitter::TilePlace(int buffer, const ir::Expr& index,
                                             const TileProduct& p, int row) {
  for (const int var : {p.row, p.column, p.group, p.term}) {
    if (var >= 0) index_.Bind(var, Affine(0));
  }
  TileRegion::Place place{buffer, index_.Decompose(index)};
  if (row < 0) return place;
  index_.Bind(row, Affine(1));
  const Affine step = index_.Decompose(index) - place.first;
  index_.Bind(row, Affine(0));
  if (!step.IsConst()) Fail("rows of a tile lie unevenly");
  place.stride = step.constant;
  return place;
}

// Gives each tile of sums a register, and finds the second factors of one pass.
void FunctionEmitter::PlanTiles(const StmtNode& node) {
  if (!IsTile(node)) {
    const int64_t times = node.loop == LoopKind::kUnrolled ? node.extent : 1;
    for (int64_t k = 0; k < times; ++k) {
      if (node.kind == StmtKind::kFor && node.loop == LoopKind::kUnrolled)
        index_.Bind(node.var, Affine(k));
      for (const Stmt& inner : node.body) PlanTiles(*inner);
    }
    return;
  }
  const TileProduct p = *ir::FindTileProduct(node);
  const TileRegion::Place second = TilePlace(p.second->id, p.second->args[0], p, p.group);
  if (std::ranges::find(region_->seconds, second) == region_->seconds.end())
    region_->seconds.push_back(second);
  const TileRegion::Place sums = TilePlace(p.store->buffers[0], p.store->index, p, p.row);
  if (std::ranges::find(region_->sums, sums) != region_->sums.end()) return;
  region_->SetShape(region_->sums.size(), p.rows, p.columns * kSumBytes);
  region_->sums.push_back(sums);
}

// Sums that begin with zeros need not come from memory: `body` has zeros from `first` on for all
// that products of tiles after them add up. Gives the number of statements emitted.
size_t FunctionEmitter::EmitTilesFromZero(const std::vector<Stmt>& body, size_t first) {
  if (function_->tiles() == nullptr || region_) return 0;
  const Touched zeros = Zeroed(*body[first]);
  if (zeros.buffer < 0) return 0;
  size_t products = first, end = first;
  int64_t zeroed = 0, summed = 0;
  for (; products < body.size(); ++products) {
    const Touched more = Zeroed(*body[products]);
    if (more.buffer != zeros.buffer) break;
    zeroed += more.elements;
  }
  const ir::Expr* sum = nullptr;
  for (end = products; end < body.size(); ++end) {
    const Touched more = Summed(*body[end]);
    std::vector<int> serial;
    if (more.buffer != zeros.buffer || !IsRegion(*body[end], &serial)) break;
    summed += more.elements;
    if (sum == nullptr) sum = more.first;
  }
  if (sum == nullptr || zeroed != summed) return 0;
  for (size_t k = first; k < end; ++k) BindZeros(*body[k], &index_);
  if (!(index_.Decompose(*zeros.first) == index_.Decompose(*sum))) return 0;
  for (size_t k = products; k < end; ++k) EmitTileRegion(*body[k], /*from_zero=*/true);
  return end - first;
}

bool FunctionEmitter::EmitTileRegion(const StmtNode& node, bool from_zero) {
  std::vector<int> serial;
  if (function_->tiles() == nullptr || region_ || !HasTile(node) || !IsRegion(node, &serial))
    return false;
  if (mask_ != nullptr || vector_.lanes > 1) {
    Fail("a product of tiles inside a vector loop");
    return true;
  }
  region_.emplace();
  PlanTiles(node);
  PlanFactors(node, &*region_);
  const size_t wanted = region_->sums.size() + region_->factors.size();
  if (wanted > ir::kTileRegisters) {
    Fail(fmt::format("{} tiles of sums and {} of factors do not fit {} registers",
                     region_->sums.size(), region_->factors.size(), ir::kTileRegisters));
    return true;
  }
  ShareOutTiles(&*region_);
  tile_sites_.push_back({Marker(), region_->shapes});
  TileUnit& unit = *function_->tiles();
  const auto at = [&](const TileRegion::Place& p) { return Pointer(p.buffer, p.first); };
  for (size_t k = 0; k < region_->sums.size(); ++k) {
    const TileRegion::Place& p = region_->sums[k];
    if (from_zero)
      unit.Zero(static_cast<int>(k));
    else
      unit.Load(static_cast<int>(k), at(p), p.stride * kSumBytes);
  }
  if (node.kind == StmtKind::kFor)
    EmitFor(node);
  else
    EmitBody(node);
  for (size_t k = 0; k < region_->sums.size(); ++k) {
    const TileRegion::Place& p = region_->sums[k];
    ++StateOf(p.buffer).writes;
    unit.Store(static_cast<int>(k), at(p), p.stride * kSumBytes);
  }
  region_.reset();
  return true;
}

int FunctionEmitter::FactorTile(const TileProduct& p, bool second) {
  const ir::Expr& load = second ? p.second : p.first;
  const TileRegion::Place place = TilePlace(load->id, load->args[0], p, second ? p.group : p.row);
  const Shape shape = ShapeOf(p, second);
  const size_t first = region_->sums.size();
  std::vector<size_t> fit;
  for (size_t k = 0; k < region_->factors.size(); ++k) {
    if (!region_->Fits(k, second, shape.rows, shape.row_bytes)) continue;
    const TileRegion::Factor& f = region_->factors[k];
    if (f.generation == generation_ && f.held == place) return static_cast<int>(first + k);
    fit.push_back(k);
  }
  const size_t k = fit[region_->turns[second ? 1 : 0]++ % fit.size()];
  region_->factors[k].held = place;
  region_->factors[k].generation = generation_;
  const auto number = static_cast<int>(first + k);
  function_->tiles()->Load(number, Pointer(place.buffer, place.first),
                           place.stride * ir::SizeOf(load->dtype));
  return number;
}

void FunctionEmitter::EmitTile(const StmtNode& node) {
  const TileProduct p = *ir::FindTileProduct(node);
  statement_values_.clear();
  const TileRegion::Place sums = TilePlace(p.store->buffers[0], p.store->index, p, p.row);
  const auto found = std::ranges::find(region_->sums, sums);
  if (found == region_->sums.end()) return Fail("sums of a product of tiles move");
  const int first = FactorTile(p, false), second = FactorTile(p, true);
  function_->tiles()->Multiply(static_cast<int>(found - region_->sums.begin()), first,
                               p.first->dtype, second, p.second->dtype);
}

void FunctionEmitter::HoistTileSites(size_t first, llvm::Instruction* before) {
  if (first == tile_sites_.size()) return;
  const TileShapes shapes = tile_sites_[first].shapes;
  for (size_t k = first; k < tile_sites_.size(); ++k) {
    if (!(tile_sites_[k].shapes == shapes)) return;
  }
  tile_sites_.resize(first);
  tile_sites_.push_back({before, shapes});
}

void FunctionEmitter::ConfigureTiles() {
  if (tile_sites_.empty()) return;
  function_->tiles()->Release();
  llvm::IRBuilder<>::InsertPointGuard restore(builder_);
  for (const TileSite& site : tile_sites_) {
    builder_.SetInsertPoint(site.before);
    function_->tiles()->Configure(site.shapes);
  }
}

}  // namespace hone::codegen
