#include "graph/onnx_prune/prune_structure.h"

#include <charconv>

namespace hone::graph::onnx_prune {
namespace {

constexpr int64_t kMostExtent = 4096, kMostGroup = 64;

struct Pair {
  int64_t first = 0, second = 0;
};

/// Two whole numbers from 1 with a sign between them.
std::optional<Pair> ParsePair(std::string_view text, char sign) {
  Pair pair;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, pair.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != sign) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, pair.second);
  if (second.ec != std::errc() || second.ptr != end || pair.first < 1 || pair.second < 1)
    return std::nullopt;
  return pair;
}

}  // namespace

std::optional<PruneStructure> ParsePruneStructure(std::string_view text) {
  using Kind = PruneStructure::Kind;
  constexpr std::string_view kBlock = "block:";
  if (text == "none") return PruneStructure{};
  if (text == "channel") return PruneStructure{.kind = Kind::kChannel};
  if (text == "head") return PruneStructure{.kind = Kind::kHead};
  if (text.starts_with(kBlock)) {
    const auto pair = ParsePair(text.substr(kBlock.size()), 'x');
    if (!pair || pair->first > kMostExtent || pair->second > kMostExtent) return std::nullopt;
    return PruneStructure{.kind = Kind::kBlock, .terms = pair->first, .columns = pair->second};
  }
  const auto pair = ParsePair(text, ':');
  if (!pair || pair->second > kMostGroup || pair->first >= pair->second) return std::nullopt;
  return PruneStructure{.kind = Kind::kOfGroup, .kept = pair->first, .group = pair->second};
}

}  // namespace hone::graph::onnx_prune
