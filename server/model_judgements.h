#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/model_verdict.h"
#include "search/paired_ratio.h"
#include "server/farm_loop.h"
#include "server/session_book.h"

namespace hone::server {

/// Attempts of models have this number or a larger one; those of sessions are below.
inline constexpr int64_t kFirstModel = int64_t{1} << 60;

/// Comparisons of whole models that follow finished sessions: their packages, the attempts by which
/// a device of the session's class runs them in turns, and the verdict, which goes into the log
/// with the last of these. Packages and comparisons under way are in memory alone: after a restart
/// of honed a client begins again. A verdict that was made is found in the log. Thread-safe.
class ModelJudgements {
 public:
  /// Both must outlive it.
  ModelJudgements(FarmLoop& loop, SessionBook& book) : loop_(loop), book_(book) {}

  struct Part {
    std::string sha256;
    int64_t total_bytes = 0, offset = 0;
    std::string data;
  };
  /// A part of a package; said again it changes nothing. kFailedPrecondition: not the next one;
  /// kResourceExhausted: too much is kept; kInvalidArgument: the whole is not what its hash says.
  absl::Status Put(const Part& part);

  struct Question {
    Hash128 session;
    std::string owner;  ///< whose session it must be; empty: anybody's
    std::string default_package, tuned_package;
    /// kTuning, or kBranches: the first package in turn, the second side by side, nothing tuned.
    db::ModelVerdict::Subject subject = db::ModelVerdict::Subject::kTuning;
    std::vector<Hash128> tuned;
    double seconds = 1;
    bool may_put_back = false;      ///< Answer::losing may be the answer
    std::string mended_package;     ///< the tuned one but for `put_back`; empty: there is none
    std::vector<Hash128> put_back;  ///< of `tuned`
    /// All of its packages, in the order in which they run.
    std::vector<std::string> Packages() const;
  };
  struct Answer {
    bool done = false;
    std::string payload, reason;
    /// What of `tuned` lost twice in the model: done, but nothing is decided before they are put
    /// back.
    std::vector<Hash128> losing;
  };
  /// Begins, or says how far it is. kNotFound: no such session; kFailedPrecondition: it has not
  /// finished, another comparison of it is under way, or a package is not here; kInvalidArgument:
  /// `tuned` names a Workload that it does not have, or `put_back` one that is not in `tuned`.
  absl::StatusOr<Answer> Ask(const Question& question);

  /// A result; on the loop. False: none of a model.
  bool Deliver(const Delivery& delivery);

 private:
  struct Package {
    std::string data;
    std::shared_ptr<const std::string> whole;  ///< once all of it is here
    int64_t total_bytes = 0, used_ns = 0;
  };
  struct Judgement {
    std::string owner;
    Question question;
    SessionTerms terms;
    proto::Job job;
    db::ModelVerdict verdict;
    std::vector<std::vector<int64_t>> samples_ns;  ///< by package
    std::optional<std::set<Hash128>> suspects;     ///< what lost once
    int64_t attempt = FreshAttempt(), asked_ns = 0;
    Answer answer;
  };

  /// A number that no comparison of the session had before, with room for its rounds: the log has
  /// one answer for each.
  static int64_t FreshAttempt();
  /// Forgets what nobody has asked for in ten minutes; with mutex_.
  void Forget(int64_t now_ns);
  /// What a comparison of this session's model begins with; without mutex_.
  absl::StatusOr<Judgement> Prepare(const Question& question);
  /// How far one of the same packages is; nothing: it may begin. With mutex_.
  absl::StatusOr<std::optional<Answer>> Known(const Question& question, int64_t now_ns);
  /// The verdict of a comparison of the same packages, made before honed was started again;
  /// without mutex_.
  absl::StatusOr<std::optional<Answer>> Stored(const Judgement& judgement);
  /// Adds the samples; true: more rounds may decide. With mutex_.
  static bool Take(const proto::WorkResult& result, Judgement& judgement);
  /// Whether it may be the kernels that lost: looks at those of `result`; nothing: go on to decide.
  enum class Next : uint8_t { kDecide, kCompareAgain, kPutBack };
  static Next Suspect(const proto::WorkResult& result, Judgement& judgement);
  /// Compares the default with the tuned package, or the mended one where that may stand in.
  static search::PairedRatio Decide(Judgement& judgement);
  static db::Event EventOf(const Judgement& judgement);
  /// Makes the end of an attempt durable, with the verdict where one was made.
  void Commit(const Hash128& session, int64_t attempt, bool more, db::Batch facts);

  FarmLoop& loop_;
  SessionBook& book_;
  std::mutex mutex_;
  std::map<std::string, Package> packages_;  // by SHA-256; guarded by mutex_, as all below
  std::map<Hash128, Judgement> judgements_;  // by session
};

}  // namespace hone::server
