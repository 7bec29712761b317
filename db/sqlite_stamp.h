#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "db/sqlite_connection.h"

namespace hone::db {

/// Whether a log's main file is as its writer left it: size, header and time of change. `cp` onto a
/// live log keeps the file and changes what is in it. In WAL mode nobody but the writer's
/// checkpoints writes the file, so any other change of these three is somebody else's. What is not
/// noticed: a copy of the same size and header that is written within the clock tick (at most 10
/// ms) of a checkpoint, and one whose writer then sets the time of change back to the nanosecond.
/// Thread-safe; each thread brings its own connection.
class LogStamp {
 public:
  /// The file as it is now is the writer's.
  explicit LogStamp(Connection& connection) : last_(Look(connection)) {}

  /// False, from then on for ever: somebody else has written the file. While a Writing lives
  /// nobody looks.
  bool IsOurs(Connection& connection);

  /// A checkpoint of ours, from before it begins until it has ended.
  class Writing {
   public:
    Writing(LogStamp& stamp, Connection& connection);
    ~Writing();
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    /// False: the file is not ours any more, and nothing may be folded into it.
    bool allowed() const { return allowed_; }

   private:
    LogStamp& stamp_;
    Connection& connection_;
    bool allowed_ = false;
  };

 private:
  struct Seen {
    std::string bytes;  ///< size and header; empty: they cannot be read
    /// Time of change in ns since 1970; absent while the log's name leads to another file.
    std::optional<int64_t> changed_ns;
  };
  static Seen Look(Connection& connection);
  bool LookAgain(Connection& connection);

  std::mutex mutex_;
  Seen last_;        // guarded by mutex_, as all below
  int writing_ = 0;  ///< Writings alive
  bool foreign_ = false;
};

}  // namespace hone::db
