// The files of the page, which the program brings with it.
#pragma once

#include <span>
#include <string_view>

namespace sluice::serve {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view gzip;  // its content, compressed
  std::string_view plain;
};

// The build makes it of the files of this folder (cmake/PageFiles.cmake); none where there are no files.
std::span<const PageFile> page_files();

}  // namespace sluice::serve
