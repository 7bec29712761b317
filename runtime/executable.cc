#include "runtime/executable.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/message.h"

namespace hone::runtime {

Result<std::shared_ptr<const Executable>> Executable::Open(const std::string& path,
                                                           const Options& options) {
  HONE_ASSIGN_OR_RETURN(Region file, Region::MapFile(path));
  return Load(std::move(file), path, options);
}

Result<std::shared_ptr<const Executable>> Executable::OpenMemory(std::span<const std::byte> bytes,
                                                                 const Options& options) {
  if (options.in_place) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % 64 != 0) {
      return Invalid("a package used in place must begin at a multiple of 64 bytes");
    }
    return Load(Region::Borrow(bytes), "(memory)", options);
  }
  HONE_ASSIGN_OR_RETURN(Region copy, Region::Allocate(bytes.size(), "a package in memory"));
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  HONE_RETURN_IF_ERROR(copy.Protect());
  return Load(std::move(copy), "(memory)", options);
}

Result<std::shared_ptr<const Executable>> Executable::Load(Region file, const std::string& name,
                                                           const Options& options) {
  std::shared_ptr<Executable> executable(new Executable);
  executable->file_ = std::move(file);
  const Status status = executable->Prepare(name, options);
  if (!status.ok()) return Status(status.code(), name + ": " + status.message());
  return std::shared_ptr<const Executable>(std::move(executable));
}

namespace {

/// The part of the constants that the plan reads, and the plan for that part alone: the others are
/// those of other variants.
void KeepOwnConstants(Package* package) {
  constexpr int64_t kPageBytes = 4096;
  int64_t begin = INT64_MAX, end = 0;
  for (const ir::PlanBuffer& buffer : package->plan.buffers) {
    if (buffer.kind != ir::PlanBufferKind::kConstant) continue;
    begin = std::min(begin, buffer.offset / kPageBytes * kPageBytes);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  begin = std::min(begin, end);
  package->constants =
      package->constants.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  for (ir::PlanBuffer& buffer : package->plan.buffers) {
    if (buffer.kind == ir::PlanBufferKind::kConstant) buffer.offset -= begin;
  }
}

}  // namespace

Result<size_t> ChooseVariant(const Variants& variants, int cores, HostCanRun host_can_run) {
  size_t best = variants.size();
  std::pair<bool, double> most;
  std::string reasons;
  for (size_t i = 0; i < variants.size(); ++i) {
    const ir::Target& target = variants[i].target;
    std::string why;
    if (!host_can_run(target, &why)) {
      reasons += (reasons.empty() ? "" : "; ") + why;
      continue;
    }
    const std::pair does(target.threads <= cores, ir::MostFlopPerNs(target));
    if (best < variants.size() && does <= most) continue;
    best = i;
    most = does;
  }
  if (best == variants.size()) return Status(StatusCode::kFailedPrecondition, reasons);
  return best;
}

Status Executable::Prepare(const std::string& name, const Options& options) {
  HONE_ASSIGN_OR_RETURN(Variants variants, ParsePackages(file_.span()));
  for (const Package& each : variants) targets_.push_back(each.info.target);
  HONE_ASSIGN_OR_RETURN(const size_t chosen,
                        ChooseVariant(variants, options.cores, options.host_can_run));
  package_ = std::move(variants[chosen]);
  if (variants.size() > 1) KeepOwnConstants(&package_);
  const ir::Target& target = package_.target;
  if (options.copy_constants && !package_.constants.empty()) {
    HONE_ASSIGN_OR_RETURN(constants_copy_,
                          Region::Allocate(package_.constants.size(), "the constants of " + name));
    std::memcpy(constants_copy_.data(), package_.constants.data(), package_.constants.size());
    HONE_RETURN_IF_ERROR(constants_copy_.Protect());
    package_.constants = constants_copy_.span();
  }
  for (const ir::PlanStep& step : package_.plan.steps) {
    if (step.kind != ir::PlanStepKind::kKernel) continue;
    for (const ir::ArtifactPhase& phase :
         package_.plan.kernels[static_cast<size_t>(step.kernel)].phases) {
      if (phase.parallel_extent < 2) continue;
      threads_ = std::max({threads_, std::min(phase.threads, step.threads)});
    }
  }
  threads_ = std::min(threads_, target.threads);
  const Device* const device = DevicesOfKinds().Find(target.kind);
  if (device == nullptr) {
    return {StatusCode::kFailedPrecondition,
            Message("this program cannot run code for ", target.text)};
  }
  HONE_ASSIGN_OR_RETURN(loaded_, device->Load({.plan = &package_.plan,
                                               .code = package_.code,
                                               .constants = package_.constants,
                                               .target = &target,
                                               .threads = threads_}));
  return {};
}

}  // namespace hone::runtime
