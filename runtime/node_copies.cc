#include "runtime/node_copies.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "base/core/status_macros.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

/// Pages of this memory that nobody has touched come from this node while it has any. Only advice:
/// elsewhere they work, too.
void Prefer(int node, const Region& region) {
  constexpr size_t kBits = CHAR_BIT * sizeof(unsigned long);
  std::vector<unsigned long> mask(static_cast<size_t>(node) / kBits + 1, 0);
  mask.back() = 1UL << (static_cast<size_t>(node) % kBits);
  ::syscall(SYS_mbind, region.data(), region.bytes(), MPOL_PREFERRED, mask.data(),
            mask.size() * kBits + 1, 0);
}

}  // namespace

Result<std::shared_ptr<const NodeCopies>> NodeCopies::Make(std::span<const std::byte> constants,
                                                           const std::vector<int>& node_of_cpu) {
  auto made = std::make_shared<NodeCopies>();
  std::vector<int> nodes;
  for (const int node : node_of_cpu) {
    const auto known = std::find(nodes.begin(), nodes.end(), node);
    made->copy_of_cpu_.push_back(node < 0 ? 0 : static_cast<int>(known - nodes.begin()));
    if (node >= 0 && known == nodes.end()) nodes.push_back(node);
  }
  for (const int node : nodes) {
    HONE_ASSIGN_OR_RETURN(
        Region copy,
        Region::Allocate(constants.size(), Message("the constants near memory node ", node)));
    Prefer(node, copy);
    if (!constants.empty()) std::memcpy(copy.data(), constants.data(), constants.size());
    HONE_RETURN_IF_ERROR(copy.Protect());
    made->copies_.push_back(std::move(copy));
  }
  return std::shared_ptr<const NodeCopies>(std::move(made));
}

int NodeCopies::OfThisThread() const {
  const int cpu = ::sched_getcpu();
  return cpu < 0 || static_cast<size_t>(cpu) >= copy_of_cpu_.size()
             ? 0
             : copy_of_cpu_[static_cast<size_t>(cpu)];
}

Result<std::shared_ptr<const NodeCopies>> NodeCopyShelf::Get(std::span<const std::byte> constants,
                                                             const std::vector<int>& node_of_cpu) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (auto made = made_.lock()) return made;
  HONE_ASSIGN_OR_RETURN(auto made, NodeCopies::Make(constants, node_of_cpu));
  made_ = made;
  return made;
}

}  // namespace hone::runtime
