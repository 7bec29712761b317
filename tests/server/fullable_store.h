#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/farm_store.h"

namespace hone::server {

/// A store whose disk a test fills: commits fail as on one without space, reading goes on.
class FullableStore final : public db::FarmStore {
 public:
  explicit FullableStore(std::unique_ptr<db::FarmStore> store) : store_(std::move(store)) {}
  void SetFull(bool full) { full_.store(full); }
  int64_t refused() const { return refused_.load(); }

  absl::StatusOr<std::vector<absl::Status>> Commit(
      const std::vector<const db::FarmUnit*>& units) override {
    if (!full_.load()) return store_->Commit(units);
    ++refused_;
    return absl::ResourceExhaustedError("the disk is full; free some space");
  }
  absl::Status CheckInPlace() override { return store_->CheckInPlace(); }
  absl::Status AddStart(uint64_t start, int64_t ms) override { return store_->AddStart(start, ms); }
  absl::StatusOr<db::FarmState> Load() override { return store_->Load(); }
  absl::StatusOr<std::optional<db::FarmLease>> FindLease(const Hash128& token) override {
    return store_->FindLease(token);
  }
  absl::StatusOr<std::optional<db::FarmRequest>> FindRequest(const std::string& caller,
                                                             const std::string& id) override {
    return store_->FindRequest(caller, id);
  }
  absl::StatusOr<std::optional<db::FarmSession>> FindFarmSession(const Hash128& id) override {
    return store_->FindFarmSession(id);
  }
  absl::StatusOr<std::optional<db::FarmSuspect>> FindSuspect(const Hash128& session,
                                                             int64_t attempt) override {
    return store_->FindSuspect(session, attempt);
  }
  absl::StatusOr<std::vector<db::FarmSession>> LatestSessions(
      int limit, const std::string& owner, const std::optional<Hash128>& after) override {
    return store_->LatestSessions(limit, owner, after);
  }
  absl::StatusOr<std::vector<db::FarmSession>> OpenAndLatestSessions(int ended) override {
    return store_->OpenAndLatestSessions(ended);
  }
  absl::StatusOr<int64_t> CountAnswers(const Hash128& session, int64_t below) override {
    return store_->CountAnswers(session, below);
  }
  absl::StatusOr<std::vector<int64_t>> AnswersFrom(const Hash128& session, int64_t first) override {
    return store_->AnswersFrom(session, first);
  }
  absl::StatusOr<std::vector<db::FarmLease>> LeasesOf(const Hash128& session) override {
    return store_->LeasesOf(session);
  }
  absl::StatusOr<std::vector<db::FarmAudit>> Audit(int limit) override {
    return store_->Audit(limit);
  }
  absl::Status ForgetRequests(int64_t before_ms) override {
    return store_->ForgetRequests(before_ms);
  }

 private:
  const std::unique_ptr<db::FarmStore> store_;
  std::atomic<bool> full_{false};
  std::atomic<int64_t> refused_{0};
};

}  // namespace hone::server
