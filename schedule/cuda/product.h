#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "schedule/trace_writer.h"

// Sums of products, convolutions among them, as products of two matrices.
namespace hone::schedule {

/// The axes of such a sum: first[row, reduce…] * second[reduce…, column], each factor an expression
/// of any kind (a padded input, a window).
struct ProductAxes {
  int row = -1, column = -1;      ///< only the first, only the second factor moves along it
  int reduce = -1;                ///< slices are of its iterations
  std::vector<int> batch;         ///< other spatial axes
  std::vector<int> other_reduce;  ///< other reduce axes
  int first = -1, second = -1;    ///< a tensor that this factor alone reads
  int64_t rows = 1, columns = 1, depth = 1, batches = 1;  ///< extents
  int64_t outer_depth = 1;                                ///< iterations of the other reduce axes
  /// Whether neighbours along the reduce axis lie side by side in memory.
  bool first_by_depth = false, second_by_depth = false;
  /// So many neighbours along what lies side by side begin at a multiple of as many in memory.
  int64_t first_run = 1, second_run = 1;
  int64_t number_bytes = 4;  ///< 2: both factors are f16, or both bf16; 1: bytes, summed in i32
};

/// Nothing where the Stage is no such sum or too small for a tile.
std::optional<ProductAxes> FindProduct(const ir::Workload& workload, const ir::Stage& stage);

/// A sum that will be tiles.
struct Product {
  int stage = -1;
  ProductAxes axes;
  int epilogue = -1;  ///< the map that its tiles are stored through; -1: none
  /// So many parts of the reduce axis are products of their own, a batch; `stage` is theirs, and
  /// `sum` adds them up in order, through the epilogue that the whole would have.
  int64_t parts = 1;
  int sum = -1;
};

/// Into how many parts a product's reduce axis is cut where `wanted` are: as many, or the most
/// below that are whole slices of some length. One where the result is large enough to fill a card
/// with tiles.
int64_t PartsOfSum(const ProductAxes& axes, int64_t wanted);

/// Makes the sums among the live Stages ready for tiles: the rows of each are one axis (the pixels
/// of all images), so are reduce axes that are too short for slices, constant factors are laid out
/// by columns, and a map that alone reads the result is its epilogue. `taken`: Stages that are left
/// as they are. `parts`: for PartsOfSum.
std::vector<Product> PrepareProducts(TraceWriter& writer, const std::set<int>& taken,
                                     int64_t parts);

/// The map that alone reads the result of a reduction, point by point, and can be its epilogue; it
/// must be among `maps`. -1: none.
int EpilogueOf(const TraceWriter& writer, int stage, const std::vector<int>& maps);

/// Live Stages that are launches of their own: all but epilogues and constants' copies.
std::vector<int> LaunchedStages(const TraceWriter& writer);

}  // namespace hone::schedule
