#include "compiler/package_variants.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/hash128.h"
#include "base/status.h"

namespace hone::compiler {
namespace {

constexpr int64_t kAlignBytes = 64;

int64_t RoundUp(int64_t value) { return (value + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

/// Bytes of a model's constants that are one thing: a buffer, or several that overlap.
struct Piece {
  int64_t begin = 0, end = 0;  ///< in the model's constants
  size_t content = 0;          ///< which of the table's
};

/// Bytes of the table.
struct Content {
  std::string_view bytes;
  size_t first = 0, last = 0;  ///< models that need it
  int64_t offset = 0;
};

std::vector<Piece> PiecesOf(const ir::Plan& plan) {
  std::vector<Piece> pieces;
  for (const ir::PlanBuffer& buffer : plan.buffers) {
    if (buffer.kind != ir::PlanBufferKind::kConstant) continue;
    pieces.push_back({buffer.offset, buffer.offset + buffer.bytes});
  }
  std::ranges::sort(pieces, {}, &Piece::begin);
  std::vector<Piece> whole;
  for (const Piece& piece : pieces) {
    if (!whole.empty() && piece.begin < whole.back().end) {
      whole.back().end = std::max(whole.back().end, piece.end);
    } else if (whole.empty() || piece.begin != whole.back().begin) {
      whole.push_back(piece);
    } else {
      whole.back() = piece;  // after one without bytes
    }
  }
  return whole;
}

/// What all models need, each content once.
class Table {
 public:
  size_t Add(std::string_view bytes, size_t model) {
    std::vector<size_t>& alike = by_hash_[HashBytes(bytes).ToHex()];
    for (const size_t known : alike) {
      if (contents_[known].bytes != bytes) continue;
      contents_[known].last = model;
      return known;
    }
    alike.push_back(contents_.size());
    contents_.push_back({.bytes = bytes, .first = model, .last = model});
    return alike.back();
  }

  /// Places them: what two neighbours share stands between what each needs alone.
  std::vector<std::byte> Take() {
    std::vector<Content*> order;
    for (Content& content : contents_) order.push_back(&content);
    std::ranges::stable_sort(
        order, {}, [](const Content* content) { return std::pair(content->first, content->last); });
    int64_t end = 0;
    for (Content* const content : order) {
      content->offset = RoundUp(end);
      end = content->offset + static_cast<int64_t>(content->bytes.size());
    }
    std::vector<std::byte> bytes(static_cast<size_t>(end));
    for (const Content& content : contents_) {
      if (content.bytes.empty()) continue;
      std::memcpy(bytes.data() + content.offset, content.bytes.data(), content.bytes.size());
    }
    return bytes;
  }

  int64_t OffsetOf(size_t content) const { return contents_[content].offset; }

 private:
  std::vector<Content> contents_;
  std::map<std::string, std::vector<size_t>> by_hash_;
};

void Redirect(const std::vector<Piece>& pieces, const Table& table, ir::Plan* plan) {
  for (ir::PlanBuffer& buffer : plan->buffers) {
    if (buffer.kind != ir::PlanBufferKind::kConstant) continue;
    const auto after = std::ranges::upper_bound(pieces, buffer.offset, {}, &Piece::begin);
    const Piece& piece = *(after - 1);
    buffer.offset = table.OffsetOf(piece.content) + buffer.offset - piece.begin;
  }
}

}  // namespace

absl::StatusOr<PackageVariants> ShareConstants(const std::vector<CompiledModel>& models) {
  PackageVariants out;
  for (const CompiledModel& model : models) out.packages.push_back(model.package);
  if (models.size() == 1) return out;
  Table table;
  std::vector<std::vector<Piece>> pieces;
  for (size_t k = 0; k < models.size(); ++k) {
    const auto constants = models[k].package.constants;
    pieces.push_back(PiecesOf(models[k].package.plan));
    for (Piece& piece : pieces.back()) {
      const auto bytes = constants.subspan(static_cast<size_t>(piece.begin),
                                           static_cast<size_t>(piece.end - piece.begin));
      piece.content = table.Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, k);
    }
  }
  out.constants = table.Take();
  for (size_t k = 0; k < models.size(); ++k) {
    Redirect(pieces[k], table, &out.packages[k].plan);
    out.packages[k].constants = out.constants;
  }
  return out;
}

}  // namespace hone::compiler
