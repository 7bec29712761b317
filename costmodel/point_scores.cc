#include "costmodel/point_scores.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/status.h"

namespace hone::costmodel {

namespace {
/// Points per block: 160 KB of features of a CPU, and calls of XGBoost that are long against their
/// set-up.
constexpr size_t kBlock = 1024;
}  // namespace

absl::StatusOr<std::vector<Prediction>> ScorePoints(const FeatureExtractor& extractor,
                                                    const XgboostModel& model,
                                                    std::span<const uint64_t> ids, int threads) {
  std::vector<Prediction> out(ids.size());
  const size_t blocks = (ids.size() + kBlock - 1) / kBlock;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  absl::Status status;  // guarded by mutex
  const auto work = [&] {
    FeatureRows features(extractor.columns());
    for (size_t b = next++; b < blocks; b = next++) {
      const std::span<const uint64_t> part =
          ids.subspan(b * kBlock, std::min(kBlock, ids.size() - b * kBlock));
      features.clear();
      for (const uint64_t id : part) extractor.Extract(id, features.Add());
      const auto predicted = model.Predict(features);
      if (!predicted.ok()) {
        const std::lock_guard lock(mutex);
        status = predicted.status();
        return;
      }
      std::ranges::copy(*predicted, out.begin() + static_cast<std::ptrdiff_t>(b * kBlock));
    }
  };
  std::vector<std::thread> others;
  const auto most = static_cast<size_t>(std::max(1, threads));
  for (size_t i = 1; i < std::min(most, blocks); ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  HONE_RETURN_IF_ERROR(status);
  return out;
}

}  // namespace hone::costmodel
