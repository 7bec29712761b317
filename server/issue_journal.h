#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"

#include "base/identity.h"
#include "db/farm_store.h"

// What a farm's authority was used for, in its own folder: `issued.log`, a line an event, only ever
// appended to. The authority may lie on a machine that never runs honed; a honed that finds the
// folder (--ca) takes the lines into its audit.
namespace hone::server {

inline constexpr char kIssueJournal[] = "issued.log";

/// Appends a line and syncs it; several processes may at once. `entry.action` and `subject` have
/// no spaces; what else is no printable text in them, the actor or the detail becomes '?'.
/// Errors: the folder cannot be written.
absl::Status AppendIssue(const std::string& ca_folder, const db::FarmAudit& entry);

/// Who was issued a certificate under this name, in whatever role but honed's own.
/// kInvalidArgument: nobody, somebody in several roles, or the folder has no journal that can be
/// read; the message says how to name the role.
absl::StatusOr<Identity> IssuedUnder(const std::string& ca_folder, const std::string& name);

/// Finds what an audit lacks of a journal. Not thread-safe.
class IssueIntake {
 public:
  /// `known`: what the audit has.
  IssueIntake(const std::string& ca_folder, const std::vector<db::FarmAudit>& known);

  /// Whole lines that were not returned before and are not in the audit, in their order. Cheap
  /// while the file stays as it is; no journal is none. A line that is none of ours comes as action
  /// "unreadable": somebody edited the file. A file that was replaced is read anew.
  std::vector<db::FarmAudit> Take();

  /// Why the journal cannot be read, once for each reason; else empty.
  std::string TakeTrouble();

 private:
  const std::string path_;
  std::set<std::tuple<int64_t, std::string, std::string, std::string, std::string>> known_;
  /// The file when last read: inode, size, time of the last change.
  std::tuple<uint64_t, int64_t, int64_t, int64_t> seen_{};
  int64_t taken_ = 0;  ///< bytes of whole lines that were read
  std::string trouble_, told_;
};

}  // namespace hone::server
