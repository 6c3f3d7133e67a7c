// A directory that is removed when its object dies.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// Owns a new directory and removes it with all its files on destruction.
class TemporaryDirectory {
 public:
  // Creates PARENT/PREFIX-XXXXXX under a new name. Errors as io_error().
  explicit TemporaryDirectory(const std::string& parent, std::string_view prefix = "temporary");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace sluice
