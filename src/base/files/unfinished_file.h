// A file that is removed when the command that writes it fails.
#pragma once

#include <string>
#include <utility>

namespace sluice {

// Removes a started file on destruction unless keep() was called, so that a failed command does not block its
// retry.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(std::string path) : path_(std::move(path)) {}
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  void keep() { path_.clear(); }

 private:
  std::string path_;  // empty: kept
};

}  // namespace sluice
