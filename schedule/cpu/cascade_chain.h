#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/target.h"
#include "schedule/cpu/rules.h"
#include "schedule/sketch.h"
#include "schedule/trace_writer.h"

// Chains of layers that can be computed in bands of the last one's rows (cascade.cc).
namespace hone::schedule {

/// One layer: the reduction and the map that stores it (or the reduction itself).
struct CascadeLayer {
  int owner = -1, anchor = -1;
  TileForm tile;
  bool contraction = false;
};

struct CascadeChain {
  std::vector<CascadeLayer> layers;  ///< first to last
  std::vector<int> before;           ///< maps of inputs that stay at root
  std::vector<int> outside;          ///< the last owner's axes around the bands, in order
  int band_axis = -1;                ///< of the last owner
  int64_t band_extent = 1;
  const CascadeLayer& last() const { return layers.back(); }
};

/// The chain that the whole Workload is; `writer` is fresh and gets the inlining. Nothing where the
/// Workload is something else, or a layer cannot be computed for a band alone.
std::optional<CascadeChain> FindCascade(TraceWriter& writer, const ir::Target& target);

/// What a band of so many rows needs.
struct BandCost {
  int64_t rows = 0, block = 0;
  bool whole = false;          ///< some layer is computed whole for every band
  int64_t scratch_bytes = 0;   ///< of a thread
  int64_t constant_bytes = 0;  ///< weights that each band reads
  int64_t bands = 1;
  double multiply_adds = 0;  ///< of all bands
  double plain = 0;          ///< of the layers without bands
};

/// `writer` is as FindCascade left it; `rows` divide the chain's, `block` the last layer's
/// reduction (0: it is whole).
BandCost CostOfBands(const TraceWriter& writer, const CascadeChain& chain, int64_t rows,
                     int64_t block);
/// Lower is better: what is computed, scratch and weights that fall out of the second cache, uneven
/// shares.
double ScoreOfBands(const BandCost& cost, const ir::Target& target);

/// The numbers of rows that bands can have.
std::vector<int64_t> RowsOfBands(const CascadeChain& chain);
/// Parts of the last layer's reduction that whole vectors of the layer before fill; none where that
/// layer is not a plain product, stored by a map.
std::vector<int64_t> BlocksOfCascade(const TraceWriter& writer, const CascadeChain& chain);

/// Multiply-adds of the nominal values of a Sketch of CascadeSketches() over those without bands.
double NominalWorkOfBands(const Sketch& sketch);

}  // namespace hone::schedule
