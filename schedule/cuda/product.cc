#include "schedule/cuda/product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "ir/index/simplify.h"
#include "schedule/access.h"
#include "schedule/nest_builder.h"

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

constexpr int64_t kLeastColumns = 16, kLeastRows = 4;
/// The results of 64 of the largest tiles; the fewest terms of a part of a sum.
constexpr int64_t kMostCutResults = 1 << 20, kLeastCutDepth = 16;
/// A reduce axis of so many iterations, a multiple of kLanes of them, is cut into slices as it is.
constexpr int64_t kLongDepth = 16, kLanes = 8, kFewLanes = 4;
/// Bytes of a row that tensor cores multiply at once, and those of four slices: with fewer there is
/// little that could be on its way.
constexpr int64_t kTermBytes = 32, kPipelineBytes = 256;

bool IsByte(ir::DType dtype) { return dtype == ir::DType::kI8 || dtype == ir::DType::kU8; }

const Expr& Unconverted(const Expr& factor) {
  return factor->kind == ExprKind::kCast ? factor->args[0] : factor;
}

/// A factor: what it reads, and whether a tile can hold it.
struct Factor {
  Expr value;
  std::vector<int> tensors;
  bool plain = true;  ///< f32 or narrower or a byte, and no index is read from memory

  bool DependsOn(int axis) const { return ir::DependsOnVar(value, axis); }
};

Factor FactorOf(const ir::Workload& workload, const Expr& e) {
  Factor factor{.value = Unconverted(e)};
  const ir::DType dtype = factor.value->dtype;
  factor.plain = dtype == ir::DType::kF32 || dtype == ir::DType::kF16 ||
                 dtype == ir::DType::kBF16 || IsByte(dtype);
  ir::Visit(factor.value, [&](const ir::ExprNode& node) {
    if (node.kind != ExprKind::kLoad) return;
    if (workload.tensors[node.id].kind != ir::TensorKind::kImmediate)
      factor.tensors.push_back(node.id);
    factor.plain = factor.plain && std::ranges::none_of(node.args, ir::HasLoad);
  });
  return factor;
}

/// Both factors of a sum of products in f32, or in i32 of bytes, the one that moves along the last
/// axis second.
struct Factors {
  Factor first, second;
  int first_tensor = -1, second_tensor = -1;  ///< read by this factor alone
  /// So many columns that lie together are one product, of which the first factor does not move
  /// along them (a grouped convolution); 0: all are.
  int64_t group = 0;

  int64_t number_bytes() const {
    if (IsByte(first.value->dtype)) return 1;
    return first.value->dtype == second.value->dtype ? ir::SizeOf(first.value->dtype) : 4;
  }
};

int TensorOf(const Factor& factor, const Factor& other) {
  for (const int tensor : factor.tensors) {
    if (std::ranges::find(other.tensors, tensor) == other.tensors.end()) return tensor;
  }
  return -1;
}

/// Over how many columns the factor stays where it is; 0: it does not move along them.
int64_t StaysFor(const ir::Workload& workload, const ir::Stage& stage, const Factor& factor) {
  int64_t columns = 0;
  for (const Access& access : AccessesOf(workload, stage)) {
    if (std::ranges::find(factor.tensors, access.tensor) != factor.tensors.end())
      columns = std::gcd(columns, access.block[stage.num_spatial() - 1]);
  }
  return columns;
}

std::optional<Factors> FactorsOfSum(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.scan >= 0 || stage.num_spatial() < 2 || stage.num_reduce() == 0 ||
      stage.combiner != ir::Combiner::kSum || stage.body[0]->kind != ExprKind::kBinary ||
      stage.body[0]->binary() != ir::BinaryOp::kMul) {
    return std::nullopt;
  }
  const ir::DType sum = stage.body[0]->dtype;
  if (sum != ir::DType::kF32 && sum != ir::DType::kI32) return std::nullopt;
  const int column = stage.num_spatial() - 1;
  Factors f{FactorOf(workload, stage.body[0]->args[0]), FactorOf(workload, stage.body[0]->args[1])};
  if (!f.first.plain || !f.second.plain) return std::nullopt;
  for (const Factor* factor : {&f.first, &f.second}) {
    if (IsByte(factor->value->dtype) != (sum == ir::DType::kI32)) return std::nullopt;
  }
  if (f.first.DependsOn(column)) std::swap(f.first, f.second);
  if (f.first.DependsOn(column)) {
    const int64_t first = StaysFor(workload, stage, f.first);
    const int64_t second = StaysFor(workload, stage, f.second);
    if (second > first) std::swap(f.first, f.second);
    f.group = std::max(first, second);
    if (f.group < kLeastColumns || stage.spatial[column] % f.group != 0) return std::nullopt;
  }
  if (!f.second.DependsOn(column)) return std::nullopt;
  f.first_tensor = TensorOf(f.first, f.second);
  f.second_tensor = TensorOf(f.second, f.first);
  if (f.first_tensor < 0 || f.second_tensor < 0) return std::nullopt;
  for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
    if (stage.Extent(r) > 1 && (!f.first.DependsOn(r) || !f.second.DependsOn(r)))
      return std::nullopt;
  }
  return f;
}

/// Where a load of an element of a factor lies when one axis has this value, the others 0.
int64_t OffsetAt(const ir::Workload& workload, const ir::Stage& stage, const ir::ExprNode& load,
                 int axis, int64_t at) {
  std::vector<Expr> point(static_cast<size_t>(stage.num_axes()), ir::Int(0));
  point[static_cast<size_t>(axis)] = ir::Int(at);
  const std::vector<int64_t>& shape = workload.tensors[load.id].shape;
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr index = ir::Simplify(ir::SubstituteVars(load.args[d], point), {});
    flat = flat * shape[d] + ir::AsInt(index).value_or(0);
  }
  return flat;
}

/// The most neighbours along an axis, a power of two, that lie side by side from a multiple of as
/// many on in memory, as far as the first points tell.
int64_t RunAlong(const ir::Workload& workload, const ir::Stage& stage, const Expr& factor,
                 int axis) {
  constexpr int64_t kTested = 64;
  int64_t run = 16;
  ir::Visit(factor, [&](const ir::ExprNode& node) {
    if (node.kind != ExprKind::kLoad ||
        std::ranges::none_of(node.args, [&](const Expr& i) { return ir::DependsOnVar(i, axis); }))
      return;
    const std::vector<int64_t>& shape = workload.tensors[node.id].shape;
    while (run > 1 && shape.size() > 1 && shape.back() % run != 0) run /= 2;
    int64_t before = 0;
    for (int64_t at = 0; at < std::min(kTested, stage.Extent(axis)); ++at) {
      const int64_t offset = OffsetAt(workload, stage, node, axis, at);
      while (run > 1 && (at % run == 0 ? offset % run != 0 : offset - before != 1)) run /= 2;
      before = offset;
    }
  });
  return run;
}

/// Whether four neighbours along an axis, from a multiple of four on, lie side by side in memory,
/// as far as the first points tell.
bool LiesAlong(const ir::Workload& workload, const ir::Stage& stage, const Expr& factor, int axis) {
  constexpr int64_t kTested = 64;
  bool along = true, any = false;
  ir::Visit(factor, [&](const ir::ExprNode& node) {
    if (node.kind != ExprKind::kLoad ||
        std::ranges::none_of(node.args, [&](const Expr& i) { return ir::DependsOnVar(i, axis); }))
      return;
    any = true;
    const auto offset = [&](int64_t at) { return OffsetAt(workload, stage, node, axis, at); };
    for (int64_t at = 0; at + 1 < std::min(kTested, stage.Extent(axis)); ++at)
      along = along && (at % 4 == 3 || offset(at + 1) - offset(at) == 1);
  });
  return any && along;
}

/// Whether neighbours along the axis lie side by side where nothing else moves.
int DepthAxis(const ir::Workload& workload, const ir::Stage& stage, const Factors& f) {
  int axis = -1;
  for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
    const bool along = LiesAlong(workload, stage, f.first.value, r);
    if (along && stage.Extent(r) > 1) return r;
    if (axis < 0 || stage.Extent(r) > stage.Extent(axis)) axis = r;
  }
  return axis;
}

/// Prepares one sum.
class Preparer {
 public:
  /// `maps`: Stages that may become epilogues.
  Preparer(TraceWriter& w, int id, const Factors& factors, const std::vector<int>& maps,
           int64_t parts)
      : w_(w), id_(id), f_(factors), maps_(maps), parts_(parts) {}

  std::optional<Product> Run() {
    const ir::Stage stage = w_.stage(id_);
    const std::vector<int> rows = RowAxes(stage);
    int64_t pixels = 1;
    for (const int a : rows) pixels *= stage.spatial[a];
    if (pixels < kLeastRows || stage.spatial.back() < kLeastColumns) return std::nullopt;
    if (f_.group > 0 && stage.num_spatial() == ir::kMaxRank) return std::nullopt;
    const std::vector<int> depth = DepthAxes(stage);
    const int map = EpilogueOf(w_, id_, maps_);
    const bool cores = SuitsCores(stage, pixels);
    // Tensor cores take rows of bytes along the sum alone.
    const bool by_depth = cores && f_.number_bytes() == 1;
    const std::string panel = PackSecond(stage, depth, by_depth);
    if (FlattenDepth(stage, depth, cores) && panel_depth_ > 1) {
      // The copy has the same axis, so that its rows follow each other.
      const int rank = w_.stage(w_.workload().FindStage(panel)).num_spatial();
      std::vector<int> axes;
      const int first = rank - panel_depth_ - (by_depth ? 0 : 1);
      for (int d = first; d < first + panel_depth_; ++d) axes.push_back(d);
      w_.Emit(fmt::format("flatten({}, [{}])", panel, fmt::join(Names(axes, 'i'), ",")));
    }
    for (const int each : {id_, map}) {
      if (each < 0 || rows.size() < 2) continue;
      w_.Emit(fmt::format("flatten({}, [{}])", w_.name(each), fmt::join(Names(rows, 'i'), ",")));
    }
    for (const int each : {id_, map}) {
      if (each < 0 || f_.group == 0) continue;
      w_.Emit(fmt::format("unflatten({}, i{}, {})", w_.name(each), w_.stage(each).num_spatial() - 1,
                          f_.group));
    }
    auto axes = FindProduct(w_.workload(), w_.stage(id_));
    Product product{.stage = id_, .epilogue = map};
    if (axes && w_.stage(id_).num_spatial() < ir::kMaxRank)
      product.parts = PartsOfSum(*axes, parts_);
    if (product.parts > 1) {
      product.stage = Cut(*axes, product.parts);
      product.sum = id_;
      product.epilogue = -1;
      if (product.stage < 0) return std::nullopt;  // the writer says why
      axes = FindProduct(w_.workload(), w_.stage(product.stage));
    }
    if (map >= 0) w_.Emit(fmt::format("epilogue({}, {})", w_.name(id_), w_.name(map)));
    if (!axes) return std::nullopt;
    product.axes = *axes;
    return product;
  }

 private:
  static std::vector<std::string> Names(const std::vector<int>& axes, char kind) {
    std::vector<std::string> names;
    for (const int a : axes) names.push_back(fmt::format("{}{}", kind, a));
    return names;
  }

  /// The largest run of axes that the second factor does not move along.
  std::vector<int> RowAxes(const ir::Stage& stage) const {
    std::vector<int> best, run;
    int64_t most = 0, points = 1;
    for (int a = 0; a < stage.num_spatial(); ++a) {
      if (a + 1 < stage.num_spatial() && !f_.second.DependsOn(a)) {
        run.push_back(a);
        points *= stage.spatial[a];
        if (points > most) most = points, best = run;
        continue;
      }
      run.clear();
      points = 1;
    }
    return best;
  }

  /// The reduce axes, counted from 0, in the order in which they become one.
  std::vector<int> DepthAxes(const ir::Stage& stage) const {
    const int last = DepthAxis(w_.workload(), stage, f_) - stage.num_spatial();
    std::vector<int> axes;
    for (int r = 0; r < stage.num_reduce(); ++r) {
      if (r != last) axes.push_back(r);
    }
    axes.push_back(last);
    return axes;
  }

  bool SuitsCores(const ir::Stage& stage, int64_t pixels) const {
    return f_.number_bytes() < 4 && pixels >= kLongDepth && DepthOf(stage) >= kLongDepth;
  }

  static int64_t DepthOf(const ir::Stage& stage) {
    int64_t all = 1;
    for (const int64_t extent : stage.reduce) all *= extent;
    return all;
  }

  bool FlattenDepth(const ir::Stage& stage, const std::vector<int>& axes, bool cores) {
    const int64_t last = stage.reduce[axes.back()], all = DepthOf(stage);
    // Terms that tensor cores add up come by sixteen, bytes by 32.
    const int64_t terms = kTermBytes / f_.number_bytes();
    const int64_t few = cores ? terms : kFewLanes, many = cores ? terms : kLanes;
    const bool bytes = cores && f_.number_bytes() == 1;
    const int64_t least = bytes ? kPipelineBytes : kLongDepth;
    const bool as_it_is = axes.size() == 1 ? last % few == 0
                          : last == all    ? last % few == 0
                                           : last % many == 0 && last >= least;
    if (as_it_is) return false;
    w_.Emit(fmt::format("flatten({}, [{}], {})", w_.name(id_), fmt::join(Names(axes, 'r'), ","),
                        all >= kLongDepth ? many : kFewLanes));
    return true;
  }

  /// Constants are laid out with the columns side by side, or `by_depth` each column's terms, in
  /// the order of the reduce axes: the name of the copy; empty: they stay as they are.
  std::string PackSecond(const ir::Stage& stage, const std::vector<int>& depth, bool by_depth) {
    if (f_.second.value->kind != ExprKind::kLoad) return {};
    const ir::ExprNode& load = *f_.second.value;
    if (w_.workload().tensors[load.id].kind != ir::TensorKind::kConstant) return {};
    std::vector<int> dim_of(static_cast<size_t>(stage.num_axes()), -1);
    std::vector<std::string> order;
    const auto rank = static_cast<int>(load.args.size());
    for (int d = 0; d < rank; ++d) {
      const Expr& index = load.args[d];
      if (index->kind == ExprKind::kVar && dim_of[index->id] < 0)
        dim_of[index->id] = d;
      else if (ir::AsInt(index))
        order.push_back(fmt::format("i{}", d));
      else
        return {};
    }
    const int column = dim_of[stage.num_spatial() - 1];
    if (column < 0 || (column == rank - 1 && !by_depth)) return {};
    for (int a = 0; a + 1 < stage.num_spatial(); ++a) {
      if (dim_of[a] >= 0) order.push_back(fmt::format("i{}", dim_of[a]));
    }
    if (by_depth) order.push_back(fmt::format("i{}", column));
    int reduced = 0;
    for (const int r : depth) {
      const int d = dim_of[stage.num_spatial() + r];
      if (d < 0) continue;
      order.push_back(fmt::format("i{}", d));
      ++reduced;
    }
    if (!by_depth) order.push_back(fmt::format("i{}", column));
    std::vector<int> all(static_cast<size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
    if (order == Names(all, 'i')) return {};
    panel_depth_ = reduced;
    const std::string panel = w_.NextStage();
    w_.Emit(fmt::format("{} = pack({}, {}, [{}])", panel, stage.name,
                        w_.workload().tensors[load.id].name, fmt::join(order, ",")));
    return panel;
  }

  /// Makes the products of the parts, one matrix after the other. Gives their Stage.
  int Cut(const ProductAxes& axes, int64_t parts) {
    const std::string made = w_.NextStage();
    w_.Emit(fmt::format("{0} = rfactor({1}, {1}.r{2}, {3}, outer, first)", made, w_.name(id_),
                        axes.reduce - w_.stage(id_).num_spatial(), parts));
    return w_.workload().FindStage(made);
  }

  TraceWriter& w_;
  const int id_;
  const Factors& f_;
  const std::vector<int>& maps_;
  const int64_t parts_;  ///< wanted
  int panel_depth_ = 0;  ///< dimensions of the copied second factor that are reduced
};

}  // namespace

std::optional<ProductAxes> FindProduct(const ir::Workload& workload, const ir::Stage& stage) {
  const auto factors = FactorsOfSum(workload, stage);
  if (!factors || factors->group > 0) return std::nullopt;
  ProductAxes axes;
  const int spatial = stage.num_spatial();
  axes.column = spatial - 1;
  for (int a = 0; a + 1 < spatial; ++a) {
    if (factors->second.DependsOn(a)) continue;
    if (axes.row < 0 || stage.spatial[a] > stage.spatial[axes.row]) axes.row = a;
  }
  if (axes.row < 0) return std::nullopt;
  const auto preferred = [&](int r) { return stage.Extent(r) % kLanes == 0 ? 1 : 0; };
  for (int r = spatial; r < stage.num_axes(); ++r) {
    const bool better =
        axes.reduce < 0 || preferred(r) > preferred(axes.reduce) ||
        (preferred(r) == preferred(axes.reduce) && stage.Extent(r) > stage.Extent(axes.reduce));
    if (better) axes.reduce = r;
  }
  axes.first = factors->first_tensor;
  axes.second = factors->second_tensor;
  axes.number_bytes = factors->number_bytes();
  axes.rows = stage.spatial[axes.row];
  axes.columns = stage.spatial[axes.column];
  axes.depth = stage.Extent(axes.reduce);
  for (int a = 0; a + 1 < spatial; ++a) {
    if (a == axes.row) continue;
    axes.batch.push_back(a);
    axes.batches *= stage.spatial[a];
  }
  for (int r = spatial; r < stage.num_axes(); ++r) {
    if (r == axes.reduce) continue;
    axes.other_reduce.push_back(r);
    axes.outer_depth *= stage.Extent(r);
  }
  if (axes.rows < kLeastRows || axes.columns < kLeastColumns || axes.depth % kFewLanes != 0)
    return std::nullopt;
  axes.first_by_depth = !LiesAlong(workload, stage, factors->first.value, axes.row);
  axes.second_by_depth = LiesAlong(workload, stage, factors->second.value, axes.reduce) &&
                         !LiesAlong(workload, stage, factors->second.value, axes.column);
  axes.first_run =
      RunAlong(workload, stage, factors->first.value, axes.first_by_depth ? axes.reduce : axes.row);
  axes.second_run = RunAlong(workload, stage, factors->second.value,
                             axes.second_by_depth ? axes.reduce : axes.column);
  return axes;
}

int EpilogueOf(const TraceWriter& writer, int stage, const std::vector<int>& maps) {
  const ir::Stage& sum = writer.stage(stage);
  const int result = sum.results[0];
  if (writer.workload().tensors[result].output) return -1;
  int map = -1;
  for (const int id : LiveStages(writer.schedule())) {
    if (!Loads(writer.stage(id), sum) || id == stage) continue;
    if (map >= 0) return -1;
    map = id;
  }
  if (std::ranges::find(maps, map) == maps.end()) return -1;
  const ir::Stage& reader = writer.stage(map);
  const StageSchedule& place = writer.schedule().stages[static_cast<size_t>(map)];
  if (reader.combiner != ir::Combiner::kNone || reader.scan >= 0 || reader.results.size() != 1 ||
      reader.spatial != sum.spatial || place.place != Place::kRoot || place.epilogue >= 0)
    return -1;
  bool own = true;
  ir::Visit(reader.body[0], [&](const ir::ExprNode& e) {
    if (e.kind != ExprKind::kLoad || e.id != result) return;
    for (size_t d = 0; d < e.args.size(); ++d)
      own &= e.args[d]->kind == ExprKind::kVar && e.args[d]->id == static_cast<int>(d);
  });
  return own ? map : -1;
}

int64_t PartsOfSum(const ProductAxes& axes, int64_t wanted) {
  if (axes.rows * axes.columns * axes.batches > kMostCutResults) return 1;
  const auto whole = [&](int64_t parts) {
    return axes.depth % parts == 0 && axes.depth / parts % kFewLanes == 0 &&
           axes.depth / parts >= kLeastCutDepth;
  };
  while (wanted > 1 && !whole(wanted)) wanted /= 2;
  return wanted;
}

std::vector<Product> PrepareProducts(TraceWriter& writer, const std::set<int>& taken,
                                     int64_t parts) {
  std::vector<Product> products;
  std::vector<int> free = LiveStages(writer.schedule());
  std::erase_if(free, [&](int id) { return taken.contains(id); });
  for (const int id : LiveStages(writer.schedule())) {
    if (taken.contains(id) || !writer.status().ok()) continue;
    const ir::Stage stage = writer.stage(id);
    const auto factors = FactorsOfSum(writer.workload(), stage);
    if (!factors) continue;
    if (const auto product = Preparer(writer, id, *factors, free, parts).Run())
      products.push_back(*product);
  }
  return products;
}

std::vector<int> LaunchedStages(const TraceWriter& writer) {
  const ir::Workload& workload = writer.workload();
  std::vector<int> launched;
  std::set<int> constants;  // tensors that are made when packaging
  for (const int id : LiveStages(writer.schedule())) {
    const ir::Stage& stage = writer.stage(id);
    const StageSchedule& place = writer.schedule().stages[static_cast<size_t>(id)];
    if (place.place != Place::kRoot) continue;
    bool constant = stage.scan < 0, reads = false;
    for (const int result : stage.results) constant &= !workload.tensors[result].output;
    for (const Expr& body : stage.body) {
      ir::Visit(body, [&](const ir::ExprNode& e) {
        if (e.kind != ExprKind::kLoad) return;
        reads = true;
        const ir::TensorKind kind = workload.tensors[e.id].kind;
        constant &= kind == ir::TensorKind::kConstant || kind == ir::TensorKind::kImmediate ||
                    constants.contains(e.id);
      });
    }
    if (constant && reads)
      constants.insert(stage.results.begin(), stage.results.end());
    else
      launched.push_back(id);
  }
  return launched;
}

}  // namespace hone::schedule
