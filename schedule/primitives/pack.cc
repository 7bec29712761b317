#include <fmt/format.h>

#include "base/status.h"
#include "schedule/primitives/primitive.h"

namespace hone::schedule {

namespace {
constexpr int64_t kMaxPacked = int64_t{1} << 40;

/// One dimension of the packed layout: dimension `dim` of the source, whole, its quotient or its
/// remainder.
struct PackedDim {
  enum class Part : uint8_t { kWhole, kQuotient, kRemainder } part = Part::kWhole;
  int dim = 0;
  int64_t block = 1;
};

absl::StatusOr<PackedDim> ParseDim(const std::string& text, int rank) {
  PackedDim d;
  size_t at = text.find_first_of("/%");
  std::string name = text.substr(0, at);
  if (name.size() < 2 || name[0] != 'i')
    return Illegal(fmt::format("{}: dimensions are i0, i0/c or i0%c", text));
  HONE_ASSIGN_OR_RETURN(int64_t dim, ParseInteger(std::string_view(name).substr(1)));
  if (dim < 0 || dim >= rank)
    return Illegal(fmt::format("{}: the tensor has {} dimensions", text, rank));
  d.dim = static_cast<int>(dim);
  if (at == std::string::npos) return d;
  d.part = text[at] == '/' ? PackedDim::Part::kQuotient : PackedDim::Part::kRemainder;
  HONE_ASSIGN_OR_RETURN(d.block, ParseInteger(std::string_view(text).substr(at + 1)));
  if (d.block < 1 || d.block > 65536)
    return Illegal(fmt::format("{}: the block must lie in 1..65536", text));
  return d;
}

absl::Status CheckCovers(const std::vector<PackedDim>& dims, int rank) {
  for (int i = 0; i < rank; ++i) {
    int whole = 0, quotient = 0, remainder = 0;
    int64_t block = 0;
    for (const auto& d : dims) {
      if (d.dim != i) continue;
      if (d.part == PackedDim::Part::kWhole)
        ++whole;
      else if (block != 0 && d.block != block)
        return Illegal(fmt::format("i{} has two different blocks", i));
      else
        block = d.block, (d.part == PackedDim::Part::kQuotient ? quotient : remainder)++;
    }
    bool ok = (whole == 1 && quotient == 0 && remainder == 0) ||
              (whole == 0 && quotient == 1 && remainder == 1);
    if (!ok)
      return Illegal(
          fmt::format("i{} must stand once whole, or once as i{}/c and once as i{}%c", i, i, i));
  }
  return absl::OkStatus();
}

/// The Stage that copies the source in this layout, with zeros where it ends inside a block.
ir::Stage CopyOf(const ir::Tensor& source, int tensor, const std::vector<PackedDim>& dims,
                 ir::DType dtype) {
  const int rank = static_cast<int>(source.shape.size());
  ir::Stage copy;
  std::vector<ir::Expr> indices(rank);
  ir::Expr inside;
  for (size_t k = 0; k < dims.size(); ++k) {
    const PackedDim& d = dims[k];
    int64_t n = source.shape[d.dim];
    ir::Expr v = ir::Var(static_cast<int>(k));
    if (d.part == PackedDim::Part::kQuotient) v = v * d.block;
    copy.spatial.push_back(d.part == PackedDim::Part::kWhole      ? n
                           : d.part == PackedDim::Part::kQuotient ? (n + d.block - 1) / d.block
                                                                  : d.block);
    indices[d.dim] = indices[d.dim] ? indices[d.dim] + v : v;
  }
  for (int i = 0; i < rank; ++i) {
    bool blocked = false;
    for (const auto& d : dims)
      blocked |= d.dim == i && d.part != PackedDim::Part::kWhole && source.shape[i] % d.block != 0;
    if (!blocked) continue;
    ir::Expr c = ir::Lt(indices[i], ir::Int(source.shape[i]));
    inside = inside ? ir::And(inside, c) : c;
  }
  ir::Expr load = ir::Cast(dtype, ir::Load(tensor, source.dtype, indices));
  copy.body = {inside ? ir::Select(inside, load, ir::Const(dtype, 0)) : load};
  return copy;
}

/// i32(i8(x)) of an element of the copy, which was widened from i8, is i32(x).
void DropNarrowings(ir::Stage& stage, int copy) {
  for (ir::Expr& body : stage.body) {
    body = ir::Rewrite(body, [&](const ir::Expr& e) -> ir::Expr {
      const bool casts = e->kind == ir::ExprKind::kCast && e->dtype == ir::DType::kI32 &&
                         e->args[0]->kind == ir::ExprKind::kCast;
      const ir::Expr element = casts ? e->args[0]->args[0] : nullptr;
      if (!casts || element->kind != ir::ExprKind::kLoad || element->id != copy) return nullptr;
      return ir::Cast(ir::DType::kI32, element);
    });
  }
}
}  // namespace

// sN = pack(STAGE, TENSOR, [i0/64, i1, i0%64]): a copy of TENSOR at root in a blocked layout,
// padded with zeros, that STAGE reads instead. The copy of a constant is made once, when packaging.
// With i16 as a fourth argument bytes are copied as 16 bits.
absl::Status ApplyPack(Schedule& schedule, const Instruction& instruction) {
  Arguments args(schedule, instruction);
  HONE_RETURN_IF_ERROR(args.Expect(3, 4));
  HONE_ASSIGN_OR_RETURN(int id, args.Stage(0));
  HONE_ASSIGN_OR_RETURN(int tensor, args.Tensor(1));
  const ir::Tensor source = schedule.workload.tensors[tensor];
  const bool widens = args.count() == 4;
  if (widens &&
      (args.Text(3) != "i16" || !ir::IsInteger(source.dtype) || ir::SizeOf(source.dtype) != 1))
    return Illegal("only bytes are widened, to i16");
  const ir::DType dtype = widens ? ir::DType::kI16 : source.dtype;
  HONE_ASSIGN_OR_RETURN(std::vector<std::string> items, ListItems(args.Text(2)));
  const int rank = static_cast<int>(source.shape.size());
  std::vector<PackedDim> dims;
  for (const auto& item : items) {
    HONE_ASSIGN_OR_RETURN(PackedDim d, ParseDim(item, rank));
    dims.push_back(d);
  }
  HONE_RETURN_IF_ERROR(CheckCovers(dims, rank));
  HONE_RETURN_IF_ERROR(RequireOutsideScan(schedule, id, tensor));
  if (dims.size() > ir::kMaxRank)
    return Illegal(
        fmt::format("the copy would have {} dimensions; {} at most", dims.size(), ir::kMaxRank));
  bool reads = false;
  for (const auto& body : schedule.workload.stages[id].body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      reads |= e.kind == ir::ExprKind::kLoad && e.id == tensor;
    });
  }
  if (!reads) return Illegal(fmt::format("{} does not read {}", args.Text(0), args.Text(1)));
  HONE_ASSIGN_OR_RETURN(std::string name, TakeStageName(schedule, instruction));

  ir::Stage copy = CopyOf(source, tensor, dims, dtype);
  int64_t elements = 1;
  for (int64_t n : copy.spatial) elements = std::min(elements * n, kMaxPacked + 1);
  if (elements > kMaxPacked) return Illegal("the copy would have more than 2^40 elements");
  std::vector<int64_t> shape = copy.spatial;
  int result = AppendStage(schedule, std::move(copy), name, dtype, shape);
  ReplaceLoads(schedule.workload.stages[id], tensor, [&](const std::vector<ir::Expr>& at) {
    std::vector<ir::Expr> packed;
    for (const auto& d : dims) {
      const ir::Expr& i = at[d.dim];
      packed.push_back(d.part == PackedDim::Part::kWhole      ? i
                       : d.part == PackedDim::Part::kQuotient ? ir::FloorDiv(i, d.block)
                                                              : ir::FloorMod(i, d.block));
    }
    return ir::Cast(source.dtype, ir::Load(result, dtype, packed));
  });
  if (widens) DropNarrowings(schedule.workload.stages[id], result);
  return absl::OkStatus();
}

}  // namespace hone::schedule
