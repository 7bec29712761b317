#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/web/page_source.h"

// A farm of known data for tests of the page: every text that can come from outside is hostile.
namespace hone::web_test {

/// Markup that must never become elements, with what would run in it.
std::string Hostile(const std::string& where);

class KnownFarm final : public server::web::PageSource {
 public:
  KnownFarm();

  server::ProcessFacts Facts() override;
  server::FarmView View() override;
  std::string Trouble() override { return trouble_; }
  int64_t UnixMs() override;
  std::vector<std::shared_ptr<const server::web::SessionRow>> Sessions() override {
    return sessions_;
  }
  absl::Status ScanEvents(const Hash128& session, int64_t after,
                          const std::function<bool(const db::Event&)>& visit) override;
  absl::Status ScanFailures(const Hash128& session,
                            const std::function<bool(const db::Attempt&)>& visit) override;
  /// 1.5 ms for every key of the known session's class, with a hostile Trace.
  absl::StatusOr<std::optional<db::RankedRecord>> FindBest(const db::RecordKey& key) override;

  /// The known session's, as the farm sees them.
  void set_open(server::OpenSessionView open) { open_ = std::move(open); }
  void set_trouble(std::string trouble) { trouble_ = std::move(trouble); }
  /// The session whose numbers the tests know: 40 ms by default, 20 ms after 60 of 240 seconds.
  static Hash128 KnownSession() { return {0x1111, 0x2222}; }
  int64_t events_read() const { return events_read_; }
  /// A session with this many attempts.
  void AddLongSession(const Hash128& id, int64_t attempts);

 private:
  void AddSession(const Hash128& id, const std::string& model, db::SessionState state,
                  const std::string& reason, int tasks);
  /// The verdict of its whole model.
  void Judge(const Hash128& id);
  void Say(const Hash128& id, const std::string& type, const std::string& payload);
  void Measured(const Hash128& id, int task, const std::string& proposer, double ns,
                const std::string& outcome = "ok");
  void AddKnownSession();

  std::string trouble_;
  server::OpenSessionView open_{.left_ns = 180'000'000'000, .waits = ""};
  std::vector<std::shared_ptr<const server::web::SessionRow>> sessions_;
  std::map<Hash128, std::vector<db::Event>> events_;
  std::map<Hash128, std::vector<db::Attempt>> failures_;
  int64_t sequence_ = 0, attempt_ = 0, polls_ = 0, events_read_ = 0;
};

}  // namespace hone::web_test
