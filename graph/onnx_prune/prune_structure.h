#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hone::graph::onnx_prune {

/// Which weights of a layer, seen as terms of a sum by columns, become zero together.
struct PruneStructure {
  enum class Kind : uint8_t {
    kNone,     ///< each by itself
    kBlock,    ///< `terms` neighbouring terms of `columns` neighbouring columns
    kOfGroup,  ///< all but `kept` of `group` neighbouring input channels of a column
    kChannel,  ///< an input channel with what makes it, which disappear
    kHead,     ///< a head of an attention with its queries, keys and values, which disappear
  };
  Kind kind = Kind::kNone;
  int64_t terms = 1, columns = 1;
  int64_t kept = 2, group = 4;

  /// Whether sets of channels disappear from the file.
  bool takes_out() const { return kind == Kind::kChannel || kind == Kind::kHead; }
};

/// "none", "channel", "head", "block:1x16" (terms x columns), "2:4"; nothing for another word, or
/// for extents that are not from 1 to 4096 and groups that are not from 2 to 64 and larger than
/// what they keep.
std::optional<PruneStructure> ParsePruneStructure(std::string_view text);

}  // namespace hone::graph::onnx_prune
