// A file that is removed again when the command that writes it fails.
#pragma once

#include <string>
#include <utility>

namespace sluice {

// Removes a file that was begun unless it is kept: what fails leaves nothing in the way of its retry.
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
