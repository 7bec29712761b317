#include "measure/oracle_memo.h"

#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/core/byte_stream.h"
#include "base/core/check.h"
#include "base/status.h"
#include "base/versions.h"
#include "measure/wire.h"

namespace hone::measure {
namespace {

std::string Encode(const std::vector<ir::PointValue>& values) {
  ByteWriter writer;
  writer.PutCount(values.size());
  for (const ir::PointValue& value : values) {
    writer.Put(value.value);
    writer.Put(value.bound);
    writer.Put(value.element.i);
    writer.Put(value.element.f);
  }
  return writer.Take();
}

std::vector<ir::PointValue> Decode(std::string_view payload, size_t most) {
  ByteReader reader(payload);
  std::vector<ir::PointValue> values(reader.GetCount(4 * sizeof(double)));
  for (ir::PointValue& value : values) {
    value.value = reader.Get<double>();
    value.bound = reader.Get<double>();
    value.element.i = reader.Get<int64_t>();
    value.element.f = reader.Get<double>();
  }
  if (!reader.Finish("oracle").ok() || values.size() > most) values.clear();
  return values;
}

}  // namespace

OracleMemo::OracleMemo(std::shared_ptr<DiskCache> cache, const std::string& key,
                       std::vector<int64_t> points, Evaluate evaluate)
    : cache_(std::move(cache)), points_(std::move(points)), evaluate_(std::move(evaluate)) {
  if (cache_ == nullptr) return;
  key_ = fmt::format("{} {}\n{}\n{}", kOracleVersion, kWireVersion, fmt::join(points_, " "), key);
  if (const auto known = cache_->Get(CacheKind::kOracle, key_)) {
    values_ = Decode(*known, points_.size());
  }
  num_kept_ = values_.size();
}

OracleMemo::~OracleMemo() {
  if (cache_ != nullptr && values_.size() > num_kept_) {
    cache_->Put(CacheKind::kOracle, key_, Encode(values_));
  }
}

absl::StatusOr<std::span<const ir::PointValue>> OracleMemo::Values(size_t begin, size_t count) {
  HONE_CHECK(begin <= values_.size() && begin + count <= points_.size());
  if (begin + count > values_.size()) {
    const size_t known = values_.size();
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::PointValue> computed,
                          evaluate_(std::span(points_).subspan(known, begin + count - known)));
    values_.insert(values_.end(), computed.begin(), computed.end());
  }
  return std::span<const ir::PointValue>(values_).subspan(begin, count);
}

}  // namespace hone::measure
