#pragma once

#include <string>
#include <vector>

#include "client/rewrite_report.h"

// The page that commands which change layers write: one HTML file, nothing from outside.
namespace hone::client {

/// What a page says beside the scores and the front. Texts are plain; they are escaped here.
struct RewritePage {
  std::string title;           ///< "m.onnx as int8"
  std::string written_by;      ///< "hone quantize, from 8 calibration runs"
  std::string changed;         ///< "layers are int8"
  std::string detail_heading;  ///< of the column that each kind of change has: "range of data"
  std::string kept_mark;       ///< how a kept layer is marked: "in f32"
  std::vector<const RewrittenLayer*> layers;
  std::vector<std::string> details;  ///< of each layer
};

std::string PageText(const RewriteReport& report, const RewritePage& page);

}  // namespace hone::client
