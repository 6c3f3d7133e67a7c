// A temporary directory for tests, at the place that the environment names, with a way to fill it. Production
// code does not include this header.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/files/temporary_directory.h"

namespace sluice::testing {

class ScratchDirectory {
 public:
  // Created below `parent`, or $TMPDIR, or /tmp.
  explicit ScratchDirectory(const std::string& parent = {})
      : directory_(parent.empty() ? usual_parent() : parent, "sluice-test") {}

  const std::string& path() const { return directory_.path(); }
  std::string file(std::string_view name) const { return directory_.file(name); }

  // Writes a file, directories included; returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    const std::string full = file(name);
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream stream(full, std::ios::binary);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) throw std::runtime_error("write " + full);
    return full;
  }

 private:
  static std::string usual_parent() {
    const char* tmp = std::getenv("TMPDIR");
    return tmp != nullptr && *tmp != '\0' ? tmp : "/tmp";
  }
  TemporaryDirectory directory_;
};

}  // namespace sluice::testing
