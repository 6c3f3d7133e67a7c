// A place for what is made on the way and kept by no one.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// A directory of its own. It goes away with the object, with all that is in it.
class TemporaryDirectory {
 public:
  // Makes PARENT/PREFIX-XXXXXX, under a name that was not there before. Error as io_error().
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
