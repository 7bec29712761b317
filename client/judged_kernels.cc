#include "client/judged_kernels.h"

#include "base/core/check.h"
#include "base/status.h"

namespace hone::client {

absl::StatusOr<compiler::FoundTrace> WithWinners::Find(const ir::Workload& workload,
                                                       const std::string& hash,
                                                       const ir::Target& target) {
  const auto own = traces_.find(hash);
  if (own == traces_.end()) return source_.Find(workload, hash, target);
  compiler::FoundTrace found{.trace = own->second, .rung = "exact"};
  HONE_ASSIGN_OR_RETURN(const compiler::FoundTrace logged, source_.Find(workload, hash, target));
  if (logged.trace == found.trace) found.threads = logged.threads;
  return found;
}

void JudgedKernels::Compared(std::map<std::string, std::string> changed,
                             std::set<std::string> losing) {
  changed_ = std::move(changed);
  suspects_ = std::move(losing);
}

void JudgedKernels::ComparedAgain(const std::set<std::string>& losing) {
  std::erase_if(suspects_, [&](const std::string& hash) { return losing.count(hash) == 0; });
}

std::set<std::string> JudgedKernels::Tuned() const {
  std::set<std::string> tuned;
  for (const auto& [hash, trace] : changed_) {
    if (put_back_.count(hash) == 0) tuned.insert(hash);
  }
  return tuned;
}

std::vector<int> JudgedKernels::Confirmed(const std::vector<std::string>& hashes,
                                          const std::vector<search::TaskVerdict>& verdicts) const {
  HONE_CHECK(hashes.size() == verdicts.size());
  std::vector<int> confirmed;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto judged = changed_.find(hashes[i]);
    if (judged != changed_.end() && verdicts[i].replaced && verdicts[i].trace == judged->second &&
        suspects_.count(hashes[i]) == 0) {
      confirmed.push_back(static_cast<int>(i));
    }
  }
  return confirmed;
}

}  // namespace hone::client
