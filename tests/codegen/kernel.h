#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "ir/artifact.h"
#include "ir/stmt.h"
#include "ir/target.h"

// Compiles loop nests made by hand, loads them into the test's process and runs them.
namespace hone::codegen {

/// "avx2" or "avx512" (with extensions), one thread.
ir::Target MakeTarget(const std::string& isa);

/// The targets whose code this machine can run.
std::vector<ir::Target> RunnableTargets();

/// A loop nest under construction.
struct NestBuilder {
  ir::LoopNest nest;

  /// A buffer passed in HoneCall.buffers, in order of calls.
  int Argument(const std::string& name, ir::DType dtype, int64_t elements, bool read_only);
  int Input(const std::string& name, ir::DType dtype, int64_t elements) {
    return Argument(name, dtype, elements, true);
  }
  int Output(const std::string& name, ir::DType dtype, int64_t elements) {
    return Argument(name, dtype, elements, false);
  }
  int Register(const std::string& name, ir::DType dtype, int64_t elements);
  int Scratch(const std::string& name, ir::DType dtype, int64_t elements);
  int Table(const std::string& name, ir::DType dtype, std::vector<double> values);
  int NewVar() { return nest.num_vars++; }
  void AddPhase(const std::string& symbol, ir::Stmt body, int64_t parallel_extent = 1);

 private:
  int arguments_ = 0;
  int64_t scratch_bytes_ = 0;
};

/// Shared object loaded from memory; unloaded with the object.
class Kernel {
 public:
  /// Fails the test (and leaves nothing to run) if compiling, linking or loading fails.
  Kernel(const ir::LoopNest& nest, const ir::Target& target);
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel();

  /// Runs one phase over [begin, end); the result is the phase's.
  int32_t Run(const std::string& symbol, const std::vector<void*>& buffers, int64_t begin = 0,
              int64_t end = 1, int64_t step = 0) const;
  ir::PhaseFunction Function(const std::string& symbol) const;

 private:
  void* library_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

/// Runs `check(kernel)` for AVX2 and AVX-512 as far as this machine can.
template <typename Check>
void ForEachTarget(const ir::LoopNest& nest, Check check) {
  for (const ir::Target& target : RunnableTargets()) {
    SCOPED_TRACE(target.text);
    const Kernel kernel(nest, target);
    if (testing::Test::HasFailure()) return;
    check(kernel);
  }
}

/// Matches of a regular expression.
size_t CountOf(const std::string& text, const std::string& pattern);

/// Memory of exactly `bytes`, ending at an unreadable page (and, with `at_start`, beginning after
/// one): an access outside crashes the test.
class GuardedMemory {
 public:
  enum class Side { kEnd, kStart };
  explicit GuardedMemory(int64_t bytes, Side side = Side::kEnd);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace hone::codegen
