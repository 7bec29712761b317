#include "worker/workload_memo.h"

#include <utility>

#include "base/status.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace hone::worker {
namespace {

constexpr size_t kMost = 256;

}  // namespace

absl::StatusOr<std::shared_ptr<const ir::Workload>> WorkloadMemo::Of(const std::string& text) {
  const auto known = known_.find(text);
  if (known != known_.end()) return known->second;
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, ir::ParseWorkload(text));
  HONE_RETURN_IF_ERROR(ir::Verify(workload));
  if (known_.size() >= kMost) known_.clear();
  auto shared = std::make_shared<const ir::Workload>(std::move(workload));
  known_[text] = shared;
  return shared;
}

}  // namespace hone::worker
