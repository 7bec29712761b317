#include "tests/codegen/kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <regex>

#include "base/core/check.h"
#include "codegen/codegen.h"

namespace hone::codegen {

ir::Target MakeTarget(const std::string& isa) {
  ir::Target target;
  std::string error;
  HONE_CHECK(ir::ParseTarget("cpu:" + isa + ",threads=1", &target, &error)) << error;
  return target;
}

std::vector<ir::Target> RunnableTargets() {
  std::vector<ir::Target> targets;
  for (const char* isa : {"avx2", "avx512"}) {
    std::string why;
    const ir::Target target = MakeTarget(isa);
    if (ir::HostCanRun(target, &why)) targets.push_back(target);
  }
  return targets;
}

int NestBuilder::Argument(const std::string& name, ir::DType dtype, int64_t elements,
                          bool read_only) {
  ir::Buffer buffer;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffer.read_only = read_only;
  buffer.argument = arguments_++;
  nest.buffers.push_back(buffer);
  return static_cast<int>(nest.buffers.size()) - 1;
}

int NestBuilder::Register(const std::string& name, ir::DType dtype, int64_t elements) {
  ir::Buffer buffer;
  buffer.name = name;
  buffer.scope = ir::Scope::kRegister;
  buffer.dtype = dtype;
  buffer.elements = elements;
  nest.buffers.push_back(buffer);
  return static_cast<int>(nest.buffers.size()) - 1;
}

int NestBuilder::Scratch(const std::string& name, ir::DType dtype, int64_t elements) {
  const int id = Register(name, dtype, elements);
  nest.buffers.back().scope = ir::Scope::kScratch;
  nest.buffers.back().scratch_offset = scratch_bytes_;
  scratch_bytes_ += (elements * ir::SizeOf(dtype) + 63) / 64 * 64;
  return id;
}

int NestBuilder::Table(const std::string& name, ir::DType dtype, std::vector<double> values) {
  const int id = Register(name, dtype, static_cast<int64_t>(values.size()));
  nest.buffers.back().scope = ir::Scope::kTable;
  nest.buffers.back().read_only = true;
  nest.buffers.back().table = std::move(values);
  return id;
}

void NestBuilder::AddPhase(const std::string& symbol, ir::Stmt body, int64_t parallel_extent) {
  ir::Phase phase;
  phase.symbol = symbol;
  phase.body = std::move(body);
  phase.parallel_extent = parallel_extent;
  phase.scratch_bytes = scratch_bytes_;
  nest.phases.push_back(std::move(phase));
}

Kernel::Kernel(const ir::LoopNest& nest, const ir::Target& target) {
  for (const ir::Phase& phase : nest.phases) {
    scratch_bytes_ = std::max(scratch_bytes_, phase.scratch_bytes);
  }
  const auto object = CompileToObject({&nest}, target);
  if (!object.ok()) {
    ADD_FAILURE() << object.status();
    return;
  }
  const auto shared = LinkShared({*object});
  if (!shared.ok()) {
    ADD_FAILURE() << shared.status();
    return;
  }
  const int fd = memfd_create("kernel", MFD_CLOEXEC);
  HONE_CHECK(write(fd, shared->data(), shared->size()) == static_cast<ssize_t>(shared->size()));
  library_ = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) ADD_FAILURE() << dlerror();
  close(fd);
}

Kernel::~Kernel() {
  if (library_ != nullptr) dlclose(library_);
}

ir::PhaseFunction Kernel::Function(const std::string& symbol) const {
  if (library_ == nullptr) return nullptr;
  return reinterpret_cast<ir::PhaseFunction>(dlsym(library_, symbol.c_str()));
}

int32_t Kernel::Run(const std::string& symbol, const std::vector<void*>& buffers, int64_t begin,
                    int64_t end, int64_t step) const {
  const ir::PhaseFunction function = Function(symbol);
  if (function == nullptr) {
    ADD_FAILURE() << "no function " << symbol;
    return -1;
  }
  const std::unique_ptr<void, decltype(&std::free)> scratch(
      std::aligned_alloc(64, static_cast<size_t>(scratch_bytes_) + 64), &std::free);
  ir::HoneCall call{};
  call.buffers = buffers.data();
  call.scratch = scratch.get();
  call.begin = begin;
  call.end = end;
  call.step = step;
  return function(&call);
}

size_t CountOf(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

GuardedMemory::GuardedMemory(int64_t bytes, Side side) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t inside = (static_cast<size_t>(bytes) + page - 1) / page * page;
  mapped_bytes_ = inside + 2 * page;
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HONE_CHECK(mapping_ != MAP_FAILED);
  char* first = static_cast<char*>(mapping_) + page;
  HONE_CHECK(mprotect(first, inside, PROT_READ | PROT_WRITE) == 0);
  data_ = side == Side::kStart ? first : first + inside - static_cast<size_t>(bytes);
}

GuardedMemory::~GuardedMemory() { munmap(mapping_, mapped_bytes_); }

}  // namespace hone::codegen
