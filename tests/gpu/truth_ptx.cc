#include "tests/gpu/truth_ptx.h"

#include "fmt/core.h"

namespace hone::gpu {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_90a\n.address_size 64\n";

/// Words t, t + 128, … of shared memory from %d2 on, in either direction; %r4: how many bytes.
std::string Copy(bool to_shared) {
  std::string text =
      "shl.b32 %r5, %r1, 2;\nbra test;\nnext:\nadd.u32 %r6, %r2, %r5;\n"
      "cvt.u64.u32 %d3, %r5;\nadd.u64 %d4, %d2, %d3;\n";
  text += to_shared ? "ld.global.u32 %r7, [%d4];\nst.shared.u32 [%r6], %r7;\n"
                    : "ld.shared.u32 %r7, [%r6];\nst.global.u32 [%d4], %r7;\n";
  return text + fmt::format(
                    "add.u32 %r5, %r5, {};\ntest:\nsetp.lt.u32 %p1, %r5, %r4;\n"
                    "@%p1 bra next;\n",
                    4 * kTruthThreads);
}

std::string Registers() {
  return fmt::format(
      ".reg .pred %p<4>;\n.reg .b32 %r<12>;\n.reg .b64 %d<12>;\n.reg .f32 %f<4>;\n"
      ".shared .align 1024 .b8 tile[{}];\n.shared .align 8 .b64 barrier;\n"
      "mov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\n",
      kImageBytes);
}

std::string WgmmaKernel(const std::string& name, int transposed_a) {
  return fmt::format(
             ".visible .entry {}(.param .u64 image, .param .u64 a, .param .u64 b, .param .u64 "
             "out)\n"
             "{{\n",
             name) +
         Registers() + fmt::format("ld.param.u64 %d2, [image];\nmov.u32 %r4, {};\n", kImageBytes) +
         Copy(true) +
         "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
         "ld.param.u64 %d5, [a];\nld.param.u64 %d6, [b];\nshr.u32 %r8, %r2, 4;\n"
         "cvt.u64.u32 %d7, %r8;\nadd.u64 %d5, %d5, %d7;\nadd.u64 %d6, %d6, %d7;\n"
         "setp.ne.u32 %p2, %r4, %r4;\nmov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\n"
         "mov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\nwgmma.fence.sync.aligned;\n"
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d5, %d6, "
         "%p2, 1, 1, " +
         fmt::format("{}, 0;\n", transposed_a) +
         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
         "ld.param.u64 %d8, [out];\nmul.wide.u32 %d9, %r1, 16;\nadd.u64 %d8, %d8, %d9;\n"
         "st.global.v4.f32 [%d8], {%f0, %f1, %f2, %f3};\nret;\n}\n";
}

}  // namespace

std::string TmaPtx() {
  std::string text = kHead;
  text +=
      ".visible .entry tma_tile(.param .align 64 .b8 map[128], .param .u64 out, "
      ".param .u32 bytes)\n{\n";
  text += Registers();
  text +=
      "mov.u32 %r3, barrier;\nld.param.u32 %r4, [bytes];\nsetp.ne.u32 %p1, %r1, 0;\n"
      "@%p1 bra ready;\nmbarrier.init.shared::cta.b64 [%r3], 1;\n"
      "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], %r4;\n"
      "mov.b64 %d1, map;\ncvta.param.u64 %d1, %d1;\nmov.u32 %r9, 0;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%r2], [%d1, {%r9, %r9}], [%r3];\nready:\nbar.sync 0;\nspin:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra spin;\n"
      "ld.param.u64 %d2, [out];\n";
  return text + Copy(false) + "ret;\n}\n";
}

std::string WgmmaPtx() { return kHead + WgmmaKernel("wgmma_k", 0) + WgmmaKernel("wgmma_mn", 1); }

}  // namespace hone::gpu
