#include "measure/cuda/cuda_probe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "base/status.h"
#include "ir/cuda/cuda_target.h"
#include "runtime/cuda/cuda_memory.h"
#include "runtime/cuda/driver.h"

namespace hone::measure {
namespace {

using runtime::CudaMemory;
using runtime::CuHandle;
using runtime::CuPointer;

constexpr int kThreads = 256, kBlocksOfAMultiprocessor = 8;
constexpr int kChains = 16, kStepsOfAChain = 4;
constexpr int kFmasOfARound = kChains * kStepsOfAChain;
constexpr int kCopies = 4;  ///< of 16 bytes, in flight together
/// A piece takes at least so long, or does the most: launching costs microseconds.
constexpr double kLeastMilliseconds = 0.2;
constexpr uint64_t kMostRounds = 1 << 12;
/// A series ends when its time is over; the clock of an idle card rises first.
constexpr int64_t kSeriesNs = 40'000'000;
constexpr int kMostPieces = 64, kNoisePieces = 32;

// CUdevice_attribute, cuda.h.
constexpr int kMultiprocessors = 16, kL2Bytes = 38;

std::string Kernel(const std::string& name, const std::string& body) {
  std::string text = fmt::format(".visible .entry {}(", name);
  for (int i = 0; i < 4; ++i) text += fmt::format("{}.param .u64 p{}", i == 0 ? "" : ", ", i);
  text +=
      ")\n{\n.reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .f32 %f<24>;\n.reg .b64 %d<32>;\n"
      "ld.param.u64 %d1, [p0];\nld.param.u64 %d2, [p1];\nld.param.u64 %d3, [p2];\n"
      "ld.param.u64 %d4, [p3];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n"
      "mov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n";
  return text + body + "ret;\n}\n";
}

/// Thread t of T copies the chunks t, t + T, t + 2T, ….
std::string CopyKernel() {
  std::string body =
      "mov.u32 %r5, %nctaid.x;\nmul.wide.u32 %d5, %r5, %r2;\nshl.b64 %d5, %d5, 4;\n"
      "mul.wide.u32 %d6, %r4, 16;\nagain:\nmov.u64 %d7, %d3;\nadd.s64 %d8, %d1, %d6;\n"
      "add.s64 %d9, %d2, %d6;\nround:\n";
  for (int i = 0; i < kCopies; ++i) {
    // Past the first level, whose rate is not asked for.
    body += fmt::format("ld.global.cg.v4.f32 {{%f{}, %f{}, %f{}, %f{}}}, [%d9];\n", 4 * i,
                        4 * i + 1, 4 * i + 2, 4 * i + 3);
    body += "add.s64 %d9, %d9, %d5;\n";
  }
  for (int i = 0; i < kCopies; ++i) {
    body += fmt::format("st.global.v4.f32 [%d8], {{%f{}, %f{}, %f{}, %f{}}};\n", 4 * i, 4 * i + 1,
                        4 * i + 2, 4 * i + 3);
    body += "add.s64 %d8, %d8, %d5;\n";
  }
  return Kernel("probe_copy",
                body +
                    "sub.s64 %d7, %d7, 1;\nsetp.ne.s64 %p1, %d7, 0;\n@%p1 bra round;\n"
                    "sub.s64 %d4, %d4, 1;\nsetp.ne.s64 %p2, %d4, 0;\n@%p2 bra again;\n");
}

/// The sum of the chains is stored, so that none of them is dropped.
std::string FmaKernel() {
  std::string body = "cvt.rn.f32.u32 %f20, %r4;\nmov.f32 %f21, 0f3F7FBE77;\n";  // 0.999
  for (int i = 0; i < kChains; ++i)
    body += fmt::format("add.rn.f32 %f{}, %f20, 0f{:08X};\n", i, 0x3F800000 + (i << 16));
  body += "round:\n";
  for (int step = 0; step < kStepsOfAChain; ++step) {
    for (int i = 0; i < kChains; ++i)
      body += fmt::format("fma.rn.f32 %f{0}, %f{0}, %f21, %f20;\n", i);
  }
  body += "sub.s64 %d2, %d2, 1;\nsetp.ne.s64 %p1, %d2, 0;\n@%p1 bra round;\n";
  for (int i = 1; i < kChains; ++i) body += fmt::format("add.rn.f32 %f0, %f0, %f{};\n", i);
  return Kernel(
      "probe_fma",
      body + "mul.wide.u32 %d5, %r4, 4;\nadd.s64 %d6, %d1, %d5;\nst.global.f32 [%d6], %f0;\n");
}

/// The card's context, kernels and stream, given back at the end. Not thread-safe.
class Card {
 public:
  static absl::StatusOr<std::unique_ptr<Card>> Open(const MonotonicClock& clock) {
    auto card = std::unique_ptr<Card>(new Card(clock));
    HONE_RETURN_IF_ERROR(ToAbsl(card->Take()));
    return card;
  }

  ~Card() {
    if (context_ == nullptr) return;
    for (CuHandle event : {begin_, end_}) {
      if (event != nullptr) driver_->cuEventDestroy_v2(event);
    }
    if (stream_ != nullptr) driver_->cuStreamDestroy_v2(stream_);
    if (module_ != nullptr) driver_->cuModuleUnload(module_);
    driver_->cuDevicePrimaryCtxRelease_v2(device_);
  }

  int64_t l2_bytes() const { return l2_bytes_; }

  absl::StatusOr<double> FlopPerSecond() {
    HONE_ASSIGN_OR_RETURN(const std::vector<double> ms, Fmas(kMostPieces));
    return Flop() / *std::ranges::min_element(ms) * 1e3;
  }

  absl::StatusOr<double> Noise() {
    HONE_ASSIGN_OR_RETURN(std::vector<double> ms, Fmas(kNoisePieces));
    std::ranges::sort(ms);
    const size_t n = ms.size();
    return 0.5 * (ms[n - 1 - n / 4] - ms[n / 4]) / ms[n / 2];
  }

  /// Bytes read and written a second by a copy of at least `bytes` to another place.
  absl::StatusOr<double> CopyBytesPerSecond(int64_t bytes) {
    const auto stride = static_cast<uint64_t>(Threads()) * 16 * kCopies;
    const uint64_t rounds = (static_cast<uint64_t>(bytes) + stride - 1) / stride;
    const size_t size = rounds * stride;
    auto from = CudaMemory::Allocate(*driver_, size, "a bandwidth probe");
    if (!from.ok()) return ToAbsl(from.status());
    auto to = CudaMemory::Allocate(*driver_, size, "a bandwidth probe");
    if (!to.ok()) return ToAbsl(to.status());
    HONE_RETURN_IF_ERROR(Check(driver_->cuMemsetD8Async(from->at(), 1, size, stream_)));
    uint64_t repeats = 1;
    double best_ms = 0;
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const std::vector<double> ms,
                            Series(copy_, {to->at(), from->at(), rounds, repeats}, kMostPieces));
      best_ms = *std::ranges::min_element(ms);
      if (best_ms >= kLeastMilliseconds || repeats >= kMostRounds) break;
      repeats *= 8;
    }
    return 2.0 * static_cast<double>(size * repeats) / best_ms * 1e3;
  }

 private:
  explicit Card(const MonotonicClock& clock) : clock_(clock) {}

  absl::Status Check(runtime::CuResult code) const {
    return ToAbsl(driver_->Check(code, "a probe"));
  }
  int Threads() const { return multiprocessors_ * kBlocksOfAMultiprocessor * kThreads; }
  double Flop() const { return 2.0 * kFmasOfARound * static_cast<double>(fma_rounds_) * Threads(); }

  Status Take() {
    HONE_ASSIGN_OR_RETURN(driver_, runtime::CudaDriver::Find());
    const runtime::CudaDriver& d = *driver_;
    const auto check = [&](runtime::CuResult code) { return d.Check(code, "a probe of the GPU"); };
    HONE_RETURN_IF_ERROR(check(d.cuDeviceGet(&device_, 0)));
    int l2 = 0;
    HONE_RETURN_IF_ERROR(
        check(d.cuDeviceGetAttribute(&multiprocessors_, kMultiprocessors, device_)));
    HONE_RETURN_IF_ERROR(check(d.cuDeviceGetAttribute(&l2, kL2Bytes, device_)));
    l2_bytes_ = l2;
    HONE_RETURN_IF_ERROR(check(d.cuDevicePrimaryCtxRetain(&context_, device_)));
    HONE_RETURN_IF_ERROR(check(d.cuCtxSetCurrent(context_)));
    const std::string ptx = CudaProbePtx();
    HONE_RETURN_IF_ERROR(check(d.cuModuleLoadDataEx(&module_, ptx.c_str(), 0, nullptr, nullptr)));
    HONE_RETURN_IF_ERROR(check(d.cuModuleGetFunction(&copy_, module_, "probe_copy")));
    HONE_RETURN_IF_ERROR(check(d.cuModuleGetFunction(&fma_, module_, "probe_fma")));
    HONE_RETURN_IF_ERROR(check(d.cuStreamCreate(&stream_, 1)));
    HONE_RETURN_IF_ERROR(check(d.cuEventCreate(&begin_, 0)));
    return check(d.cuEventCreate(&end_, 0));
  }

  /// Pieces of as many rounds as make one long enough.
  absl::StatusOr<std::vector<double>> Fmas(int most) {
    auto to = CudaMemory::Allocate(*driver_, static_cast<size_t>(Threads()) * 4, "a probe");
    if (!to.ok()) return ToAbsl(to.status());
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const std::vector<double> ms,
                            Series(fma_, {to->at(), fma_rounds_, 0, 0}, most));
      if (*std::ranges::min_element(ms) >= kLeastMilliseconds || fma_rounds_ >= kMostRounds)
        return ms;
      fma_rounds_ *= 8;
    }
  }

  /// Milliseconds of each of up to `most` launches after a first one, which is not counted.
  absl::StatusOr<std::vector<double>> Series(CuHandle kernel, std::vector<uint64_t> values,
                                             int most) {
    std::vector<void*> parameters;
    for (uint64_t& value : values) parameters.push_back(&value);
    const auto blocks = static_cast<unsigned>(multiprocessors_ * kBlocksOfAMultiprocessor);
    const int64_t start_ns = clock_.NowNs();
    std::vector<double> ms;
    for (int i = 0; i <= most && (i < 4 || clock_.NowNs() - start_ns < kSeriesNs); ++i) {
      HONE_RETURN_IF_ERROR(Check(driver_->cuEventRecord(begin_, stream_)));
      HONE_RETURN_IF_ERROR(Check(driver_->cuLaunchKernel(kernel, blocks, 1, 1, kThreads, 1, 1, 0,
                                                         stream_, parameters.data(), nullptr)));
      HONE_RETURN_IF_ERROR(Check(driver_->cuEventRecord(end_, stream_)));
      HONE_RETURN_IF_ERROR(Check(driver_->cuStreamSynchronize(stream_)));
      float took = 0;
      HONE_RETURN_IF_ERROR(Check(driver_->cuEventElapsedTime(&took, begin_, end_)));
      if (i > 0) ms.push_back(std::max(1e-6, static_cast<double>(took)));
    }
    return ms;
  }

  const MonotonicClock& clock_;
  const runtime::CudaDriver* driver_ = nullptr;
  int device_ = 0, multiprocessors_ = 1;
  int64_t l2_bytes_ = 0;
  CuHandle context_ = nullptr, module_ = nullptr, stream_ = nullptr;
  CuHandle copy_ = nullptr, fma_ = nullptr, begin_ = nullptr, end_ = nullptr;
  uint64_t fma_rounds_ = 1;
};

constexpr int kBeyondL2 = 4;  ///< times what it holds

class CudaProbe final : public DeviceProbe {
 public:
  absl::StatusOr<DeviceRates> Rates(const ir::Target&, const MonotonicClock& clock) const override {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Card> card, Card::Open(clock));
    DeviceRates rates;
    HONE_ASSIGN_OR_RETURN(rates.operations_per_second[0], card->FlopPerSecond());
    // Both places of a copy together take half of it.
    HONE_ASSIGN_OR_RETURN(const double l2, card->CopyBytesPerSecond(card->l2_bytes() / 4));
    rates.caches = {{card->l2_bytes(), l2}};
    HONE_ASSIGN_OR_RETURN(rates.memory_bytes_per_second,
                          card->CopyBytesPerSecond(kBeyondL2 * card->l2_bytes()));
    return rates;
  }

  absl::StatusOr<double> Noise(const ir::Target&, const MonotonicClock& clock) const override {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Card> card, Card::Open(clock));
    return card->Noise();
  }

  std::optional<DeviceRates> Nominal(const ir::Target& target) const override {
    const auto& card = target.As<ir::CudaTarget>();
    DeviceRates rates;
    rates.operations_per_second = {card.flop_per_second, card.byte_op_per_second,
                                   card.tensor_flop_per_second};
    rates.memory_bytes_per_second = card.memory_bytes_per_second;
    return rates;
  }

  int64_t CacheBytes(const ir::Target& target) const override {
    return target.As<ir::CudaTarget>().l2_bytes;
  }
};

}  // namespace

std::string CudaProbePtx() {
  return ".version 7.0\n.target sm_80\n.address_size 64\n" + CopyKernel() + FmaKernel();
}

const DeviceProbe& CudaDeviceProbe() {
  static const CudaProbe probe;
  return probe;
}

}  // namespace hone::measure
