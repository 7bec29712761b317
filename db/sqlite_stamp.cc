#include "db/sqlite_stamp.h"

namespace hone::db {
namespace {

constexpr int64_t kHeaderBytes = 100;

}  // namespace

LogStamp::Seen LogStamp::Look(Connection& connection) {
  const auto size = connection.FileBytes();
  const auto header = connection.ReadRaw(0, kHeaderBytes);
  // What cannot be read is told of by who needs it.
  if (!size.ok() || !header.ok()) return {};
  return {std::to_string(*size) + "\n" + *header, connection.FileChangedNs()};
}

bool LogStamp::LookAgain(Connection& connection) {
  const Seen now = Look(connection);
  foreign_ |= !now.bytes.empty() && !last_.bytes.empty() && now.bytes != last_.bytes;
  foreign_ |= now.changed_ns && last_.changed_ns && now.changed_ns != last_.changed_ns;
  return !foreign_;
}

bool LogStamp::IsOurs(Connection& connection) {
  const std::lock_guard lock(mutex_);
  return writing_ > 0 ? !foreign_ : LookAgain(connection);
}

LogStamp::Writing::Writing(LogStamp& stamp, Connection& connection)
    : stamp_(stamp), connection_(connection) {
  const std::lock_guard lock(stamp_.mutex_);
  allowed_ = stamp_.writing_ > 0 ? !stamp_.foreign_ : stamp_.LookAgain(connection_);
  ++stamp_.writing_;
}

LogStamp::Writing::~Writing() {
  const std::lock_guard lock(stamp_.mutex_);
  if (--stamp_.writing_ == 0 && !stamp_.foreign_) stamp_.last_ = Look(connection_);
}

}  // namespace hone::db
