#include "client/farm_judge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "client/log_trace_source.h"
#include "client/model_comparison.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/server_database.h"
#include "compiler/compile_model.h"
#include "measure/seeded_package.h"

namespace hone::client {
namespace {

constexpr int64_t kAskEveryNs = 200'000'000;
/// As long as a watch of a session waits for honed.
constexpr int64_t kPatienceNs = 600'000'000'000;

/// What a server knows of kernels, whatever was said of models: a verdict of before says nothing of
/// what was found since.
class WithoutVerdicts final : public compiler::TraceSource {
 public:
  explicit WithoutVerdicts(compiler::TraceSource& source) : source_(source) {}
  absl::StatusOr<compiler::FoundTrace> Find(const ir::Workload& workload, const std::string& hash,
                                            const ir::Target& target) override {
    return source_.Find(workload, hash, target);
  }
  void EndLookUps() override { source_.EndLookUps(); }

 private:
  compiler::TraceSource& source_;
};

struct MadePackage {
  std::string cut;                            ///< without constants
  std::map<std::string, std::string> traces;  ///< by workload hash
  int possible_forks = 0;
};

class FarmJudge {
 public:
  FarmJudge(CommandContext& context, const ServerAddress& address, const proto::SessionSpec& spec,
            const proto::SessionInfo& session)
      : context_(context), address_(address), spec_(spec), session_(session) {
    // It was there when the session ended: it may be starting again.
    address_.refused_for_ms = address_.retry_for_ms;
  }

  absl::StatusOr<FarmJudgement> JudgeSchedules(const std::function<bool()>& stop);
  /// After it: whether the model has branches that may pay side by side.
  bool HasBranches() const { return by_default_ && by_default_->possible_forks > 0; }
  absl::StatusOr<FarmJudgement> JudgeBranches(const std::function<bool()>& stop);

 private:
  absl::StatusOr<std::unique_ptr<LogTraceSource>> Source();
  absl::StatusOr<MadePackage> Make(compiler::TraceSource& traces,
                                   compiler::BranchRun branches = compiler::BranchRun::kInTurn);
  /// What one comparison may take: long sessions get more, as those of this machine do.
  double Seconds() const {
    constexpr double kShare = 0.03, kLeast = 0.5, kMost = 6;
    return spec_.seconds > 0 ? std::clamp(kShare * spec_.seconds, kLeast, kMost) : 1;
  }

  CommandContext& context_;
  ServerAddress address_;
  const proto::SessionSpec& spec_;
  const proto::SessionInfo& session_;
  std::optional<MadePackage> by_default_;
};

absl::StatusOr<std::unique_ptr<LogTraceSource>> FarmJudge::Source() {
  HONE_ASSIGN_OR_RETURN(auto look_ups, ServerConnection::Open(address_));
  return LogTraceSource::Create(
      std::make_unique<ServerDatabase>(std::move(look_ups)), address_.address,
      {.device_class = session_.device_class, .accuracy = spec_.accuracy});
}

absl::StatusOr<MadePackage> FarmJudge::Make(compiler::TraceSource& traces,
                                            compiler::BranchRun branches) {
  const Arguments& arguments = context_.arguments;
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, arguments.Text("MODEL")));
  measure::BuilderClient builder(LocalBuilder(arguments, context_.environment),
                                 *context_.environment.clock);
  HONE_ASSIGN_OR_RETURN(const compiler::CompiledModel model,
                        compiler::CompileModel(std::move(graph),
                                               {.target = spec_.target,
                                                .device_class = session_.device_class,
                                                .batch = ReadBatch(context_.arguments),
                                                .branches = branches,
                                                .cascades = compiler::CascadeRun::kOff},
                                               builder, traces));
  MadePackage made{.possible_forks = model.report.possible_forks};
  for (const compiler::KernelReport& kernel : model.report.kernels) {
    made.traces[kernel.workload_hash] = kernel.trace;
  }
  auto cut = measure::CutConstants(model.package);
  if (!cut.ok()) return ToAbsl(cut.status());
  made.cut = *std::move(cut);
  return made;
}

absl::StatusOr<FarmJudgement> FarmJudge::JudgeSchedules(const std::function<bool()>& stop) {
  HONE_ASSIGN_OR_RETURN(const auto source, Source());
  compiler::DefaultTraceSource defaults;
  WithoutVerdicts known(*source);
  HONE_ASSIGN_OR_RETURN(by_default_, Make(defaults));
  const MadePackage& by_default = *by_default_;
  HONE_ASSIGN_OR_RETURN(const MadePackage tuned, Make(known));
  ServerConnection::ModelQuestion question{
      .session = session_.id, .seconds = Seconds(), .may_put_back = true};
  for (const auto& [hash, trace] : tuned.traces) {
    const auto before = by_default.traces.find(hash);
    if (before == by_default.traces.end() || before->second == trace) continue;
    question.tuned.push_back(Hash128::FromHex(hash).value_or(Hash128{}));
  }
  if (question.tuned.empty()) {
    return FarmJudgement{.skipped = "every kernel keeps its default schedule"};
  }
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address_));
  JudgedPackages packages{.by_default = by_default.cut, .tuned = tuned.cut};
  HONE_ASSIGN_OR_RETURN(FarmJudgement first,
                        AwaitJudgement(context_, *server, question, packages, stop));
  if (first.losing.empty()) return first;
  question.may_put_back = false;
  std::set<std::string> losing;
  for (const Hash128& hash : first.losing) losing.insert(hash.ToHex());
  context_.err << fmt::format(
                      "comparing the whole model: {} of {} kernels were slower in it; comparing "
                      "again with their default schedules\n",
                      losing.size(), question.tuned.size())
               << std::flush;
  WithDefaults fewer(known, losing);
  HONE_ASSIGN_OR_RETURN(MadePackage mended, Make(fewer));
  // Where all of them lost that is the default one, which runs anyway.
  if (mended.cut != by_default.cut) {
    packages.mended = std::move(mended.cut);
    question.put_back = std::move(first.losing);
  }
  return AwaitJudgement(context_, *server, std::move(question), packages, stop);
}

absl::StatusOr<FarmJudgement> FarmJudge::JudgeBranches(const std::function<bool()>& stop) {
  if (stop()) return FarmJudgement{.skipped = "interrupted"};
  // With what was just said of its kernels; not of its batch, which the session did not compare.
  HONE_ASSIGN_OR_RETURN(const auto source, Source());
  WithDefaults known(*source, {});
  HONE_ASSIGN_OR_RETURN(MadePackage in_turn, Make(known, compiler::BranchRun::kInTurn));
  HONE_ASSIGN_OR_RETURN(MadePackage beside, Make(known, compiler::BranchRun::kBeside));
  if (in_turn.cut == beside.cut) {
    return FarmJudgement{.skipped = "with these schedules none would run side by side"};
  }
  HONE_ASSIGN_OR_RETURN(const auto server, ServerConnection::Open(address_));
  return AwaitJudgement(context_, *server,
                        {.session = session_.id,
                         .subject = db::ModelVerdict::Subject::kBranches,
                         .seconds = Seconds()},
                        {.by_default = std::move(in_turn.cut), .tuned = std::move(beside.cut)},
                        stop);
}

bool DoesNotAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::StatusOr<FarmJudgement> AwaitJudgement(CommandContext& context, ServerConnection& server,
                                             ServerConnection::ModelQuestion question,
                                             const JudgedPackages& packages,
                                             const std::function<bool()>& stop) {
  const MonotonicClock& clock = *context.environment.clock;
  const auto put = [&](const std::string& package) {
    auto sha256 = server.PutPackage(package);
    // honed was started again after the first parts.
    return absl::IsFailedPrecondition(sha256.status()) ? server.PutPackage(package) : sha256;
  };
  std::string told;
  std::optional<int64_t> heard_ns;
  // Answered: since the packages were sent.
  for (bool sent = false, answered = false;;) {
    if (!sent) {
      HONE_ASSIGN_OR_RETURN(question.default_package, put(packages.by_default));
      HONE_ASSIGN_OR_RETURN(question.tuned_package, put(packages.tuned));
      if (!packages.mended.empty()) {
        HONE_ASSIGN_OR_RETURN(question.mended_package, put(packages.mended));
      }
      sent = true;
    }
    absl::StatusOr<ServerConnection::ModelAnswer> answer = server.JudgeModel(question);
    if (answered && absl::IsFailedPrecondition(answer.status())) {
      sent = answered = false;
      continue;
    }
    if (heard_ns && DoesNotAnswer(answer.status()) && clock.NowNs() - *heard_ns < kPatienceNs) {
      answer = ServerConnection::ModelAnswer{.reason = "waits for honed"};
    } else {
      HONE_RETURN_IF_ERROR(answer.status());
      answered = true;
      heard_ns = clock.NowNs();
    }
    if (answer->done) {
      return FarmJudgement{.verdict = std::move(answer->verdict),
                           .skipped = std::move(answer->reason),
                           .losing = std::move(answer->losing)};
    }
    if (stop()) return FarmJudgement{.skipped = "interrupted: " + answer->reason};
    if (answer->reason != told) {
      context.err << "comparing the whole model: " + answer->reason + "\n" << std::flush;
      told = answer->reason;
    }
    clock.SleepNs(kAskEveryNs);
  }
}

FarmJudgements JudgeOnServer(CommandContext& context, const ServerAddress& address,
                             const proto::SessionSpec& spec, const proto::SessionInfo& session,
                             const std::function<bool()>& stop) {
  const auto or_why = [](absl::StatusOr<FarmJudgement> judgement) {
    if (judgement.ok()) return *std::move(judgement);
    return FarmJudgement{.skipped = StatusMessage(judgement.status())};
  };
  FarmJudge judge(context, address, spec, session);
  FarmJudgements judgements{.schedules = or_why(judge.JudgeSchedules(stop))};
  if (judge.HasBranches()) judgements.branches = or_why(judge.JudgeBranches(stop));
  return judgements;
}

}  // namespace hone::client
