// Where a result is to be written, looked at before the work begins. Files are tried by making one, which is
// gone again when the function returns.
#pragma once

#include <string>

namespace sluice::app {

// Error naming `path` or its directory unless a regular file can be made there, or the one that is there
// replaced.
void check_output_path(const std::string& path);
// For a file that is never replaced: Error(kInvalid) if something is there already, with `fix` as what to do.
void check_new_file(const std::string& path, const std::string& fix = "choose another name, or remove it");

// A directory for results, with its parents. Those that were made here and are still empty at the end are
// removed again, so that a failure leaves nothing behind.
class OutputDirectory {
 public:
  // Error if it cannot be made or no file can be made in it.
  explicit OutputDirectory(const std::string& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  void remove_made() const;
  std::string path_;
  std::size_t made_ = 0;  // of path_ and its parents, from the last on
};

}  // namespace sluice::app
