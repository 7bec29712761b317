#include "server/judging_service.h"

#include <set>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/status.h"
#include "db/model_verdict.h"
#include "proto/farm_service.h"
#include "proto/field_check.h"
#include "proto/limits.h"
#include "server/work_pool.h"

namespace hone::server {
namespace {

constexpr int kThreads = 2;
constexpr size_t kHashDigits = 64;
constexpr double kLeastSeconds = 0.01, kMostSeconds = 10;

absl::StatusOr<ModelJudgements::Part> FromWire(const v1::PutPackageRequest& wire) {
  ModelJudgements::Part part{.total_bytes = wire.total_bytes(), .offset = wire.offset()};
  HONE_ASSIGN_OR_RETURN(part.sha256,
                        proto::Printing(wire.sha256(), kHashDigits, kHashDigits, "sha256"));
  HONE_RETURN_IF_ERROR(
      proto::InRange(wire.total_bytes(), 1, proto::kMaxPackageBytes, "total_bytes"));
  HONE_RETURN_IF_ERROR(proto::InRange(wire.offset(), 0, wire.total_bytes() - 1, "offset"));
  HONE_ASSIGN_OR_RETURN(part.data,
                        proto::Bounded(wire.data(), 1, proto::kArtifactChunkBytes, "data"));
  if (static_cast<int64_t>(part.data.size()) > part.total_bytes - part.offset) {
    return absl::InvalidArgumentError("data: goes on behind the end of the package");
  }
  return part;
}

/// Numbers of JudgeModelRequest.subject; do not renumber.
constexpr int kSchedules = 0, kBranches = 1;

absl::StatusOr<db::ModelVerdict::Subject> SubjectOf(const v1::JudgeModelRequest& wire) {
  using Subject = db::ModelVerdict::Subject;
  HONE_RETURN_IF_ERROR(proto::InRange(wire.subject(), kSchedules, kBranches, "subject"));
  if (wire.subject() == kSchedules) return Subject::kTuning;
  if (wire.tuned_size() > 0 || wire.may_put_back() || !wire.mended_package().empty()) {
    return absl::InvalidArgumentError(
        "subject: nothing is tuned or put back where branches are compared");
  }
  return Subject::kBranches;
}

template <typename List>
absl::StatusOr<std::vector<Hash128>> WorkloadsOf(const List& wire, const char* field) {
  HONE_RETURN_IF_ERROR(
      proto::AtMost(static_cast<size_t>(wire.size()), proto::kMaxWorkloads, field));
  std::set<Hash128> seen;
  std::vector<Hash128> workloads;
  for (const std::string& bytes : wire) {
    HONE_ASSIGN_OR_RETURN(workloads.emplace_back(), proto::IdFromBytes(bytes, field));
    if (!seen.insert(workloads.back()).second) {
      return absl::InvalidArgumentError(fmt::format("{}: a workload twice", field));
    }
  }
  if (seen.empty()) return absl::InvalidArgumentError(fmt::format("{}: at least one", field));
  return workloads;
}

absl::StatusOr<ModelJudgements::Question> FromWire(const v1::JudgeModelRequest& wire) {
  ModelJudgements::Question question{.seconds = wire.seconds(),
                                     .may_put_back = wire.may_put_back()};
  HONE_ASSIGN_OR_RETURN(question.session, proto::IdFromBytes(wire.session(), "session"));
  HONE_ASSIGN_OR_RETURN(
      question.default_package,
      proto::Printing(wire.default_package(), kHashDigits, kHashDigits, "default_package"));
  HONE_ASSIGN_OR_RETURN(question.tuned_package, proto::Printing(wire.tuned_package(), kHashDigits,
                                                                kHashDigits, "tuned_package"));
  if (question.tuned_package == question.default_package) {
    return absl::InvalidArgumentError("tuned_package: the same as the default one");
  }
  HONE_ASSIGN_OR_RETURN(question.subject, SubjectOf(wire));
  if (question.subject == db::ModelVerdict::Subject::kTuning) {
    HONE_ASSIGN_OR_RETURN(question.tuned, WorkloadsOf(wire.tuned(), "tuned"));
  }
  if (!wire.mended_package().empty()) {
    HONE_ASSIGN_OR_RETURN(
        question.mended_package,
        proto::Printing(wire.mended_package(), kHashDigits, kHashDigits, "mended_package"));
    if (question.mended_package == question.default_package ||
        question.mended_package == question.tuned_package) {
      return absl::InvalidArgumentError("mended_package: the same as another one");
    }
    HONE_ASSIGN_OR_RETURN(question.put_back, WorkloadsOf(wire.put_back(), "put_back"));
  }
  HONE_RETURN_IF_ERROR(proto::RealInRange(wire.seconds(), kLeastSeconds, kMostSeconds, "seconds"));
  return question;
}

}  // namespace

class JudgingService::Service final : public v1::Judging::CallbackService {
 public:
  Service(WorkerStreams& workers, ModelJudgements& judgements)
      : workers_(workers), judgements_(judgements) {}
  void Stop() { pool_.Stop(); }

  grpc::ServerUnaryReactor* PutPackage(grpc::CallbackServerContext* context,
                                       const v1::PutPackageRequest* request,
                                       v1::PutPackageReply*) override {
    return Serve(context, [this, request](const Identity&) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const ModelJudgements::Part part, FromWire(*request));
      return judgements_.Put(part);
    });
  }
  grpc::ServerUnaryReactor* JudgeModel(grpc::CallbackServerContext* context,
                                       const v1::JudgeModelRequest* request,
                                       v1::JudgeModelReply* reply) override {
    return Serve(context, [this, request, reply](const Identity& who) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(ModelJudgements::Question question, FromWire(*request));
      if (who.role == CallerRole::kSubmit) question.owner = who.Owner();
      HONE_ASSIGN_OR_RETURN(const ModelJudgements::Answer answer, judgements_.Ask(question));
      reply->set_done(answer.done);
      reply->set_payload(answer.payload);
      reply->set_reason(proto::Cut(answer.reason, proto::kMaxTextBytes));
      for (const Hash128& hash : answer.losing) reply->add_losing(proto::IdBytes(hash));
      return absl::OkStatus();
    });
  }

 private:
  absl::StatusOr<Identity> Caller(const grpc::ServerContextBase& context) {
    HONE_ASSIGN_OR_RETURN(
        Identity caller,
        workers_.Admit(context, {CallerRole::kSubmit, CallerRole::kPublish, CallerRole::kAdmin},
                       "Judging"));
    HONE_RETURN_IF_ERROR(proto::CheckProtocol(context, caller.Uri()));
    return caller;
  }
  template <typename Answer>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, Answer answer) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::StatusOr<Identity> caller = Caller(*context);
    if (!caller.ok()) {
      reactor->Finish(proto::ToGrpc(caller.status()));
    } else if (!pool_.Add([reactor, who = *caller, answer] {
                 reactor->Finish(proto::ToGrpc(answer(who)));
               })) {
      reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "honed is overloaded, try later"});
    }
    return reactor;
  }

  WorkerStreams& workers_;
  ModelJudgements& judgements_;
  WorkPool pool_{"judging", kThreads};
};

JudgingService::JudgingService(WorkerStreams& workers, ModelJudgements& judgements)
    : service_(new Service(workers, judgements)) {}
JudgingService::~JudgingService() = default;
grpc::Service* JudgingService::service() { return service_.get(); }
void JudgingService::Stop() { service_->Stop(); }

}  // namespace hone::server
