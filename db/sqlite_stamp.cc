#include "db/sqlite_stamp.h"

namespace hone::db {
namespace {

constexpr int64_t kHeaderBytes = 100;

}  // namespace

std::string LogStamp::Look(Connection& connection) {
  const auto size = connection.FileBytes();
  const auto header = connection.ReadRaw(0, kHeaderBytes);
  // What cannot be read is told of by who needs it.
  return size.ok() && header.ok() ? std::to_string(*size) + "\n" + *header : "";
}

bool LogStamp::LookAgain(Connection& connection) {
  const std::string now = Look(connection);
  foreign_ |= !now.empty() && !last_.empty() && now != last_;
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
