#include "server/web/page_routes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/status.h"
#include "base/versions.h"
#include "ir/kind_facts.h"
#include "ir/target.h"
#include "ir/text.h"
#include "proto/probed_rates.h"
#include "server/web/page_assets.h"
#include "server/web/page_json.h"

namespace hone::server::web {
namespace {

using nlohmann::ordered_json;

/// What one request reads at most; a page that comes to a log of long sessions fills up over a few
/// polls instead of hanging.
constexpr int64_t kEventsARequest = 20'000;
constexpr size_t kSmallPoints = 60;

HttpResponse Json(const ordered_json& object, int status = 200) {
  return {.status = status,
          .content_type = "application/json; charset=utf-8",
          .body = JsonText(object)};
}

HttpResponse Refuse(int status, const std::string& why) {
  return Json({{"version", kPageJsonVersion}, {"error", why}}, status);
}

std::optional<Hash128> IdOf(const HttpRequest& request, const std::string& name) {
  const auto text = request.query.find(name);
  return text == request.query.end() ? std::nullopt : Hash128::FromHex(text->second);
}

const OpenSessionView* OpenOf(const FarmView& view, const Hash128& id) {
  const auto open = view.sessions.find(id);
  return open == view.sessions.end() ? nullptr : &open->second;
}

}  // namespace

HttpResponse PageRoutes::Serve(const HttpRequest& request) {
  if (request.path == "/api/v1/farm") return Farm();
  if (request.path == "/api/v1/session") return Session(request);
  if (request.path == "/api/v1/attempt") return Attempt(request);
  if (request.path == "/api/v1/best") return Best(request);
  if (request.path == "/healthz") {
    const std::string trouble = source_.Trouble();
    return {.status = trouble.empty() ? 200 : 503, .body = trouble.empty() ? "ok\n" : trouble};
  }
  for (const PageAsset& asset : PageAssets()) {
    if (request.path == asset.path) {
      return {.content_type = std::string(asset.content_type), .body = std::string(asset.text)};
    }
  }
  return Refuse(404, "there is no such page");
}

PageRoutes::Known* PageRoutes::Look(const std::shared_ptr<const SessionRow>& row, int64_t* budget) {
  Known& known = known_[row->row.id];
  known.row = row;
  if (!known.story) known.story = std::make_unique<SessionStory>(row->spec);
  if (*budget <= 0) return &known;
  known.complete = true;
  const absl::Status scanned =
      source_.ScanEvents(row->row.id, known.story->sequence(), [&](const db::Event& event) {
        known.story->Take(event);
        known.complete = --*budget > 0;
        return known.complete;
      });
  if (!scanned.ok()) {
    known.complete = false;
    LogEvent(LogLevel::kWarning, "page_read_failed",
             {{"session", row->row.id.ToHex()}, {"why", StatusMessage(scanned)}});
  }
  return &known;
}

PageRoutes::Known* PageRoutes::Find(const Hash128& id, int64_t* budget) {
  for (const auto& row : source_.Sessions()) {
    if (row->row.id == id) return Look(row, budget);
  }
  return nullptr;
}

void PageRoutes::ForgetOthers() {
  std::set<Hash128> listed;
  for (const auto& row : source_.Sessions()) listed.insert(row->row.id);
  std::erase_if(known_, [&](const auto& entry) { return !listed.contains(entry.first); });
}

HttpResponse PageRoutes::Farm() {
  const int64_t unix_ms = source_.UnixMs();
  const FarmView view = source_.View();
  ordered_json object = FarmJson(source_.Facts(), view, source_.Trouble(), unix_ms);
  int64_t budget = kEventsARequest;
  const auto rows = source_.Sessions();
  // What runs is read first.
  for (const bool open : {true, false}) {
    for (const auto& row : rows) {
      if ((row->row.state < db::SessionState::kFinished) == open) Look(row, &budget);
    }
  }
  ordered_json sessions = ordered_json::array();
  for (const auto& row : rows) {
    const Known& known = known_.at(row->row.id);
    sessions.push_back(SessionJson(*row, *known.story, known.complete, OpenOf(view, row->row.id),
                                   unix_ms, kSmallPoints));
  }
  object["sessions"] = std::move(sessions);
  ForgetOthers();
  return Json(object);
}

void PageRoutes::GatherFailures(Known& known) {
  const int64_t failed = known.story->failed();
  if (failed == known.failures_of) return;
  known.failures_of = failed;
  Failures failures;
  const absl::Status scanned =
      failed == 0 ? absl::OkStatus()
                  : source_.ScanFailures(known.row->row.id, [&](const db::Attempt& attempt) {
                      failures.Add(attempt);
                      return true;
                    });
  if (!scanned.ok()) known.failures_of = -1;
  known.failures = failures.ByCount();
}

std::vector<double> PageRoutes::BoundsOf(Known& known, const FarmView& view) const {
  const SessionRow& row = *known.row;
  std::optional<proto::Probes> fastest;
  for (const DeviceView& device : view.devices)
    proto::TakeFaster(device.info, row.row.device_class, fastest);
  ir::Target target;
  std::string why;
  if (!fastest || !ir::ParseTarget(row.spec.target, &target, &why)) return {};
  for (size_t i = known.costs.size(); i < row.spec.tasks.size(); ++i) {
    const auto workload = ir::ParseWorkload(row.spec.tasks[i].workload);
    known.costs.push_back(workload.ok() ? ir::CostOf(*workload) : ir::WorkloadCost());
  }
  const measure::DeviceRates rates = proto::RatesOf(*fastest, target);
  std::vector<double> bounds;
  for (const ir::WorkloadCost& cost : known.costs) bounds.push_back(rates.BoundNs(cost));
  return bounds;
}

HttpResponse PageRoutes::Session(const HttpRequest& request) {
  const auto id = IdOf(request, "id");
  if (!id) return Refuse(400, "id: a session's 32 hexadecimal digits");
  int64_t budget = kEventsARequest;
  Known* known = Find(*id, &budget);
  if (known == nullptr) return Refuse(404, "no such session among the latest");
  GatherFailures(*known);
  const FarmView view = source_.View();
  ordered_json object = SessionJson(*known->row, *known->story, known->complete, OpenOf(view, *id),
                                    source_.UnixMs(), SessionStory::kMostPoints);
  object["task_list"] = TasksJson(*known->story, BoundsOf(*known, view));
  object["trials"] = TrialsJson(*known->story);
  object["failures"] = FailuresJson(known->failures, *known->story);
  return Json(object);
}

HttpResponse PageRoutes::Attempt(const HttpRequest& request) {
  const auto session = IdOf(request, "session"), id = IdOf(request, "id");
  if (!session || !id) return Refuse(400, "session, id: 32 hexadecimal digits each");
  int64_t budget = 0;
  const Known* known = Find(*session, &budget);
  if (known == nullptr) return Refuse(404, "no such session among the latest");
  std::optional<db::Attempt> found;
  const absl::Status scanned = source_.ScanFailures(*session, [&](const db::Attempt& attempt) {
    if (attempt.id == *id) found = attempt;
    return !found.has_value();
  });
  if (!scanned.ok()) return Refuse(404, StatusMessage(scanned));
  if (!found) return Refuse(404, "no such failed attempt");
  return Json(AttemptJson(*found, *known->story));
}

HttpResponse PageRoutes::Best(const HttpRequest& request) {
  const auto session = IdOf(request, "session"), workload = IdOf(request, "workload");
  if (!session || !workload) return Refuse(400, "session, workload: 32 hexadecimal digits each");
  int64_t budget = 0;
  const Known* known = Find(*session, &budget);
  if (known == nullptr) return Refuse(404, "no such session among the latest");
  // What others have asked for is not this session's to show.
  const auto& tasks = known->story->tasks();
  if (std::ranges::none_of(tasks, [&](const auto& t) { return t.workload == *workload; })) {
    return Refuse(404, "no such task of this session");
  }
  const SessionRow& row = *known->row;
  const auto best =
      source_.FindBest({.workload = *workload,
                        .target = row.spec.target,
                        .device_class = row.row.device_class,
                        .accuracy = row.spec.accuracy,
                        .measurement_policy = ir::VersionsOf(row.spec.target).measurement_policy});
  if (!best.ok()) return Refuse(404, StatusMessage(best.status()));
  if (!best->has_value()) return Refuse(404, "nothing of this task is measured yet");
  return Json(BestJson(**best, *known->story));
}

}  // namespace hone::server::web
