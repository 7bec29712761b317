#include "server/model_judgements.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/status.h"
#include "ir/kind_facts.h"
#include "proto/field_check.h"
#include "search/median_interval.h"
#include "search/paired_ratio.h"

namespace hone::server {
namespace {

constexpr int64_t kKeptNs = 600'000'000'000;
/// All callers together: three packages of the largest size, or hundreds of usual ones.
constexpr int64_t kKeptBytes = 3 * proto::kMaxPackageBytes;
static_assert(kKeptBytes <= proto::kArtifactCacheBytes,
              "those of one comparison are there at once");
constexpr int kRounds = 200;
constexpr uint64_t kSeed = 1;

double MedianOf(const std::vector<int64_t>& samples_ns) {
  return search::IntervalOf(samples_ns).median;
}

}  // namespace

std::vector<std::string> ModelJudgements::Question::Packages() const {
  std::vector<std::string> packages = {default_package, tuned_package};
  if (!mended_package.empty()) packages.push_back(mended_package);
  return packages;
}

int64_t ModelJudgements::FreshAttempt() {
  constexpr uint64_t kNumbers = uint64_t{1} << 59, kRoom = 16;
  return kFirstModel + static_cast<int64_t>(RandomId().low % kNumbers / kRoom * kRoom);
}

void ModelJudgements::Forget(int64_t now_ns) {
  const auto old = [&](int64_t used_ns) { return now_ns - used_ns > kKeptNs; };
  std::erase_if(packages_, [&](const auto& item) { return old(item.second.used_ns); });
  std::erase_if(judgements_, [&](const auto& item) {
    if (!old(item.second.asked_ns)) return false;
    if (!item.second.answer.done) {
      loop_.Post([session = item.first](Farm& farm, int64_t at_ns) {
        farm.EndSession(session, "nobody asks for its model any more", at_ns);
      });
    }
    return true;
  });
}

absl::Status ModelJudgements::Put(const Part& part) {
  const int64_t now_ns = loop_.clock().NowNs();
  const std::lock_guard lock(mutex_);
  Forget(now_ns);
  auto found = packages_.find(part.sha256);
  if (found == packages_.end()) {
    int64_t kept = part.total_bytes;
    for (const auto& [sha256, package] : packages_) kept += package.total_bytes;
    if (kept > kKeptBytes) {
      return absl::ResourceExhaustedError(
          "too many packages are kept for comparisons of models just now; try later");
    }
    found = packages_.emplace(part.sha256, Package{.total_bytes = part.total_bytes}).first;
  }
  Package& package = found->second;
  package.used_ns = now_ns;
  if (package.whole != nullptr) return absl::OkStatus();
  const auto at = static_cast<size_t>(part.offset);
  if (at < package.data.size() && package.data.compare(at, part.data.size(), part.data) == 0) {
    return absl::OkStatus();
  }
  if (at != package.data.size() || part.total_bytes != package.total_bytes) {
    packages_.erase(found);
    return absl::FailedPreconditionError(
        "a part of a package that does not follow the one before; send it from its begin");
  }
  package.data += part.data;
  if (static_cast<int64_t>(package.data.size()) < package.total_bytes) return absl::OkStatus();
  if (Sha256Hex(package.data) != part.sha256) {
    packages_.erase(found);
    return absl::InvalidArgumentError("sha256: the package is not what its hash says");
  }
  package.whole = std::make_shared<const std::string>(std::exchange(package.data, {}));
  return absl::OkStatus();
}

absl::StatusOr<ModelJudgements::Judgement> ModelJudgements::Prepare(const Question& question) {
  HONE_ASSIGN_OR_RETURN(const SessionBook::Asked asked,
                        book_.FindAsked(question.session, question.owner));
  if (asked.row.state != db::SessionState::kFinished) {
    return absl::FailedPreconditionError(
        fmt::format("session {} has not finished", question.session.ToHex()));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<search::TuningTask> tasks, TasksOf(asked.spec));
  std::set<Hash128> known;
  std::vector<std::pair<Hash128, int64_t>> counts;
  for (const search::TuningTask& task : tasks) {
    known.insert(task.hash);
    counts.emplace_back(task.hash, task.count);
  }
  for (const Hash128& hash : question.tuned) {
    if (known.contains(hash)) continue;
    return absl::InvalidArgumentError(
        fmt::format("tuned: the session has no workload {}", hash.ToHex()));
  }
  for (const Hash128& hash : question.put_back) {
    if (std::ranges::find(question.tuned, hash) != question.tuned.end()) continue;
    return absl::InvalidArgumentError(
        fmt::format("put_back: {} is not one of the tuned", hash.ToHex()));
  }
  Judgement judgement{.owner = asked.row.owner, .question = question};
  judgement.samples_ns.resize(question.Packages().size());
  judgement.job = {.kind = proto::JobKind::kModel,
                   .workload = question.default_package,
                   .target = asked.spec.target,
                   .traces = question.Packages(),
                   .accuracy = asked.spec.accuracy,
                   .seed = kSeed,
                   .rounds = kRounds,
                   .most_ns = static_cast<int64_t>(question.seconds * 1e9)};
  judgement.verdict.model = db::ModelHash(std::move(counts));
  judgement.verdict.target = asked.spec.target;
  judgement.verdict.device_class = asked.row.device_class;
  judgement.verdict.accuracy = asked.spec.accuracy;
  judgement.verdict.measurement_policy = ir::VersionsOf(asked.spec.target).measurement_policy;
  judgement.verdict.subject = question.subject;
  judgement.verdict.tuned = question.tuned;
  judgement.verdict.session = question.session;
  judgement.answer.reason = fmt::format("waits for a device of class {}", asked.row.device_class);
  judgement.terms = {.id = question.session,
                     .project = asked.row.project,
                     .priority = asked.spec.priority,
                     .target = asked.spec.target,
                     .device_class = asked.row.device_class};
  return judgement;
}

absl::StatusOr<ModelJudgements::Answer> ModelJudgements::Ask(const Question& question) {
  const int64_t now_ns = loop_.clock().NowNs();
  std::unique_lock lock(mutex_);
  Forget(now_ns);
  HONE_ASSIGN_OR_RETURN(const std::optional<Answer> known, Known(question, now_ns));
  if (known) return *known;
  // It reads the log, and the loop may want the lock meanwhile.
  lock.unlock();
  HONE_ASSIGN_OR_RETURN(Judgement judgement, Prepare(question));
  judgement.asked_ns = now_ns;
  HONE_ASSIGN_OR_RETURN(const std::optional<Answer> stored, Stored(judgement));
  if (stored) return *stored;
  lock.lock();
  HONE_ASSIGN_OR_RETURN(const std::optional<Answer> begun, Known(question, now_ns));
  if (begun) return *begun;
  Farm::Packages packages;
  for (const std::string& sha256 : judgement.job.traces) {
    const auto package = packages_.find(sha256);
    if (package == packages_.end() || package->second.whole == nullptr) {
      return absl::FailedPreconditionError(fmt::format("package {} is not here", sha256));
    }
    package->second.used_ns = now_ns;
    packages[sha256] = package->second.whole;
  }
  loop_.Post([packages = std::move(packages), terms = judgement.terms, job = judgement.job,
              attempt = judgement.attempt](Farm& farm, int64_t at_ns) {
    farm.BeginSession(terms);
    farm.KeepPackages(job, packages);
    farm.Submit(terms.id, attempt, job, at_ns);
  });
  return judgements_.insert_or_assign(question.session, std::move(judgement)).first->second.answer;
}

absl::StatusOr<std::optional<ModelJudgements::Answer>> ModelJudgements::Known(
    const Question& question, int64_t now_ns) {
  const auto found = judgements_.find(question.session);
  if (found == judgements_.end()) return std::nullopt;
  Judgement& known = found->second;
  if (!question.owner.empty() && question.owner != known.owner) return std::nullopt;
  if (known.question.Packages() == question.Packages() &&
      known.question.subject == question.subject &&
      known.question.may_put_back == question.may_put_back) {
    known.asked_ns = now_ns;
    return known.answer;
  }
  if (known.answer.done) return std::nullopt;
  return absl::FailedPreconditionError("other packages of this session are being compared");
}

db::Event ModelJudgements::EventOf(const Judgement& judgement) {
  db::Event event = db::EventOf(judgement.verdict);
  // The same packages have the same event: it is found again, and never made twice.
  std::string text = "packages 1\n" + judgement.question.session.ToHex();
  for (const std::string& sha256 : judgement.question.Packages()) text += "\n" + sha256;
  event.id.low = HashBytes(text).low;
  return event;
}

absl::StatusOr<std::optional<ModelJudgements::Answer>> ModelJudgements::Stored(
    const Judgement& judgement) {
  HONE_ASSIGN_OR_RETURN(const std::optional<db::Event> event,
                        book_.FindEvent(judgement.question.session, EventOf(judgement).id));
  if (!event) return std::nullopt;
  return Answer{.done = true, .payload = event->payload};
}

ModelJudgements::Next ModelJudgements::Suspect(const proto::WorkResult& result,
                                               Judgement& judgement) {
  const Question& question = judgement.question;
  if (!question.may_put_back || !question.mended_package.empty()) return Next::kDecide;
  if (judgement.suspects && judgement.suspects->empty()) return Next::kDecide;
  std::map<Hash128, const std::vector<int64_t>*> by_default;
  for (const proto::KernelTimes& kernel : result.compared[0].kernels) {
    by_default[kernel.workload] = &kernel.samples_ns;
  }
  std::set<Hash128> losing;
  for (const proto::KernelTimes& kernel : result.compared[1].kernels) {
    const auto before = by_default.find(kernel.workload);
    if (before == by_default.end() ||
        std::ranges::find(question.tuned, kernel.workload) == question.tuned.end()) {
      continue;
    }
    if (search::Loses(*before->second, kernel.samples_ns)) losing.insert(kernel.workload);
  }
  if (!judgement.suspects) {
    // Among many kernels one loses by chance: it has to lose twice.
    judgement.suspects = std::move(losing);
    return judgement.suspects->empty() ? Next::kDecide : Next::kCompareAgain;
  }
  std::erase_if(*judgement.suspects, [&](const Hash128& hash) { return !losing.contains(hash); });
  return judgement.suspects->empty() ? Next::kDecide : Next::kPutBack;
}

search::PairedRatio ModelJudgements::Decide(Judgement& judgement) {
  const std::vector<std::vector<int64_t>>& all = judgement.samples_ns;
  const Question& question = judgement.question;
  db::ModelVerdict& v = judgement.verdict;
  v.tuned = question.tuned;
  v.put_back.clear();
  size_t chosen = 1;
  if (all.size() > 2 && search::StandsIn(search::RatioOf(all[1], all[2]))) {
    chosen = 2;
    v.put_back = question.put_back;
    std::erase_if(v.tuned, [&](const Hash128& hash) {
      return std::ranges::find(v.put_back, hash) != v.put_back.end();
    });
  }
  const search::PairedRatio ratio = search::RatioOf(all[0], all[chosen]);
  v.default_ns = MedianOf(all[0]);
  v.tuned_ns = MedianOf(all[chosen]);
  v.ratio = ratio.median;
  v.ratio_low = ratio.low;
  v.ratio_high = ratio.high;
  v.keeps_defaults = ratio.low <= 1;
  v.rounds = static_cast<int64_t>(all[chosen].size());
  return ratio;
}

bool ModelJudgements::Take(const proto::WorkResult& result, Judgement& judgement) {
  Answer& answer = judgement.answer;
  answer.done = true;
  answer.reason = result.message;
  if (result.outcome != measure::Outcome::kOk ||
      result.compared.size() != judgement.samples_ns.size()) {
    return false;
  }
  for (const proto::ComparedResult& one : result.compared) {
    answer.reason = one.message;
    if (one.outcome != measure::Outcome::kOk) return false;
  }
  const bool branches = judgement.question.subject == db::ModelVerdict::Subject::kBranches;
  const auto timed = [](const proto::ComparedResult& one) { return !one.kernels.empty(); };
  if (branches && std::ranges::any_of(result.compared, timed)) {
    answer.reason = "its worker is older, and runs branches in turn while it times kernels";
    return false;
  }
  if (result.noisy) {
    answer.reason = fmt::format(
        "other programs disturbed it ({:.3f} ms {}, {:.3f} ms {}), so it decides nothing",
        MedianOf(result.compared[0].samples_ns) * 1e-6, branches ? "in turn" : "by default",
        MedianOf(result.compared[1].samples_ns) * 1e-6, branches ? "side by side" : "tuned");
    return false;
  }
  for (size_t i = 0; i < result.compared.size(); ++i) {
    const std::vector<int64_t>& more = result.compared[i].samples_ns;
    judgement.samples_ns[i].insert(judgement.samples_ns[i].end(), more.begin(), more.end());
  }
  switch (Suspect(result, judgement)) {
    case Next::kDecide: break;
    case Next::kCompareAgain:
      answer = {.reason = fmt::format("{} kernels seem slower in the model; looks again",
                                      judgement.suspects->size())};
      return true;
    case Next::kPutBack:
      answer.losing.assign(judgement.suspects->begin(), judgement.suspects->end());
      return false;
  }
  const search::PairedRatio ratio = Decide(judgement);
  const auto first = static_cast<int64_t>(result.compared[1].samples_ns.size());
  if (search::Undecided(ratio, judgement.verdict.rounds, first)) {
    answer = {.reason = "the first rounds did not decide"};
    return true;
  }
  answer.reason.clear();
  answer.payload = EventOf(judgement).payload;
  return false;
}

bool ModelJudgements::Deliver(const Delivery& delivery) {
  if (delivery.attempt < kFirstModel) return false;
  db::Batch facts;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = judgements_.find(delivery.session);
    if (found == judgements_.end() || found->second.attempt != delivery.attempt) return true;
    Judgement& judgement = found->second;
    more = Take(delivery.result, judgement);
    if (!judgement.answer.payload.empty()) {
      facts.events.push_back(EventOf(judgement));
      // Nobody is told of what is not durable.
      judgement.answer.done = false;
    }
    if (more) {
      ++judgement.attempt;
      loop_.Post([session = delivery.session, job = judgement.job, attempt = judgement.attempt](
                     Farm& farm, int64_t now_ns) { farm.Submit(session, attempt, job, now_ns); });
    }
  }
  Commit(delivery.session, delivery.attempt, more, std::move(facts));
  return true;
}

void ModelJudgements::Commit(const Hash128& session, int64_t attempt, bool more, db::Batch facts) {
  loop_.Post(
      {.prepare =
           [session, attempt, facts = std::move(facts)](Farm& farm, db::FarmStore&,
                                                        db::FarmUnit& unit, int64_t) {
             unit.facts = facts;
             unit.changes = farm.EndsOf(session, {attempt});
             return absl::OkStatus();
           },
       .done =
           [this, session, attempt, more](Farm& farm, const absl::Status& status, int64_t now_ns) {
             if (status.ok()) farm.OnCommitted(session, {attempt}, now_ns);
             if (!more) farm.EndSession(session, "its model was compared", now_ns);
             const std::lock_guard lock(mutex_);
             const auto found = judgements_.find(session);
             if (more || found == judgements_.end()) return;
             Answer& answer = found->second.answer;
             answer.done = true;
             if (!status.ok()) answer = {.done = true, .reason = StatusMessage(status)};
             LogEvent(LogLevel::kInfo, "model_compared",
                      {{"session", session.ToHex()},
                       {"ratio", fmt::format("{:.3f}", found->second.verdict.ratio)},
                       {"put_back", found->second.verdict.put_back.size()},
                       {"losing", answer.losing.size()},
                       {"why", answer.reason}});
           }});
}

}  // namespace hone::server
