#include "bench/kernel_run.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/core/flush_lines.h"
#include "base/core/random.h"
#include "base/status.h"
#include "codegen/codegen.h"
#include "ir/half.h"
#include "ir/kept_panels.h"

namespace hone::bench {

namespace {

double SecondsSince(int64_t start_ns, const MonotonicClock& clock) {
  return static_cast<double>(clock.NowNs() - start_ns) * 1e-9;
}

void Fill(void* data, ir::DType dtype, int64_t bytes, const ir::ValueRange& range, Random* random) {
  const int64_t n = bytes / ir::SizeOf(dtype);
  for (int64_t i = 0; i < n; ++i) {
    const double u = random->Uniform();
    const double v = range.low + u * (range.high - range.low);
    if (dtype == ir::DType::kF32)
      static_cast<float*>(data)[i] = static_cast<float>(v);
    else if (dtype == ir::DType::kF64)
      static_cast<double*>(data)[i] = v;
    else if (dtype == ir::DType::kI64)
      static_cast<int64_t*>(data)[i] = static_cast<int64_t>(std::floor(v));
    else if (dtype == ir::DType::kI32)
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(std::floor(v));
    else if (dtype == ir::DType::kBF16)
      static_cast<uint16_t*>(data)[i] = ir::BF16FromDouble(v);
    else if (ir::SizeOf(dtype) == 1)
      static_cast<int8_t*>(data)[i] = static_cast<int8_t>(std::floor(v));
  }
}

/// The descriptor stays open as long as the library: dlopen takes an equal name for the same
/// library.
absl::StatusOr<void*> Load(const std::string& object, int* kept) {
  int fd = *kept = memfd_create("kernel", MFD_CLOEXEC);
  if (fd < 0) return absl::InternalError("memfd_create failed");
  bool ok = write(fd, object.data(), object.size()) == static_cast<ssize_t>(object.size());
  void* handle =
      ok ? dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle) return absl::InternalError(dlerror());
  return handle;
}

}  // namespace

KernelRun::Buffer KernelRun::Allocate(int64_t bytes, ir::DType dtype) {
  Buffer b;
  b.bytes = bytes;
  b.dtype = dtype;
  const size_t align = bytes >= (2 << 20) ? size_t{2} << 20 : 4096;
  const size_t rounded = (static_cast<size_t>(bytes) + 64 + align - 1) / align * align;
  b.data = std::aligned_alloc(align, rounded);
  if (align > 4096) madvise(b.data, rounded, MADV_HUGEPAGE);
  std::memset(b.data, 0, rounded);
  owned_.push_back(b);
  return b;
}

KernelRun::~KernelRun() {
  if (handle_) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
  for (auto& b : owned_) std::free(b.data);
  std::free(scratch_);
}

absl::StatusOr<std::unique_ptr<KernelRun>> KernelRun::Make(const ir::Workload& workload,
                                                           const schedule::Trace& trace,
                                                           const ir::Target& target,
                                                           const MonotonicClock& clock,
                                                           uint64_t seed) {
  auto k = std::unique_ptr<KernelRun>(new KernelRun(clock));
  HONE_ASSIGN_OR_RETURN(k->lowered_, schedule::LowerTrace(workload, trace, target, {}, "kernel"));
  const int64_t start_ns = clock.NowNs();
  HONE_ASSIGN_OR_RETURN(std::string object, codegen::CompileToObject({&k->lowered_.nest}, target));
  HONE_ASSIGN_OR_RETURN(std::string shared, codegen::LinkShared({object}));
  k->compile_ms_ = SecondsSince(start_ns, clock) * 1e3;
  HONE_ASSIGN_OR_RETURN(k->assembly_, codegen::Assembly({&k->lowered_.nest}, target));
  HONE_ASSIGN_OR_RETURN(k->handle_, Load(shared, &k->fd_));
  int64_t scratch = 64;
  for (const auto& p : k->lowered_.artifact.phases) {
    auto f = reinterpret_cast<ir::PhaseFunction>(dlsym(k->handle_, p.symbol.c_str()));
    if (!f) return absl::InternalError(fmt::format("no symbol {}", p.symbol));
    k->functions_.push_back(f);
    scratch = std::max(scratch, p.scratch_bytes);
  }
  k->scratch_ = std::aligned_alloc(4096, static_cast<size_t>((scratch + 4095) / 4096 * 4096));
  Random random(seed);
  const ir::Artifact& a = k->lowered_.artifact;
  std::vector<Buffer> constants;
  const std::vector<int> inputs = workload.Inputs(), constant_ids = workload.Constants();
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    Buffer b = k->Allocate(a.inputs[i].bytes, a.inputs[i].dtype);
    Fill(b.data, b.dtype, b.bytes, workload.tensors[inputs[i]].range, &random);
    k->buffers_.push_back(b.data);
  }
  for (size_t i = 0; i < a.constants.size(); ++i) {
    const ir::Tensor& t = workload.tensors[constant_ids[i]];
    Buffer b = k->Allocate(t.Bytes(), t.dtype);
    Fill(b.data, b.dtype, b.bytes, t.range, &random);
    if (const ir::ZeroPattern zeros = ir::ZerosOf(t); zeros.columns > 0)
      ir::MakeZeros(zeros, seed,
                    {static_cast<float*>(b.data), static_cast<size_t>(t.NumElements())});
    constants.push_back(b);
    k->buffers_.push_back(b.data);
  }
  std::vector<Buffer> prologue;
  for (const auto& p : a.prologue) prologue.push_back(k->Allocate(p.bytes, p.dtype));
  if (!prologue.empty()) {
    HONE_ASSIGN_OR_RETURN(schedule::Trace t, schedule::DefaultTrace(k->lowered_.prologue, target));
    HONE_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> p,
                          Make(k->lowered_.prologue, t, target, clock, seed));
    for (size_t i = 0; i < a.prologue_inputs.size(); ++i) {
      const Buffer& from = constants[a.prologue_inputs[i]];
      std::memcpy(p->buffers_[i], from.data, static_cast<size_t>(from.bytes));
    }
    if (!p->Run()) return absl::InternalError("the prologue failed");
    for (size_t i = 0; i < prologue.size(); ++i) {
      std::memcpy(prologue[i].data, p->outputs_[a.prologue_outputs[i]].data,
                  static_cast<size_t>(prologue[i].bytes));
    }
  }
  for (const auto& b : prologue) k->buffers_.push_back(b.data);
  k->constants_ = std::move(constants);
  k->constants_.insert(k->constants_.end(), prologue.begin(), prologue.end());
  for (const auto& o : a.outputs) {
    k->outputs_.push_back(k->Allocate(o.bytes, o.dtype));
    k->buffers_.push_back(k->outputs_.back().data);
  }
  for (const auto& o : a.workspace) k->buffers_.push_back(k->Allocate(o.bytes, o.dtype).data);
  return k;
}

bool KernelRun::Run() {
  ir::HoneCall call{};
  call.buffers = buffers_.data();
  call.scratch = scratch_;
  for (const auto& step : lowered_.artifact.steps) {
    for (int64_t r = 0; r < step.repeats; ++r) {
      call.step = r;
      for (int p = step.first; p < step.first + step.count; ++p) {
        call.begin = 0;
        call.end = lowered_.artifact.phases[p].parallel_extent;
        if (functions_[p](&call) != 0) return false;
      }
    }
  }
  return true;
}

KernelRun::Times KernelRun::Time(double seconds, bool cold_constants) {
  std::vector<double> all;
  const int64_t begin_ns = clock_.NowNs();
  do {
    for (size_t i = 0; cold_constants && i < constants_.size(); ++i) {
      FlushLines({static_cast<const std::byte*>(constants_[i].data),
                  static_cast<size_t>(constants_[i].bytes)});
    }
    const int64_t start_ns = clock_.NowNs();
    Run();
    all.push_back(SecondsSince(start_ns, clock_));
  } while (SecondsSince(begin_ns, clock_) < seconds);
  std::ranges::sort(all);
  return {all.front(), all[all.size() / 2]};
}

double KernelRun::WorstAgainst(const KernelRun& other) const {
  double worst = 0;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (outputs_[o].dtype != ir::DType::kF32) continue;
    const float* a = static_cast<const float*>(outputs_[o].data);
    const float* b = static_cast<const float*>(other.outputs_[o].data);
    const int64_t n = outputs_[o].bytes / 4;
    double top = 0;
    for (int64_t i = 0; i < n; ++i) top = std::max(top, std::abs(static_cast<double>(b[i])));
    for (int64_t i = 0; i < n; ++i) {
      const double x = a[i], y = b[i];
      const double ratio = std::abs(x - y) / (1e-4 * top + 1e-3 * std::abs(y) + 1e-30);
      worst = std::isfinite(ratio) ? std::max(worst, ratio) : 1e30;
    }
  }
  return worst;
}

double FlopOf(const ir::Workload& workload) {
  double flop = 0;
  for (const auto& s : workload.stages) {
    if (s.combiner != ir::Combiner::kSum) continue;
    int loads = 0;
    ir::Visit(s.body[0], [&](const ir::ExprNode& e) { loads += e.kind == ir::ExprKind::kLoad; });
    if (loads < 2) continue;
    double points = 1;
    for (int a = 0; a < s.num_axes(); ++a) points *= static_cast<double>(s.Extent(a));
    flop += 2 * points;
  }
  return flop;
}

}  // namespace hone::bench
