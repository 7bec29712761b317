#pragma once

#include <span>
#include <string_view>

namespace hone::server::web {

/// A file of the page, compiled in.
struct PageAsset {
  std::string_view path;  ///< "/page.css"
  std::string_view content_type;
  std::string_view text;
};

std::span<const PageAsset> PageAssets();

}  // namespace hone::server::web
