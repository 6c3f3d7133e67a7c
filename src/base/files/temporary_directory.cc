#include "base/files/temporary_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace sluice {

TemporaryDirectory::TemporaryDirectory(const std::string& parent, std::string_view prefix)
    : path_(parent + "/" + std::string(prefix) + "-XXXXXX") {
  const std::string pattern = path_;
  if (::mkdtemp(path_.data()) == nullptr) throw io_error("mkdtemp", pattern, errno);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sluice
