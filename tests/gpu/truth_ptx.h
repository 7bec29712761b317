#pragma once

#include <string>

// Kernels that let the hardware show how it lays tiles out. PTX 8.0 for sm_90a.
namespace hone::gpu {

/// Bytes of shared memory that the kernels use, and give or take as one image.
inline constexpr int kImageBytes = 16'384;
inline constexpr int kTruthThreads = 128;

/// tma_tile(CUtensorMap map, u64 out, u32 bytes): one box from (0, 0) into shared memory; out gets
/// its first `bytes`, which are those of the box.
std::string TmaPtx();

/// wgmma_k(u64 image, u64 a, u64 b, u64 out) and wgmma_mn: shared memory becomes `image`; a and b
/// are descriptors whose address counts from its beginning; out gets the 64 × 8 product as
/// out[thread][4]. In wgmma_mn A lies along M.
std::string WgmmaPtx();

}  // namespace hone::gpu
