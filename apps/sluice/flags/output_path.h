// Checks the place of a result before the work begins: tries a file or a directory by making one, which is
// removed again when the function returns.
#pragma once

#include <string>
#include <string_view>

namespace sluice::app {

// Error naming `path` or its directory unless a regular file can be made there, or an existing one replaced.
void check_output_path(const std::string& path);
// For a file that is never replaced: Error(kInvalid) if the path exists; `fix` is the remedy where a regular
// file has it.
void check_new_file(const std::string& path, std::string_view fix = "choose another name, or remove it");

// For a directory that a command makes whole or not at all, beside its final name: Error(kInvalid) if the
// path exists, else one naming the path or its directory if no directory can be made there.
void check_new_directory(const std::string& path);

// A directory for results, with its parents. At the end it removes the directories that it has made and that
// are still empty, so that a failure leaves nothing behind.
class OutputDirectory {
 public:
  // Error if it cannot be made, or if no file can be made in it.
  explicit OutputDirectory(const std::string& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  void remove_made() const;
  std::string path_;
  std::size_t made_ = 0;  // how many of path_ and its parents, from the last on
};

}  // namespace sluice::app
