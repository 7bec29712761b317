#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/workload_cost.h"
#include "server/web/failures.h"
#include "server/web/http_server.h"
#include "server/web/page_source.h"
#include "server/web/session_story.h"

namespace hone::server::web {

/// The page and its JSON. Not thread-safe; one request at a time.
///
///   /                                   the page (page.html, page.css, page.js)
///   /api/v1/farm                        queue, leases, devices, sessions with small curves
///   /api/v1/session?id=HEX              one session: whole curve, tasks, failures by cause
///   /api/v1/attempt?session=HEX&id=HEX  a failed candidate with its Trace
///   /api/v1/best?session=HEX&workload=HEX  the best record of a session's task with its Trace
///
/// Every JSON object has "version": 1; fields are added to it, never removed or retyped. Errors are
/// {"version": 1, "error": "…"} with status 400 or 404.
class PageRoutes {
 public:
  explicit PageRoutes(PageSource& source) : source_(source) {}

  HttpResponse Serve(const HttpRequest& request);

 private:
  /// A session as far as it was read.
  struct Known {
    std::shared_ptr<const SessionRow> row;
    std::unique_ptr<SessionStory> story;
    bool complete = false;  ///< all events of the last look were read
    std::vector<FailureCause> failures;
    int64_t failures_of = -1;             ///< failed attempts when they were gathered
    std::vector<ir::WorkloadCost> costs;  ///< of the tasks, once they were asked for
  };

  HttpResponse Farm();
  HttpResponse Session(const HttpRequest& request);
  HttpResponse Attempt(const HttpRequest& request);
  HttpResponse Best(const HttpRequest& request);
  /// The session as of now; null: there is none. Reads at most `*budget` events.
  Known* Look(const std::shared_ptr<const SessionRow>& row, int64_t* budget);
  Known* Find(const Hash128& id, int64_t* budget);
  void GatherFailures(Known& known);
  /// The rooflines of the tasks by the probes of the session's class of devices, ns; empty where
  /// none has said any.
  std::vector<double> BoundsOf(Known& known, const FarmView& view) const;
  void ForgetOthers();

  PageSource& source_;
  std::map<Hash128, Known> known_;
};

}  // namespace hone::server::web
