#include "tests/schedule/run_code.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "codegen/codegen.h"
#include "ir/artifact.h"
#include "tests/codegen/kernel.h"

namespace hone::schedule {

namespace {

struct Library {
  void* handle = nullptr;
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
};

absl::Status Load(const ir::LoopNest& nest, const ir::Target& target, Library* library) {
  HONE_ASSIGN_OR_RETURN(const std::string object, codegen::CompileToObject({&nest}, target));
  const auto shared = codegen::LinkShared({object});
  if (!shared.ok()) return absl::InternalError("link: " + std::string(shared.status().message()));
  const int fd = memfd_create("kernel", MFD_CLOEXEC);
  const bool written =
      write(fd, shared->data(), shared->size()) == static_cast<ssize_t>(shared->size());
  if (written)
    library->handle = dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  return library->handle != nullptr ? absl::OkStatus()
                                    : absl::InternalError("the code cannot be loaded");
}

}  // namespace

absl::Status RunCode(const ir::LoopNest& nest, const ir::Target& target,
                     std::vector<std::vector<uint8_t>>* buffers) {
  Library library;
  HONE_RETURN_IF_ERROR(Load(nest, target, &library));
  std::vector<std::unique_ptr<codegen::GuardedMemory>> guarded;
  std::vector<void*> pointers;
  for (const auto& b : *buffers) {
    guarded.push_back(std::make_unique<codegen::GuardedMemory>(static_cast<int64_t>(b.size())));
    std::copy(b.begin(), b.end(), guarded.back()->as<uint8_t>());
    pointers.push_back(guarded.back()->as<uint8_t>());
  }
  for (const auto& step : nest.steps) {
    for (int64_t t = 0; t < step.repeats; ++t) {
      for (int p = step.first; p < step.first + step.count; ++p) {
        const ir::Phase& phase = nest.phases[static_cast<size_t>(p)];
        const auto function =
            reinterpret_cast<ir::PhaseFunction>(dlsym(library.handle, phase.symbol.c_str()));
        if (function == nullptr) return absl::InternalError("the code has no " + phase.symbol);
        const int64_t bytes = (phase.scratch_bytes + 64) / 64 * 64;
        const std::unique_ptr<void, decltype(&std::free)> scratch(
            std::aligned_alloc(64, static_cast<size_t>(bytes)), &std::free);
        std::fill_n(static_cast<uint8_t*>(scratch.get()), bytes, uint8_t{0xFF});
        const int64_t middle = phase.parallel_extent / 3;
        for (const auto& [begin, end] :
             {std::pair{middle, phase.parallel_extent}, std::pair{int64_t{0}, middle}}) {
          ir::HoneCall call{};
          call.buffers = pointers.data();
          call.scratch = scratch.get();
          call.begin = begin;
          call.end = end;
          call.step = t;
          const int32_t code = function(&call);
          if (code != 0)
            return absl::InternalError(fmt::format("code: {} returned {}", phase.symbol, code));
        }
      }
    }
  }
  for (size_t k = 0; k < buffers->size(); ++k) {
    const uint8_t* from = guarded[k]->as<uint8_t>();
    std::copy(from, from + (*buffers)[k].size(), (*buffers)[k].begin());
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule
