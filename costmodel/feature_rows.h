#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/core/check.h"

namespace hone::costmodel {

/// Features of candidates of one kind of device, row after row in one piece of memory, as many
/// columns each as the kind has. Thread-safe to read.
class FeatureRows {
 public:
  /// The first row decides the columns.
  FeatureRows() = default;
  explicit FeatureRows(size_t columns) : columns_(columns) {}

  size_t size() const { return columns_ == 0 ? 0 : values_.size() / columns_; }
  bool empty() const { return values_.empty(); }
  size_t columns() const { return columns_; }
  const float* data() const { return values_.data(); }
  std::span<const float> operator[](size_t i) const { return {data() + i * columns_, columns_}; }
  std::span<float> operator[](size_t i) { return {values_.data() + i * columns_, columns_}; }

  void push_back(std::span<const float> row) {
    if (columns_ == 0) columns_ = row.size();
    HONE_CHECK(row.size() == columns_) << "features of two kinds of device";
    values_.insert(values_.end(), row.begin(), row.end());
  }
  /// Adds a row of zeros; valid until the next one is added.
  std::span<float> Add() {
    values_.resize(values_.size() + columns_, 0);
    return (*this)[size() - 1];
  }
  void clear() { values_.clear(); }

 private:
  size_t columns_ = 0;
  std::vector<float> values_;
};

}  // namespace hone::costmodel
